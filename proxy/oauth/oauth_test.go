package oauth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/oauth"
)

const (
	aliceToken = "alice-bearer-token-0123456789abcdef"
	rootToken  = "root-bearer-token-0123456789abcdef0"
)

// gitea knows whose Gitea tokens these are.
type gitea struct {
	asked atomic.Int32
	down  atomic.Bool
}

func (g *gitea) Login(_ context.Context, cred proxy.Credential) (proxy.Person, error) {
	g.asked.Add(1)
	switch {
	case g.down.Load():
		return proxy.Person{}, proxy.NewError(proxy.KindUpstreamUnavailable, "connection refused", nil)
	case cred.Authorization() == "token gitea-alice":
		return proxy.Person{ID: 7, Login: "alice", Admin: false}, nil
	case cred.Authorization() == "token gitea-root":
		return proxy.Person{ID: 7, Login: "root1", Admin: true}, nil
	}
	return proxy.Person{}, proxy.NewError(proxy.KindUnauthorized, "no", nil)
}

func tokens() []config.Token {
	return []config.Token{
		{Name: "alice", Token: config.NewSecret(aliceToken), GiteaToken: config.NewSecret("gitea-alice")},
		{Name: "root", Token: config.NewSecret(rootToken), GiteaToken: config.NewSecret("gitea-root"), AllowSudo: true},
		{Name: "stale", Token: config.NewSecret("stale-bearer-token-0123456789"), GiteaToken: config.NewSecret("gone")},
		{Name: "liar", Token: config.NewSecret("liar-bearer-token-01234567890"),
			GiteaToken: config.NewSecret("gitea-alice"), AllowSudo: true},
	}
}

// guarded answers with the caller's login, and shows what reached it.
func guarded(g *gitea, log *bytes.Buffer) http.Handler {
	guard := &oauth.Guard{Verifier: oauth.NewStatic(tokens(), g),
		MetadataURL: "https://aegis.example/.well-known/oauth-protected-resource/mcp", Log: zerolog.New(log)}
	inner := guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := proxy.RequestInfoFrom(r.Context()).Identity
		fmt.Fprintf(w, "%s %v %q", id.Login, id.AllowSudo, r.Header.Get("Authorization"))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r.WithContext(proxy.WithRequestInfo(r.Context(), &proxy.RequestInfo{RequestID: "req-1"})))
	})
}

func get(h http.Handler, target string, auth ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, nil)
	for _, a := range auth {
		r.Header.Add("Authorization", a)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestKnownTokens(t *testing.T) {
	t.Parallel()
	g := &gitea{}
	h := guarded(g, &bytes.Buffer{})
	for range 3 {
		for auth, want := range map[string]string{
			"Bearer " + aliceToken: `alice false ""`,
			"bearer " + aliceToken: `alice false ""`,
			"Bearer " + rootToken:  `root1 true ""`,
		} {
			if w := get(h, "/mcp", auth); w.Code != 200 || w.Body.String() != want {
				t.Errorf("%d %s, want %s", w.Code, w.Body, want)
			}
		}
	}
	if n := g.asked.Load(); n != 2 {
		t.Errorf("Gitea was asked %d times for 2 identities", n)
	}
}

func TestEverythingElseIsChallenged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := guarded(&gitea{}, &log)
	for name, auth := range map[string][]string{
		"none":          nil,
		"empty":         {""},
		"basic":         {"Basic YWxpY2U6eA=="},
		"bare scheme":   {"Bearer"},
		"empty token":   {"Bearer "},
		"two words":     {"Bearer a " + aliceToken},
		"two spaces":    {"Bearer  " + aliceToken},
		"bare token":    {aliceToken},
		"token scheme":  {"token " + aliceToken},
		"unknown":       {"Bearer " + aliceToken + "x"},
		"prefix":        {"Bearer " + aliceToken[:len(aliceToken)-1]},
		"other case":    {"Bearer " + strings.ToUpper(aliceToken)},
		"two headers":   {"Bearer " + aliceToken, "Bearer " + aliceToken},
		"comma list":    {"Bearer " + aliceToken + ", Basic eA=="},
		"the gitea one": {"Bearer gitea-alice"},
		"huge":          {"Bearer " + strings.Repeat("a", 1<<20)},
		"control":       {"Bearer " + aliceToken + "\x00"},
	} {
		w := get(h, "/mcp?access_token="+aliceToken+"&token="+aliceToken, auth...)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s: status %d", name, w.Code)
		}
		c := w.Header().Get("WWW-Authenticate")
		if !strings.HasPrefix(c, "Bearer ") || !strings.Contains(c,
			`resource_metadata="https://aegis.example/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: challenge %q", name, c)
		}
		if gave := auth != nil; strings.Contains(c, `error="invalid_token"`) != gave {
			t.Errorf("%s: challenge %q", name, c)
		}
		if !strings.Contains(w.Body.String(), "req-1") {
			t.Errorf("%s: no request id in %s", name, w.Body)
		}
	}
	if s := log.String(); strings.Contains(s, aliceToken[:8]) || !strings.Contains(s, "req-1") ||
		!strings.Contains(s, "scheme is not Bearer") {
		t.Errorf("the log carries a token, or not the reason: %s", s)
	}
}

func TestGiteaDecidesWhetherAKnownTokenWorks(t *testing.T) {
	t.Parallel()
	g := &gitea{}
	h := guarded(g, &bytes.Buffer{})
	for auth, want := range map[string]string{
		"Bearer stale-bearer-token-0123456789": "must replace it",
		"Bearer liar-bearer-token-01234567890": "not a site administrator",
	} {
		w := get(h, "/mcp", auth)
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), want) ||
			w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	g.down.Store(true)
	before := g.asked.Load()
	for range 20 {
		if w := get(h, "/mcp", "Bearer "+aliceToken); w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d while Gitea is down", w.Code)
		}
	}
	if n := g.asked.Load() - before; n != 1 {
		t.Errorf("Gitea was asked %d times in one moment", n)
	}
}

func TestIdentityIsResolvedOnceUnderLoad(t *testing.T) {
	t.Parallel()
	g := &gitea{}
	s := oauth.NewStatic(tokens(), g)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a client that has gone away does not spoil it for the others
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if id, err := s.Verify(ctx, aliceToken); err != nil || id.Login != "alice" {
				t.Errorf("%v, %v", id, err)
			}
		})
	}
	wg.Wait()
	if n := g.asked.Load(); n != 1 {
		t.Errorf("Gitea was asked %d times", n)
	}
}

func TestResolveNamesWhatFails(t *testing.T) {
	t.Parallel()
	failures := oauth.NewStatic(tokens(), &gitea{}).Resolve(context.Background())
	if len(failures) != 2 || failures["stale"] == nil || failures["liar"] == nil {
		t.Errorf("failures: %v", failures)
	}
	var pe *proxy.Error
	if !errors.As(failures["stale"], &pe) || strings.Contains(pe.Error(), "gone") {
		t.Errorf("failure: %v", failures["stale"])
	}
}

func TestGuardWithoutRequestInfoIsClosed(t *testing.T) {
	t.Parallel()
	g := &oauth.Guard{Verifier: oauth.NewStatic(tokens(), &gitea{})}
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let through") }))
	if w := get(h, "/mcp", "Bearer "+aliceToken); w.Code != http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	h := oauth.Metadata("https://aegis.example/mcp")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"resource":"https://aegis.example/mcp"`) ||
		w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func FuzzBearer(f *testing.F) {
	h := guarded(&gitea{}, &bytes.Buffer{})
	for _, s := range []string{"Bearer x", "Bearer " + aliceToken + " ", "\tBearer", "Bearer\x00" + aliceToken} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, auth string) {
		w := get(h, "/mcp", auth)
		scheme, token, _ := strings.Cut(auth, " ")
		known := strings.EqualFold(scheme, "bearer") && (token == aliceToken || token == rootToken)
		if (w.Code == 200) != known && !strings.Contains(auth, "bearer-token-0123456789") {
			t.Errorf("%q: status %d", auth, w.Code)
		}
	})
}
