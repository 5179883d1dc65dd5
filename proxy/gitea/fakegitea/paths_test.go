package fakegitea_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// TestPaths sends request targets, byte for byte, and compares the status and
// the message with what the real server said. The table was measured; its
// columns are status, method, target below /api/v1, body, message. A message
// may be cut short.
func TestPaths(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab})
	srv := httptest.NewServer(s)
	defer srv.Close()
	p := &prober{t: t, s: s, addr: srv.Listener.Addr().String(), token: s.Token("alice")}
	p.head = headOf(t, s, p.token, "acme/paths-lab", "main")
	p.must("POST", "repos/acme/paths-lab/branches", `{"new_branch_name":"tmp-write"}`)
	data, err := os.ReadFile("testdata/paths.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "", "")
		p.probe(f[0], f[1], p.fill(f[2]), f[3], p.fill(f[4]))
	}
}

// prober sends raw requests.
type prober struct {
	t                 *testing.T
	s                 *fakegitea.Server
	addr, token, head string
}

// fill puts the head of the lab's main branch into a target.
func (p *prober) fill(x string) string {
	return strings.ReplaceAll(strings.ReplaceAll(x, "{head}", p.head), "{short}", p.head[:10])
}

// probe compares one request.
func (p *prober) probe(status, method, target, body, want string) {
	p.setUp(method, target)
	res, text := p.send(method, target, body)
	if fmt.Sprint(res.StatusCode) != status {
		p.t.Errorf("%s %s: %d, measured %s: %.120s", method, target, res.StatusCode, status, text)
		return
	}
	got := message(&httptest.ResponseRecorder{Body: bytes.NewBufferString(text)})
	if got == "" {
		got = strings.TrimSpace(text)
	}
	if want != "" && !strings.HasPrefix(got, want) {
		p.t.Errorf("%s %s: %q, measured %q", method, target, got, want)
	}
}

// send writes the request line as it is.
func (p *prober) send(method, target, body string) (*http.Response, string) {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	// One write: the server hangs up on a bad request line, and what arrives
	// later would reset the connection under its answer.
	fmt.Fprintf(conn, "%s /api/v1/%s HTTP/1.1\r\nHost: gitea.test\r\nAuthorization: token %s\r\nConnection: close\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, target, p.token, len(body), body)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, target, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, target, err)
	}
	return res, string(text)
}

// must sends a request that has to succeed, or finds the thing there already.
func (p *prober) must(method, target, body string) {
	p.t.Helper()
	res, text := p.send(method, target, body)
	if res.StatusCode >= 300 && res.StatusCode != http.StatusConflict && res.StatusCode != http.StatusForbidden {
		p.t.Fatalf("%s %s: %d %s", method, target, res.StatusCode, text)
	}
}

// setUp makes what a destructive request needs, as the measurement did.
func (p *prober) setUp(method, target string) {
	if method != "DELETE" && method != "PATCH" {
		return
	}
	makers := map[string]string{
		"branches": "new_branch_name", "branch_protections": "rule_name", "tags": "tag_name", "releases/tags": "tag_name",
	}
	for kind, field := range makers {
		base, raw, ok := strings.Cut(target, "-lab/"+kind+"/")
		if !ok {
			continue
		}
		name, err := url.PathUnescape(raw)
		if err != nil {
			p.t.Fatal(err)
		}
		kind = strings.TrimSuffix(kind, "/tags")
		p.must("POST", base+"-lab/"+kind, fmt.Sprintf(`{%q:%q}`, field, name))
	}
}
