package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/server"
)

// bulk is an upstream with long texts and an Aegis before it.
type bulk struct {
	t        *testing.T
	endpoint string
	client   *http.Client
}

func newBulk(t *testing.T, yaml string, texts map[string]string) *bulk {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch p := strings.TrimPrefix(r.URL.Path, "/api/v1"); p {
		case "/user":
			_, _ = io.WriteString(w, `{"id":1,"login":"alice"}`)
		case "/version":
			_, _ = io.WriteString(w, `{"version":"28.1.0"}`)
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, texts[p])
		}
	}))
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	text := fmt.Sprintf("gitea: {url: %q}\nauth: {tokens: [{name: alice, token: %s, gitea_token: %s}]}\n%s", up.URL, aliceToken, strings.Repeat("ab", 20), yaml)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = ln.Addr().String()
	cfg.DataDir = t.TempDir()
	srv, err := server.Build(cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, ln) }()
	t.Cleanup(func() { cancel(); <-done; srv.Close() })
	return &bulk{t, srv.Endpoint(), &http.Client{Transport: &http.Transport{}}}
}

// call makes a tools/call and returns its answer's size, and its beginning.
func (b *bulk) call(params string) (size int64, begin string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`))
	if err != nil {
		b.t.Fatal(err)
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + aliceToken, "Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2025-11-25"} {
		r.Header.Set(k, v)
	}
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	head := make([]byte, 2000)
	n, _ := io.ReadFull(res.Body, head)
	rest, err := io.Copy(io.Discard, res.Body)
	if err != nil || strings.Contains(string(head[:n]), `"isError":true`) {
		b.t.Fatalf("%v: %s", err, head[:n])
	}
	return int64(n) + rest, string(head[:n])
}

// allocated returns how many bytes one call of do allocates in the whole process,
// which bounds what it can have in use at a time.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongLogs: a log that is masked needs room for itself, read in pieces and put
// together, and for the masked copy; what is returned is bounded.
func TestLongLogs(t *testing.T) {
	const size = 16 << 20
	line := "2026-03-01T10:00:00Z deploy: AWS_SECRET_ACCESS_KEY=q7Hs2LdPz0VxB9mTfK4RjW8nYcE1uG6aSiO3vQ5y done\n"
	quiet := strings.Repeat("2026-03-01T10:00:00Z ok  \texample.org/infra/pkg\t0.012s\n", 200)
	var log strings.Builder
	for log.Len() < size {
		log.WriteString(line)
		log.WriteString(quiet)
	}
	b := newBulk(t, "", map[string]string{"/repos/acme/infra/actions/jobs/7/logs": log.String()})
	call := func() {
		n, begin := b.call(`{"name":"gitea_actions_get_job_log","arguments":{"owner":"acme","repo":"infra","job_id":7}}`)
		if n > 100_000 || n < 50_000 {
			t.Errorf("the answer has %d bytes", n)
		}
		if strings.Contains(begin, "q7Hs2LdPz0VxB9") || !strings.Contains(begin, "AWS_SECRET_ACCESS_KEY") {
			t.Errorf("the log is not masked: %s", begin)
		}
	}
	call() // warms up
	bound := uint64(4 * size)
	if raceEnabled { // pools forget
		bound = 6 * size
	}
	if got := allocated(call); got > bound {
		t.Errorf("a log of %d MiB took %d MiB", size>>20, got>>20)
	}
}

// TestMemoryOfCallsIsUsedAgain: what a call allocates does not grow with the
// answer.
func TestMemoryOfCallsIsUsedAgain(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	texts := map[string]string{}
	for name, n := range map[string]int{"small": 1 << 10, "large": 1 << 20} {
		texts["/repos/acme/infra/raw/"+name] = strings.Repeat("func step(left int) (int, error) { return left + 1, nil }\n", n/58)
	}
	b := newBulk(t, "results: {max_chars: 5000000}\n", texts)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // pools are emptied by collections
	per := map[string]uint64{}
	for name := range map[string]bool{"small": true, "large": true} {
		call := func() {
			b.call(`{"name":"gitea_contents_get_raw","arguments":{"owner":"acme","repo":"infra","filepath":"` + name + `"}}`)
		}
		for range 5 {
			call()
		}
		// The least of some attempts: what else goes on in the process counts too.
		for range 5 {
			one := allocated(func() {
				for range 10 {
					call()
				}
			}) / 10
			if per[name] == 0 || one < per[name] {
				per[name] = one
			}
		}
	}
	if per["large"] > per["small"]+150<<10 {
		t.Errorf("a call allocates %d bytes for 1 kB and %d for 1 MiB", per["small"], per["large"])
	}
	t.Logf("a call allocates %d bytes for 1 kB and %d for 1 MiB", per["small"], per["large"])
}
