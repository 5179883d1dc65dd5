package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy/gitea/demo"
)

const testToken = "0123456789abcdef0123456789abcdef"

// patience is how long tests wait for what must happen; waiting ends as soon as it
// has happened, so a slow machine may take its time.
const patience = 2 * time.Minute

// eventually reports whether ok becomes true while there is patience.
func eventually(ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// whole reports whether tests run in their whole form instead of a small one.
func whole() bool { return os.Getenv("AEGIS_TEST_WHOLE") == "1" }

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"outcome":"ok"`)) { // thousands of calls tell nothing
		return len(p), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// running is "aegis serve" in this process, before a demo Gitea.
type running struct {
	t          *testing.T
	file, addr string
	gitea      string
	giteaToken string
	log        *syncBuffer
	base       string // of URLs
	client     *http.Client
}

// serveTest runs "aegis serve" with a file made by the caller from the
// addresses until the test ends.
func serveTest(t *testing.T, config func(r *running) string) *running {
	t.Helper()
	gitea, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gitea.Close)
	tok, err := gitea.Token(testToken)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, file: filepath.Join(t.TempDir(), "aegis.yaml"), addr: unusedAddr(t), gitea: gitea.URL().String(), giteaToken: tok.GiteaToken.Reveal(), log: &syncBuffer{}, client: &http.Client{Transport: &http.Transport{}}}
	r.base = "http://" + r.addr
	r.write(config(r))
	r.start()
	r.until("serving", func() bool { return r.readyz()["gitea"] == "ok" })
	return r
}

// start runs "aegis serve" until the test ends.
func (r *running) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() { done <- run(ctx, []string{"serve", "-c", r.file}, io.Discard, r.log) }()
	r.t.Cleanup(func() {
		r.client.CloseIdleConnections() // those of HTTP/2 would hold up the end
		cancel()
		if code := <-done; code != 0 {
			r.t.Errorf("exit %d: %s", code, r.log)
		}
	})
}

func unusedAddr(t *testing.T) string {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// ports counts the ports that freeAddr tried.
var ports atomic.Int64

// freeAddr returns a loopback address that nothing listens on, another one each
// time. Its port is below those that systems give to connections and to listeners
// that name none, and apart from those that the tests of other packages use, so that
// nobody takes it before the caller does.
func freeAddr() (string, error) {
	var last error
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 26_000+(int64(os.Getpid())*101+ports.Add(1))%3_000))
		if err == nil {
			return ln.Addr().String(), ln.Close()
		}
		last = err
	}
	return "", last
}

// write replaces the file at once, as careful editors do.
func (r *running) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file+".new", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(r.file+".new", r.file); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	if !eventually(ok) {
		r.t.Fatalf("not within its time: %s; log:\n%s", what, r.log)
	}
}

// readyz returns the checks of /readyz, nil when there is no answer.
func (r *running) readyz() map[string]string {
	res, err := r.client.Get(r.base + "/readyz")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var body struct{ Checks map[string]string }
	if json.NewDecoder(res.Body).Decode(&body) != nil {
		return nil
	}
	return body.Checks
}

// call runs gitea_user_search and returns the text of its result.
func (r *running) call() (string, error) {
	req, err := http.NewRequest(http.MethodPost, r.base+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gitea_user_search","arguments":{}}}`))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+testToken)
	res, err := r.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`\"status\":200`)) {
		return "", fmt.Errorf("%s: %.300s", res.Status, body)
	}
	return string(body), nil
}

// variant is a configuration whose number shows in two places of a result: in
// how many items it has, and in what a masking rule makes of the login alice. It
// also needs a client of Gitea of its own.
func (r *running) variant(n int, more string) string {
	return fmt.Sprintf(`listen: %s
gitea: {url: %s, timeout: %dm}
auth:
  tokens: [{name: alice, token: %s, gitea_token: %s}]
results: {max_items: %d}
masking:
  rules: [{name: marker, regex: 'alice', replacement: '[variant-%d]'}]
%s`, r.addr, r.gitea, 2+n, testToken, r.giteaToken, n, n, more)
}

// shown returns the number of the variant that a result shows, and an error
// when its two signs do not agree.
func shown(result string) (int, error) {
	var rpc struct {
		Result struct{ Content []struct{ Text string } }
	}
	line := result
	if _, data, ok := strings.Cut(result, "data: "); ok { // an event stream of one event
		line, _, _ = strings.Cut(data, "\n")
	}
	if err := json.Unmarshal([]byte(line), &rpc); err != nil || len(rpc.Result.Content) == 0 {
		return 0, fmt.Errorf("no result: %v: %.300s", err, result)
	}
	var envelope struct {
		Data struct{ Data []json.RawMessage }
	}
	text := rpc.Result.Content[0].Text
	if err := json.Unmarshal([]byte(text), &envelope); err != nil {
		return 0, err
	}
	n := len(envelope.Data.Data)
	if !strings.Contains(text, fmt.Sprintf("[variant-%d]", n)) || strings.Count(text, "[variant-") != strings.Count(text, fmt.Sprintf("[variant-%d]", n)) {
		return 0, fmt.Errorf("%d items, but other marks: %.2000s", n, text)
	}
	return n, nil
}

// TestReloadUnderLoad: thousands of calls while the file changes again and again.
// None fails, and each sees one whole configuration.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	const noLimits = "limits: {address: {rate: off}, identity: {rate: off}, team: {rate: off}, read: {rate: off}}\n"
	r := serveTest(t, func(r *running) string { return r.variant(1, noLimits) })
	calls, changes := int64(500), 5
	if whole() {
		calls, changes = 10_000, 20
	}
	var made, failures atomic.Int64
	changed := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-changed:
					if made.Load() >= calls {
						return
					}
				default:
				}
				text, err := r.call()
				if err == nil {
					_, err = shown(text)
				}
				made.Add(1)
				if err != nil && failures.Add(1) < 5 {
					t.Error(err)
				}
			}
		})
	}
	for i := range changes {
		n := 2 + i%2
		if i%5 == 4 {
			r.write("listen: [broken\n")
			r.until("the broken file is told of", func() bool { return strings.Contains(r.readyz()["config"], "stays in force") })
		}
		r.write(r.variant(n, noLimits+fmt.Sprintf("# change %d\n", i)))
		r.until("the change is in force", func() bool {
			text, err := r.call()
			if err != nil {
				t.Error(err)
				return true
			}
			got, _ := shown(text)
			return got == n && r.readyz()["config"] == "ok"
		})
	}
	close(changed)
	wg.Wait()
	if n := failures.Load(); n > 0 {
		t.Errorf("%d of %d calls failed", n, made.Load())
	}
	if n := strings.Count(r.log.String(), "loaded anew\""); n < changes {
		t.Errorf("%d reloads, want %d", n, changes)
	}
}

func TestReloadTellsWhatNeedsAStart(t *testing.T) {
	t.Parallel()
	r := serveTest(t, func(r *running) string { return r.variant(1, "") })
	moved := strings.Replace(r.variant(2, "data_dir: elsewhere\ntls: {mode: files, cert_file: a, key_file: b}\nserver: {read_timeout: 9s}\n"), "listen: "+r.addr, "listen: 127.0.0.1:1", 1)
	r.write(moved)
	r.until("the change is in force", func() bool {
		text, err := r.call()
		if err != nil {
			t.Fatal(err)
		}
		n, err := shown(text)
		return err == nil && n == 2
	})
	for _, key := range []string{"listen", "data_dir", "tls", "server.read_timeout"} {
		if !strings.Contains(r.log.String(), `"key":"`+key+`"`) {
			t.Errorf("the log does not tell that %s needs a start:\n%s", key, r.log)
		}
	}
}

// TestReloadFollowsSecrets: the files that secrets come from are watched too,
// and the old token ends with the reload.
func TestReloadFollowsSecrets(t *testing.T) {
	t.Parallel()
	var secret string
	r := serveTest(t, func(r *running) string {
		secret = filepath.Join(filepath.Dir(r.file), "token")
		if err := os.WriteFile(secret, []byte(testToken), 0o600); err != nil {
			t.Fatal(err)
		}
		return strings.Replace(r.variant(1, ""), "token: "+testToken, "token: file:token", 1)
	})
	if _, err := r.call(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	r.until("the missing secret is told of", func() bool { return r.readyz()["config"] != "ok" })
	if _, err := r.call(); err != nil {
		t.Errorf("the configuration before it is not in force any more: %v", err)
	}
	if err := os.WriteFile(secret, []byte("another-token-of-32-characters-or-so"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.until("the old token has ended", func() bool {
		_, err := r.call()
		return err != nil && strings.Contains(err.Error(), "401")
	})
	if log := r.log.String(); strings.Contains(log, testToken) || strings.Contains(log, "another-token") {
		t.Error("a token is in the log")
	}
}

// TestReloadAsksGiteaNothingItKnows: a reload does not ask again whose tokens
// they are.
func TestReloadAsksGiteaNothingItKnows(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r := serveTest(t, func(r *running) string {
		r.gitea = counted(t, r.gitea, &asked)
		return r.variant(1, "")
	})
	if _, err := r.call(); err != nil {
		t.Fatal(err)
	}
	before := asked.Load()
	for _, n := range []int{2, 3, 2} {
		r.write(r.variant(n, ""))
		r.until("the change is in force", func() bool {
			text, err := r.call()
			if err != nil {
				t.Fatal(err)
			}
			got, err := shown(text)
			return err == nil && got == n
		})
	}
	if n := asked.Load() - before; n != 0 {
		t.Errorf("Gitea was asked %d times whose token it is", n)
	}
}

// counted forwards to a Gitea and counts the requests for GET /user.
func counted(t *testing.T, to string, n *atomic.Int64) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/user" {
			n.Add(1)
		}
		req := r.Clone(r.Context())
		req.RequestURI, req.URL.Scheme, req.URL.Host = "", "http", strings.TrimPrefix(to, "http://")
		res, err := direct.Transport.RoundTrip(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		for k, v := range res.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
	})}
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { _ = srv.Close() })
	return "http://" + ln.Addr().String()
}
