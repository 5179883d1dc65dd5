package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/server"
)

// olderGitea is a server of another version: what it says of its API can be
// switched, and asking may need a credential.
type olderGitea struct {
	mu          sync.Mutex
	description string // "" is 404
	closed      bool   // only with a credential
	asked       int
}

func (g *olderGitea) set(description string, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.description, g.closed = description, closed
}

func (g *olderGitea) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r.URL.Path {
	case "/sub/api/v1/version":
		_, _ = w.Write([]byte(`{"version":"1.26.4"}`))
	case "/sub/api/v1/user":
		_, _ = w.Write([]byte(`{"login":"alice","id":1}`))
	case "/sub/swagger.v1.json":
		g.asked++
		switch {
		case g.description == "":
			http.NotFound(w, r)
		case g.closed && r.Header.Get("Authorization") != "token gitea-token-of-alice":
			http.Redirect(w, r, "/user/login", http.StatusSeeOther)
		default:
			_, _ = w.Write([]byte(g.description))
		}
	default:
		http.NotFound(w, r)
	}
}

// older describes a server that has three operations, one of them unknown to
// the catalog and one with a path parameter of another name.
const older = `{"swagger":"2.0","basePath":"/api/v1","paths":{
	"/user":{"get":{"operationId":"userGetCurrent"},"parameters":[]},
	"/repos/{owner}/{name}":{"get":{}},
	"/flux/capacitor":{"post":{}}}}`

// olderRig serves Aegis before g.
func olderRig(t *testing.T, g *olderGitea, yaml string) *rig {
	t.Helper()
	up := httptest.NewServer(g)
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	text := "listen: 127.0.0.1:0\ngitea: {url: " + up.URL + "/sub, " + yaml + "}\nauth:\n  tokens:\n    - {name: alice, token: " + aliceToken + ", gitea_token: gitea-token-of-alice}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, log: &syncBuffer{}}
	soon := func(p *server.Process) { server.RetryMissing(p, 10*time.Millisecond) }
	if r.srv, err = server.Build(cfg, zerolog.New(r.log), soon); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(r.srv.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	var started sync.WaitGroup
	started.Go(func() { r.srv.Start(ctx) })
	t.Cleanup(func() { cancel(); started.Wait(); front.Close(); r.srv.Close() })
	r.base, r.endpoint = front.URL, front.URL+"/mcp"
	return r
}

// until waits for an answer of this status with this in it.
func (r *rig) until(path string, status int, want string) {
	r.t.Helper()
	eventually(r.t, func() error {
		if code, body := r.status(path); code != status || !strings.Contains(body, want) {
			return fmt.Errorf("%s answers %d %s, want %d and %s", path, code, body, status, want)
		}
		return nil
	})
}

// logs waits for a line of the log with this in it.
func (r *rig) logs(want string) {
	r.t.Helper()
	eventually(r.t, func() error {
		if log := r.log.String(); !strings.Contains(log, want) {
			return fmt.Errorf("the log lacks %s: %s", want, log)
		}
		return nil
	})
}

func (r *rig) status(path string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if path == "/mcp" {
		req.Method = http.MethodPost
		req.Header.Set("Authorization", "Bearer "+aliceToken)
	}
	res, err := direct.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var body json.RawMessage
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		return res.StatusCode, ""
	}
	return res.StatusCode, string(body)
}

// TestHideMissing has a Gitea that shows its description late and to signed-in
// users only. Nothing is served before; then only what both know.
func TestHideMissing(t *testing.T) {
	g := &olderGitea{}
	r := olderRig(t, g, "hide_missing: true")
	r.until("/readyz", 503, "ENABLE_SWAGGER")
	if code, body := r.status("/mcp"); code != 503 || !strings.Contains(body, "hide_missing") {
		t.Errorf("the endpoint answers %d %s", code, body)
	}
	for _, wrong := range []string{`{`, `{"swagger":"2.0","paths":{}}`, `{"openapi":"3.0.0","paths":{"/user":{"get":{}}}}`, `{"swagger":"2.0","paths":{"/x":{"get":{}}}}`, `<html>`} {
		g.set(wrong, false)
		r.until("/readyz", 503, "not the description") // of each
		g.set("", false)
		r.until("/readyz", 503, "ENABLE_SWAGGER") // and it forgets that
	}
	g.set(older, true)
	r.until("/readyz", 200, `"tools":"ok"`)
	var names []string
	session := r.connect(aliceToken, "")
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "gitea_api_request gitea_repository_get gitea_user_get_me" {
		t.Errorf("tools %s", got)
	}
	if len(r.srv.Tools()) != 3 {
		t.Errorf("%d tools", len(r.srv.Tools()))
	}
	for name, args := range map[string]map[string]any{
		"gitea_repository_delete": {"owner": "a", "repo": "b"},
		"gitea_api_request":       {"method": "DELETE", "path": "/repos/a/b"},
	} {
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err == nil && !res.IsError || err != nil && !strings.Contains(err.Error(), "unknown tool") && !strings.Contains(err.Error(), "no operation") {
			t.Errorf("%s reaches an operation that is hidden: %v %v", name, res, err)
		}
	}
	r.logs(`"gitea":"1.26.4","catalog":"28.1.0","missing":535,"without_tool":1,"tools":3`)
}

// TestVersionsAreCompared warns of another version, with numbers where the
// server gives them.
func TestVersionsAreCompared(t *testing.T) {
	for description, want := range map[string]string{
		older: `"gitea":"1.26.4","catalog":"28.1.0","missing":535,"without_tool":1`,
		"":    `"gitea":"1.26.4","catalog":"28.1.0","reason":"Gitea does not show`,
	} {
		r := olderRig(t, &olderGitea{description: description}, "hide_missing: false")
		r.logs(want)
		if n := len(r.srv.Tools()); n != 538 {
			t.Errorf("%d tools", n)
		}
	}
}

// TestHiddenToolsStayHiddenOverAReload lets what the old server has learned
// serve on: the new one has not asked anybody yet.
func TestHiddenToolsStayHiddenOverAReload(t *testing.T) {
	g := &olderGitea{description: older}
	r := olderRig(t, g, "hide_missing: true, timeout: 20s")
	r.until("/readyz", 200, `"tools":"ok"`)
	next, err := server.Next(r.srv, server.ConfigOf(r.srv))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(next.Tools()); n != 3 {
		t.Errorf("%d tools after the reload", n)
	}
}
