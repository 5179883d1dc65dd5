package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/server"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const (
	aliceToken = "alice-bearer-0123456789abcdef"
	bobToken   = "bob-bearer-0123456789abcdef00"
	rootToken  = "root-bearer-0123456789abcdef0"
)

// rig is a whole Aegis before a Gitea double, on loopback.
type rig struct {
	t        *testing.T
	double   *fakegitea.Server
	srv      *server.Server
	endpoint string
	base     string
	log      *syncBuffer
	stop     func() error
	gitea    string // alice's Gitea token
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b.Len() > 1<<20 { // a flood's log must not count as the server's memory
		s.b = bytes.Buffer{}
	}
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// patience is how long tests wait for what happens beside them. It is far more than
// that takes, for a machine may be slow and a process held up, and costs nothing when
// all is well.
const patience = 2 * time.Minute

// eventually tries until there is no error.
func eventually(t testing.TB, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 80*time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still after %v: %v", patience, err)
		}
		time.Sleep(pause)
	}
}

// clock is the system's, which a test puts forward. It is safe for concurrent use.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) add(d time.Duration) { c.ahead.Add(int64(d)) }

// newRig serves the YAML, completed with the upstream and three identities.
func newRig(t *testing.T, yaml string) *rig {
	t.Helper()
	double := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab})
	up := httptest.NewServer(double)
	t.Cleanup(up.Close)
	gitea := double.Token("alice")
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	text := fmt.Sprintf("gitea: {url: %q}\nauth:\n  tokens:\n    - {name: alice, token: %s, gitea_token: %s}\n    - {name: bob, token: %s, gitea_token: %s}\n    - {name: root, token: %s, gitea_token: %s, allow_sudo: true}\n%s",
		up.URL, aliceToken, gitea, bobToken, double.Token("bob"), rootToken, double.Token("aegis-admin"), yaml)
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
	r := &rig{t: t, double: double, log: &syncBuffer{}, gitea: gitea}
	if r.srv, err = server.Build(cfg, zerolog.New(r.log)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.srv.Serve(ctx, ln) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = r.stop(); r.srv.Close() })
	r.endpoint, r.base = r.srv.Endpoint(), "http://"+cfg.Listen
	return r
}

// settled waits until the server has asked Gitea what it wants to know at the start, so
// that all further requests are those of calls.
func settled(t *testing.T, s *server.Server) {
	t.Helper()
	select {
	case <-server.Started(s):
	case <-time.After(patience):
		t.Fatal("the start does not end")
	}
}

type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return direct.Transport.RoundTrip(r)
}

func (r *rig) connect(token, version string) *sdk.ClientSession {
	r.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "1"}, nil)
	s, err := client.Connect(r.t.Context(),
		&sdk.StreamableClientTransport{Endpoint: r.endpoint, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: bearer{token}}},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

// answer is a result's text as a model reads it.
type answer struct {
	Identity struct {
		Login string
		Sudo  *string
	}
	Request    struct{ Method, Path string }
	Status     int
	Pagination struct {
		Limit    int
		NextPage *int `json:"next_page"`
	}
	Truncation struct {
		Cursor  string
		Removed int
	}
	Data  json.RawMessage
	Error struct {
		Kind, Message string
		RequestID     string `json:"request_id"`
		RetryAfter    *int   `json:"retry_after"`
	}
}

func (r *rig) call(s *sdk.ClientSession, tool string, args any) answer {
	r.t.Helper()
	res, err := s.CallTool(r.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		r.t.Fatalf("%s: %v", tool, err)
	}
	text := res.Content[0].(*sdk.TextContent).Text
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		r.t.Fatalf("%s: %v: %.200s", tool, err, text)
	}
	if res.IsError != (a.Error.Kind != "") {
		r.t.Errorf("%s: isError = %v for %.200s", tool, res.IsError, text)
	}
	return a
}

var generations = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func TestEveryGenerationEndToEnd(t *testing.T) {
	r := newRig(t, "")
	for _, v := range generations {
		t.Run(v, func(t *testing.T) {
			s := r.connect(aliceToken, v)
			n := 0
			for tool, err := range s.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; tool.Description == "" || tool.InputSchema == nil {
					t.Errorf("%s lacks a description or a schema", tool.Name)
				}
			}
			if n != 538 {
				t.Errorf("%d tools, want 537 operations and the raw tool", n)
			}
			a := r.call(s, "gitea_issue_list", map[string]any{"owner": "acme", "repo": "issues-lab", "limit": 5, "state": "all"})
			if a.Status != 200 || a.Identity.Login != "alice" || a.Pagination.Limit != 5 || a.Pagination.NextPage == nil {
				t.Errorf("%+v", a)
			}
			a = r.call(s, "gitea_issue_create", map[string]any{"owner": "acme", "repo": "issues-lab", "title": "from " + v})
			var issue struct{ Number int }
			if err := json.Unmarshal(a.Data, &issue); err != nil || a.Status != 201 || issue.Number == 0 {
				t.Fatalf("%+v, %v", a, err)
			}
			a = r.call(s, "gitea_issue_get", map[string]any{"owner": "acme", "repo": "issues-lab", "index": fmt.Sprint(issue.Number), "fields": []string{"title"}})
			if string(a.Data) != `{"title":"from `+v+`"}` {
				t.Errorf("read back %s", a.Data)
			}
			if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "gitea_issue_explode"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("unknown tool: %v", err)
			}
		})
	}
}

func TestIdentitiesAreApart(t *testing.T) {
	r := newRig(t, "")
	var wg sync.WaitGroup
	for token, login := range map[string]string{aliceToken: "alice", bobToken: "bob", rootToken: "aegis-admin"} {
		s := r.connect(token, "2025-11-25")
		for range 4 {
			wg.Go(func() {
				for range 10 {
					a := r.call(s, "gitea_user_get_me", nil)
					var me struct{ Login string }
					if err := json.Unmarshal(a.Data, &me); err != nil || me.Login != login || a.Identity.Login != login {
						t.Errorf("%s got %+v", login, a)
					}
				}
			})
		}
	}
	wg.Wait()
}

func TestSudoIsForThoseWhoMay(t *testing.T) {
	r := newRig(t, "")
	root, alice := r.connect(rootToken, "2025-11-25"), r.connect(aliceToken, "2025-11-25")
	a := r.call(root, "gitea_user_get_me", map[string]any{"sudo": "bob"})
	if a.Identity.Sudo == nil || *a.Identity.Sudo != "bob" || !strings.Contains(string(a.Data), `"login":"bob"`) {
		t.Errorf("root as bob: %+v", a)
	}
	settled(t, r.srv)
	r.double.ResetRequests()
	for _, args := range []map[string]any{{"sudo": "bob"}, {"Sudo": "bob"}, {"token": "x"}, {"access_token": "x"}} {
		if a := r.call(alice, "gitea_user_get_me", args); a.Error.Kind != "invalid_arguments" {
			t.Errorf("%v: %+v", args, a)
		}
	}
	for _, query := range []map[string]any{{"sudo": "bob"}, {"SUDO": "bob"}, {"token": "x"}, {"Access_Token": "x"}} {
		if a := r.call(root, "gitea_api_request", map[string]any{"method": "GET", "path": "/user", "query": query}); a.Error.Kind != "invalid_arguments" {
			t.Errorf("raw %v: %+v", query, a)
		}
	}
	if n := len(r.double.Requests()); n != 0 {
		t.Errorf("%d requests reached Gitea", n)
	}
}

func TestSearchModeEndToEnd(t *testing.T) {
	r := newRig(t, "tools: {mode: search, toolsets: [issue, repository], disable: [gitea_repository_delete], pinned: [gitea_issue_get]}\n")
	s := r.connect(aliceToken, "2026-07-28")
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if got, want := strings.Join(names, " "), "gitea_api_request gitea_call_tool gitea_describe_tool gitea_issue_get gitea_search_tools"; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	if a := r.call(s, "gitea_search_tools", map[string]any{"query": "close an issue"}); !strings.Contains(string(a.Data), "gitea_issue_edit") {
		t.Errorf("search: %s", a.Data)
	}
	if a := r.call(s, "gitea_describe_tool", map[string]any{"name": "gitea_issue_edit"}); !strings.Contains(string(a.Data), `"state"`) {
		t.Errorf("describe: %s", a.Data)
	}
	a := r.call(s, "gitea_call_tool", map[string]any{"name": "gitea_issue_list", "arguments": map[string]any{"owner": "acme", "repo": "issues-lab", "limit": 1}})
	if a.Status != 200 || a.Request.Path != "/repos/acme/issues-lab/issues" {
		t.Errorf("call: %+v", a)
	}
	// A hidden tool is unknown, whatever the way to it.
	for _, hidden := range []string{"gitea_repository_delete", "gitea_pull_list", "gitea_nonsense"} {
		for _, via := range []string{"gitea_call_tool", "gitea_describe_tool"} {
			if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: via, Arguments: map[string]any{"name": hidden}}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("%s %s: %v", via, hidden, err)
			}
		}
	}
	settled(t, r.srv)
	r.double.ResetRequests()
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "gitea_api_request", Arguments: map[string]any{"method": "DELETE", "path": "/repos/acme/issues-lab"}}); err == nil {
		if a := r.call(s, "gitea_api_request", map[string]any{"method": "DELETE", "path": "/repos/acme/issues-lab"}); a.Error.Kind == "" {
			t.Error("the raw tool reached a disabled operation")
		}
	}
	if n := len(r.double.Requests()); n != 0 {
		t.Errorf("%d requests reached Gitea", n)
	}
}

func TestCursorContinuesThroughTheWholeStack(t *testing.T) {
	r := newRig(t, "results: {max_items: 7}\n")
	s := r.connect(aliceToken, "2025-11-25")
	args := map[string]any{"owner": "acme", "repo": "issues-lab", "limit": 20, "state": "all", "fields": []string{"number"}}
	seen := map[string]bool{}
	for range 10 {
		a := r.call(s, "gitea_issue_list", args)
		var list []struct{ Number json.Number }
		if err := json.Unmarshal(a.Data, &list); err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			if seen[i.Number.String()] {
				t.Errorf("issue %s came twice", i.Number)
			}
			seen[i.Number.String()] = true
		}
		if a.Truncation.Cursor == "" {
			break
		}
		args["cursor"] = a.Truncation.Cursor
	}
	if len(seen) != 20 {
		t.Errorf("%d issues, want 20", len(seen))
	}
	bob := r.connect(bobToken, "2025-11-25")
	if a := r.call(bob, "gitea_issue_list", args); a.Error.Kind != "invalid_arguments" {
		t.Errorf("bob used alice's cursor: %+v", a)
	}
}

func TestSecretsDoNotLeave(t *testing.T) {
	r := newRig(t, "")
	gitea := r.gitea
	leak := `{"body":"token ` + gitea + ` and ` + bobToken + `","` + aliceToken + `":1}`
	for _, status := range []int{200, 422, 500} {
		r.double.AnswerAll(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/api/v1/user" {
				fmt.Fprint(w, `{"login":"alice"}`)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if status == 200 {
				fmt.Fprint(w, leak)
			} else {
				fmt.Fprintf(w, `{"message":"bad token %s"}`, gitea)
			}
		})
		s := r.connect(aliceToken, "2025-11-25")
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "gitea_repository_get", Arguments: map[string]any{"owner": "acme", "repo": "x"}})
		if err != nil {
			t.Fatal(err)
		}
		all, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{gitea, aliceToken, bobToken} {
			if bytes.Contains(all, []byte(secret)) {
				t.Errorf("status %d: a secret left: %s", status, all)
			}
			if strings.Contains(r.log.String(), secret) {
				t.Errorf("status %d: a secret in the log", status)
			}
		}
	}
}

func TestCallsInFlightFinishAtShutdown(t *testing.T) {
	r := newRig(t, "server: {shutdown_timeout: 10m}\n")
	const calls = 50
	var arrived sync.WaitGroup
	arrived.Add(calls)
	release := make(chan struct{})
	r.double.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.HasSuffix(q.URL.Path, "/slow") {
			arrived.Done()
			<-release
		}
		return false
	})
	sessions := make([]*sdk.ClientSession, calls)
	for i := range sessions {
		sessions[i] = r.connect(aliceToken, "2025-11-25")
	}
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() {
			if a := r.call(s, "gitea_repository_get", map[string]any{"owner": "acme", "repo": "slow"}); a.Error.Kind != "not_found" {
				t.Errorf("%+v", a)
			}
		})
	}
	arrived.Wait()
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	// New connections are refused while the old ones finish.
	eventually(t, func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://"))
		if err != nil {
			return nil
		}
		_ = conn.Close()
		return errors.New("new connections are taken while the server stops")
	})
	close(release)
	wg.Wait()
	if err := <-stopped; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	r := newRig(t, "server: {shutdown_timeout: 100ms}\n")
	began := make(chan struct{})
	r.double.Intercept(func(_ http.ResponseWriter, q *http.Request) bool {
		if strings.HasSuffix(q.URL.Path, "/hangs") {
			close(began)
			<-q.Context().Done()
		}
		return false
	})
	s := r.connect(aliceToken, "2025-11-25")
	go func() {
		_, _ = s.CallTool(context.Background(), &sdk.CallToolParams{Name: "gitea_repository_get", Arguments: map[string]any{"owner": "acme", "repo": "hangs"}})
	}()
	<-began
	if err := r.stop(); !errors.Is(err, server.ErrStopped) {
		t.Errorf("Serve: %v, want ErrStopped", err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	r := newRig(t, "")
	get := func(path string) (int, string) {
		res, err := direct.Get(r.base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	eventually(t, func() error { // a Gitea that takes too long is not there
		if code, body := get("/readyz"); code != 200 {
			return fmt.Errorf("readyz: %d %s", code, body)
		}
		return nil
	})
	if code, body := get("/nope"); code != 404 || !json.Valid([]byte(body)) {
		t.Errorf("unknown path: %d %s", code, body)
	}
	if code, body := get("/"); code != 200 || !strings.Contains(body, r.endpoint) {
		t.Errorf("root: %d %s", code, body)
	}
	res, err := direct.Post(r.base+"/healthz", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode == 200 {
		t.Error("POST /healthz is served")
	}
}

func TestBigUpload(t *testing.T) {
	r := newRig(t, "")
	s := r.connect(aliceToken, "2025-11-25")
	args := func(n int) map[string]any {
		return map[string]any{"owner": "acme", "repo": "paths-lab", "filepath": fmt.Sprintf("big/%d.txt", n), "message": "big", "content_text": strings.Repeat("x", n)}
	}
	if a := r.call(s, "gitea_contents_create_file", args(3_000_000)); a.Status != 201 {
		t.Errorf("3 MB: %+v", a)
	}
	_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "gitea_contents_create_file", Arguments: args(9 << 20)})
	if err == nil || !strings.Contains(err.Error(), "Request Entity Too Large") && !strings.Contains(err.Error(), "413") {
		t.Errorf("9 MiB: %v", err)
	}
}

// TestStructuredContent: the official client checks structured content against
// the listed schema, so listing and calling both must agree.
func TestStructuredContent(t *testing.T) {
	r := newRig(t, "results: {structured: true, text_blocks: true, max_chars: 1000}\n")
	s := r.connect(aliceToken, "2025-11-25")
	schemas := map[string]any{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.OutputSchema == nil && tool.Name != "gitea_api_request" {
			t.Errorf("%s has no output schema", tool.Name)
		}
		schemas[tool.Name] = tool.OutputSchema
	}
	for name, args := range map[string]map[string]any{
		"gitea_issue_list":              {"owner": "acme", "repo": "issues-lab", "limit": 50},
		"gitea_issue_get":               {"owner": "acme", "repo": "issues-lab", "index": 11},
		"gitea_contents_get_raw":        {"owner": "acme", "repo": "paths-lab", "filepath": "src/main.go"},
		"gitea_repository_search":       {"q": "lab"},
		"gitea_pull_get_diff":           {"owner": "acme", "repo": "pulls-lab", "index": 1, "diffType": "diff"},
		"gitea_issue_delete_repo_label": {"owner": "acme", "repo": "issues-lab", "id": 999999},
	} {
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if res.IsError {
			t.Errorf("%s: %s", name, res.Content[0].(*sdk.TextContent).Text)
			continue
		}
		checkAgainst(t, name, schemas[name], res.StructuredContent)
	}
}

func checkAgainst(t *testing.T, name string, schema, value any) {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var js jsonschema.Schema
	if err := json.Unmarshal(raw, &js); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	resolved, err := js.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := resolved.Validate(value); err != nil {
		t.Errorf("%s: structured content does not fit its schema: %v", name, err)
	}
}

// TestSecretArgumentNamesAreNotRepeated: what a confused model types in the wrong
// place must not come back.
func TestSecretArgumentNamesAreNotRepeated(t *testing.T) {
	r := newRig(t, "")
	s := r.connect(aliceToken, "2025-11-25")
	for _, secret := range []string{r.gitea, bobToken, "gh" + "p_" + "wJ7pQ2xZ9mK4vB8nR3tY6uH1sL5cD0aFeGiT"} {
		a := r.call(s, "gitea_user_get_me", map[string]any{secret: 1})
		if a.Error.Kind != "invalid_arguments" || strings.Contains(a.Error.Message, secret[:20]) {
			t.Errorf("%+v", a.Error)
		}
		if strings.Contains(r.log.String(), secret[:20]) {
			t.Error("the log repeats it")
		}
	}
}
