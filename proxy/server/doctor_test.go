package server_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/gitea/demo"
	"aegis/proxy/server"
)

// examined is a configuration that has everything on which a doctor must leave no
// trace.
func examined(t *testing.T) (*config.Config, *server.Examined) {
	t.Helper()
	gitea, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gitea.Close)
	tok, err := gitea.Token("0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.DataDir = t.TempDir() + "/data"
	cfg.Gitea.URL = gitea.URL()
	cfg.Auth.Tokens = []config.Token{tok}
	gitea.SignIn(cfg, cfg.Base().String())
	e, err := server.Examine(cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return cfg, e
}

// TestStreamArrivesInTwoParts: the first event is there before the second is
// sent.
func TestStreamArrivesInTwoParts(t *testing.T) {
	_, e := examined(t)
	s := httptest.NewServer(e.Handler)
	defer s.Close()
	next := make(chan time.Time, 1)
	server.HoldStream(e, next)
	res, err := direct.Get(s.URL + "/healthz/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	r := bufio.NewReader(res.Body)
	first, err := r.ReadString('\n')
	if err != nil || first != "data: 1\n" || r.Buffered() > len("\n") {
		t.Errorf("%q, and %d bytes more already: %v", first, r.Buffered(), err)
	}
	next <- time.Now()
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), "data: 2") {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestExamineLeavesNoTrace: the configuration stays as it is, nothing is written,
// and what it answers is what a server answers.
func TestExamineLeavesNoTrace(t *testing.T) {
	cfg, e := examined(t)
	path := cfg.Audit.Path
	ask := func(h http.Handler) (int, string, string) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/mcp", nil))
		return rec.Code, rec.Header().Get("WWW-Authenticate"), cfg.Audit.Path
	}
	code, challenge, after := ask(e.Handler)
	if code != http.StatusUnauthorized || after != path {
		t.Error(code, after)
	}
	srv, err := server.Build(cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if code2, challenge2, _ := ask(srv.Handler()); code2 != code || challenge2 != challenge {
		t.Errorf("%d %s, and the server %d %s", code, challenge, code2, challenge2)
	}
	if e.Endpoints[0] != "/mcp" || e.Needs["write:repository"] == 0 {
		t.Error(e.Needs, e.Endpoints)
	}
}
