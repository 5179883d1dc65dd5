package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"aegis/proxy"
	"aegis/proxy/mcp"
)

var update = flag.Bool("update", false, "rewrite the responses in testdata/*.txtar")

// TestTranscripts plays each testdata/*.txtar: its sections are requests, each
// followed by the response that is expected. A request is a method line,
// header lines, an empty line and a body. "{{fill N}}" stands for N letters,
// "Test-Chunked: yes" sends the body without a length. The server has tools
// a to e, two on a page, and takes 3000 bytes.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	url := serve(t, transcriptOptions()).URL
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			playFile(t, url, file)
		})
	}
}

func playFile(t *testing.T, url, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := &txtar.Archive{Comment: archive.Comment}
	for i, f := range archive.Files {
		if !strings.HasPrefix(f.Name, "request") {
			continue
		}
		got := play(t, url, f.Data)
		out.Files = append(out.Files, f, txtar.File{Name: strings.Replace(f.Name, "request", "response", 1), Data: got})
		if *update {
			continue
		}
		if i+1 >= len(archive.Files) {
			t.Fatalf("%s has no response; run the test with -update and read the difference", f.Name)
		}
		if diff := cmp.Diff(string(archive.Files[i+1].Data), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// transcriptOptions is the server of the transcripts.
func transcriptOptions() mcp.Options {
	o := settings(transcriptChain)
	o.PageSize, o.MaxBodyBytes = 2, 3000
	o.Tools = nil
	var withSudo []*proxy.Tool
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		tool := proxy.Tool{
			Name: "gitea_x_" + name, Title: "Tool " + name, Description: "Does " + name + " & more.",
			ReadOnly: name < "c", InputSchema: json.RawMessage(`{"type":"object"}`),
		}
		sudo := tool
		sudo.InputSchema = json.RawMessage(`{"type":"object","properties":{"sudo":{"type":"string"}}}`)
		o.Tools, withSudo = append(o.Tools, &tool), append(withSudo, &sudo)
	}
	o.SudoTools = func() []*proxy.Tool { return withSudo }
	return o
}

// transcriptChain answers by the tool's name.
func transcriptChain(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
	switch c.Name {
	case "gitea_x_a":
		c.Tool = &proxy.Tool{OperationID: "opA"}
		text := fmt.Sprintf("args=%s client=%s/%s protocol=%s", c.RawArgs, c.Client.Name, c.Client.Version, c.Client.Protocol)
		return &proxy.Result{Text: []byte(text), Source: "gitea 28.1.0"}, nil
	case "gitea_x_b":
		return nil, &proxy.Error{Kind: proxy.KindNotFound, Status: 404, Public: "no <such> issue", Err: errTest}
	case "gitea_x_c":
		return nil, &proxy.Error{Kind: proxy.KindRateLimited, Public: "slow down", RetryAfter: 1500 * time.Millisecond}
	case "gitea_x_d":
		panic("hunter2")
	case "gitea_x_e":
		return nil, errTest
	}
	return nil, proxy.NewError(proxy.KindUnknownTool, "unknown tool; tools/list has them all", errTest)
}

var fill = regexp.MustCompile(`\{\{fill (\d+)\}\}`)

// play sends the request in section and returns the response's section.
func play(t *testing.T, url string, section []byte) []byte {
	t.Helper()
	rd := bufio.NewReader(bytes.NewReader(section))
	method, err := rd.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	header, err := textproto.NewReader(rd).ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(rd)
	if err != nil {
		t.Fatal(err)
	}
	body := fill.ReplaceAllStringFunc(strings.TrimSuffix(string(raw), "\n"), func(m string) string {
		var n int
		fmt.Sscanf(m, "{{fill %d}}", &n)
		return strings.Repeat("x", n)
	})
	r, err := http.NewRequestWithContext(t.Context(), strings.TrimSpace(method), url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header(header)
	if r.Header.Get("Test-Chunked") != "" {
		r.ContentLength = -1
	}
	r.Header.Set("User-Agent", "probe/9.8 (test)")
	return writeResponse(t, r)
}

// shown are the response's headers that a transcript holds.
var shown = []string{"Allow", "Cache-Control", "Content-Length", "Content-Type"}

var moment = regexp.MustCompile(`"aegis/generated_at":"[0-9T:Z-]+"`)

// asSent does not ask for compression by itself.
var asSent = &http.Transport{DisableCompression: true}

func writeResponse(t *testing.T, r *http.Request) []byte {
	t.Helper()
	res, err := asSent.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, res.Status)
	for _, name := range shown {
		if v := res.Header.Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	fmt.Fprintln(&b)
	if len(body) > 0 {
		fmt.Fprintf(&b, "%s\n", bytes.TrimRight(moment.ReplaceAll(body, []byte(`"aegis/generated_at":"NOW"`)), "\n"))
	}
	return b.Bytes()
}
