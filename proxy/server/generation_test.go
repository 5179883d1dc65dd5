package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/audit"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/server"
	"aegis/spec"
)

// TestEachPartIsBuiltOnce: a start builds each part once, and a reload only those whose
// settings changed.
func TestEachPartIsBuiltOnce(t *testing.T) {
	text := func(more string) string {
		return fmt.Sprintf(`gitea: {url: "http://127.0.0.1:1"}
auth:
  tokens: [{name: alice, token: %s, gitea_token: x}]
  oauth: {enabled: true, client_id: aegis, client_secret: a-secret-of-the-application}
teams:
  web: {members: {everyone: true}}
  ops: {members: {everyone: true}, masking: {builtin: false}}
members: {everyone: true}
%s`, aliceToken, more)
	}
	dir := t.TempDir()
	load := func(more string) *config.Config {
		t.Helper()
		cfg, err := config.Parse("aegis.yaml", []byte(text(more)), config.Env{})
		if err != nil {
			t.Fatal(err)
		}
		cfg.DataDir = dir
		return cfg
	}
	made := map[string]int{}
	s, err := server.Build(load(""), zerolog.Nop(), func(p *server.Process) {
		server.Watch(p, func(part string) { made[part]++ })
	})
	if err != nil {
		t.Fatal(err)
	}
	live := server.NewLive(s)
	defer live.Close()
	// The catalog and the masking of the default endpoint are the process's.
	each := map[string]int{
		"store": 1, "sign-in": 1, "masking of ops": 1,
		"policy/mcp": 1, "policy/mcp/web": 1, "policy/mcp/ops": 1, "endpoint /mcp": 1, "endpoint /mcp/web": 1, "endpoint /mcp/ops": 1,
	}
	start := maps.Clone(each)
	start["gitea"], start["tracing"] = 1, 1
	if !maps.Equal(made, start) {
		t.Errorf("a start has built %v", made)
	}
	each["masking"] = 1
	for _, change := range []string{"", "results: {max_items: 7}\n"} {
		clear(made)
		if err := live.Reload(load(change), server.Plain(zerolog.Nop())); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(made, each) {
			t.Errorf("a reload with %q has built %v", change, made)
		}
	}
	var out strings.Builder
	cfg := load("")
	log, err := server.NewLog(cfg, &out, server.LogJSON)
	if err != nil {
		t.Fatal(err)
	}
	clear(made)
	if err := live.Reload(cfg, log); err != nil { // it logs, so both need the masking
		t.Fatal(err)
	}
	if made["masking"] != 0 || !server.SharesMasking(live.Server(), log) {
		t.Error("the log and the default endpoint have each a masking of their own")
	}
}

// TestFailedGenerationLeavesNothing: it changes neither what serves nor what the next
// one takes on.
func TestFailedGenerationLeavesNothing(t *testing.T) {
	s, err := newConfigured(t, "limits: {address: {rate: 1/h, burst: 2}}\n")
	if err != nil {
		t.Fatal(err)
	}
	live := server.NewLive(s)
	defer live.Close()
	ask := func() int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/mcp", nil)
		r.Host = "localhost"
		live.ServeHTTP(w, r)
		return w.Code
	}
	ask()
	ask()
	broken := *server.ConfigOf(s)
	broken.Tools.Enable = []string{"gitea_no_such_tool"}
	broken.Limits.Address.Burst = 9
	if err := live.Reload(&broken, server.Plain(zerolog.Nop())); err == nil {
		t.Fatal("an unknown tool was taken")
	}
	if code := ask(); code != http.StatusTooManyRequests || live.Server() != s {
		t.Errorf("after a failed reload: %d", code)
	}
	same := *server.ConfigOf(s)
	if err := live.Reload(&same, server.Plain(zerolog.Nop())); err != nil {
		t.Fatal(err)
	}
	if code := ask(); code != http.StatusTooManyRequests {
		t.Errorf("after the next one: %d", code)
	}
}

// TestWhatLivesOn: across reloads under load no call fails, connections to Gitea stay,
// what was counted stays counted, cursors open, and the audit log is one chain.
func TestWhatLivesOn(t *testing.T) {
	workers, perReload := 2, 3
	if whole() {
		workers, perReload = 8, 50
	}
	double := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab})
	builtin, err := spec.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var opened atomic.Int64 // connections that calls came over
	type used struct{}
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first := r.Context().Value(used{}).(*sync.Once); strings.Contains(r.URL.Path, "/repos/") {
			first.Do(func() { opened.Add(1) })
		}
		if strings.HasSuffix(r.URL.Path, "/version") { // of another one, more would be asked
			_, _ = fmt.Fprintf(w, `{"version":%q}`, builtin.GiteaVersion)
			return
		}
		double.ServeHTTP(w, r)
	}))
	up.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, used{}, &sync.Once{})
	}
	up.Start()
	defer up.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "aegis.yaml")
	load := func(n int) *config.Config {
		t.Helper()
		// What changes has nothing to do with what must live on.
		text := fmt.Sprintf(`gitea: {url: %q}
data_dir: %q
auth:
  tokens:
    - {name: alice, token: %s, gitea_token: %s}
    - {name: bob, token: %s, gitea_token: %s}
limits: {address: {rate: off}, identity: {rate: off}, read: {rate: off}, tools: {gitea_user_get_me: {rate: 1/h, burst: 3}}}
policy: {budgets: {writes_per_hour: 2}}
results: {max_items: %d}
`, up.URL, filepath.Join(dir, "data"), aliceToken, double.Token("alice"), bobToken, double.Token("bob"), 5+n%2)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Listen = "127.0.0.1:0"
		return cfg
	}
	s, err := server.Build(load(0), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	live := server.NewLive(s)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- live.Serve(ctx, ln, nil) }()
	at := "http://" + ln.Addr().String() + "/mcp"
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers + 1}}
	ask := func(token, tool, args string) (a answer) {
		text, err := callTool(ctx, client, at, token, tool, args)
		if err == nil {
			err = json.Unmarshal([]byte(text), &a)
		}
		if err != nil {
			t.Errorf("%s: %v: %.200s", tool, err, text)
		}
		return a
	}
	const issue = `{"owner":"acme","repo":"issues-lab","title":"x"}`
	for range 3 {
		ask(bobToken, "gitea_user_get_me", `{}`)
	}
	for range 2 {
		if a := ask(aliceToken, "gitea_issue_create", issue); a.Status != http.StatusCreated {
			t.Fatalf("%+v", a)
		}
	}
	first := ask(aliceToken, "gitea_issue_list", fmt.Sprintf(`{"owner":"acme","repo":"issues-lab","state":"all","limit":%d}`, 20))
	if first.Truncation.Cursor == "" {
		t.Fatalf("no cursor: %+v", first)
	}

	var calls atomic.Int64
	var working sync.WaitGroup
	stop := make(chan struct{})
	for range workers {
		working.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a := ask(aliceToken, "gitea_repository_get", `{"owner":"acme","repo":"issues-lab"}`); a.Status != http.StatusOK {
					t.Errorf("a call across a reload: %+v", a)
				}
				calls.Add(1)
			}
		})
	}
	waitFor := func(n int64) {
		eventually(t, func() error {
			if have := calls.Load(); have < n {
				return fmt.Errorf("%d of %d calls", have, n)
			}
			return nil
		})
	}
	waitFor(int64(10 * workers))
	before := opened.Load()
	const reloads = 20
	for n := range reloads {
		if err := live.Reload(load(n+1), server.Plain(zerolog.Nop())); err != nil {
			t.Fatal(err)
		}
		waitFor(calls.Load() + int64(perReload*workers))
	}
	close(stop)
	working.Wait()
	// Calls and the look at Gitea's version share connections, so that a few may come to
	// be; a reload that dropped them would open some each time.
	if now := opened.Load(); now-before > int64(workers) {
		t.Errorf("%d connections to Gitea before the reloads, %d after", before, now)
	}
	if a := ask(bobToken, "gitea_user_get_me", `{}`); a.Error.Kind != "rate_limited" {
		t.Errorf("a reload filled a bucket: %+v", a)
	}
	if a := ask(aliceToken, "gitea_issue_create", issue); a.Error.Kind != "policy_denied" {
		t.Errorf("a reload gave another hour's writes: %+v", a)
	}
	args := fmt.Sprintf(`{"owner":"acme","repo":"issues-lab","state":"all","limit":20,"cursor":%q}`, first.Truncation.Cursor)
	if a := ask(aliceToken, "gitea_issue_list", args); a.Status != http.StatusOK {
		t.Errorf("the cursor of before the reloads: %+v", a)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	live.Close()
	checkOneChain(t, filepath.Join(dir, "data"), reloads, int(calls.Load()))
}

// checkOneChain holds that the audit log verifies as a whole, began once, and has each
// reload and call.
func checkOneChain(t *testing.T, dir string, reloads, calls int) {
	t.Helper()
	report, _, err := audit.VerifyFiles([]string{filepath.Join(dir, "audit")}, audit.FilesOptions{})
	if err != nil || report.Problem != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	if n := len(auditLines(t, dir, "start")); n != 1 {
		t.Errorf("%d starts", n)
	}
	if n := len(auditLines(t, dir, "config_reloaded")); n != reloads {
		t.Errorf("%d reloads recorded", n)
	}
	results := 0
	for _, l := range auditLines(t, dir, "tool_invocation") {
		if l.Result != nil && l.Call.Tool == "gitea_repository_get" {
			results++
		}
	}
	if results != calls {
		t.Errorf("%d results of %d calls recorded", results, calls)
	}
}

// callTool calls a tool without a session and returns the text that a model reads.
func callTool(ctx context.Context, client *http.Client, at, token, tool, args string) (string, error) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	res, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	var out struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(text, &out); err != nil || len(out.Result.Content) == 0 {
		return string(text), fmt.Errorf("%d: no result: %w", res.StatusCode, err)
	}
	return out.Result.Content[0].Text, nil
}
