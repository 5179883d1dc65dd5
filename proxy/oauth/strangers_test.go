package oauth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/oauth"
	"aegis/proxy/oauth/client"
)

// stranger makes a client known as anybody can, and returns its id.
func (w *world) stranger(uris string) string {
	w.t.Helper()
	rec := w.send(httptest.NewRequest(http.MethodPost, base+"/register",
		strings.NewReader(`{"client_name":"Friendly","token_endpoint_auth_method":"none","redirect_uris":[`+uris+`]}`)))
	if rec.Code != http.StatusCreated {
		w.t.Fatalf("register: %d %s", rec.Code, rec.Body)
	}
	id, _ := object(w.t, rec)["client_id"].(string)
	return id
}

// TestNoRedirectorForStrangers: a link to this server leads nowhere else without a
// person, whoever has registered where it leads.
func TestNoRedirectorForStrangers(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	id := w.stranger(`"https://evil.example/login","http://127.0.0.1/cb"`)
	for _, broken := range [][]string{{"response_type", "-"}, {"code_challenge", "-"}, {"resource", "https://elsewhere.example/"}, {"request", "x"}} {
		pairs := append([]string{"client_id", id, "redirect_uri", "https://evil.example/login"}, broken...)
		rec := w.get(ask(pairs...))
		if rec.Header().Get("Location") != "" || refreshOf(rec.Body.String()) != "" || rec.Code != http.StatusBadRequest {
			t.Errorf("%v: %d to %s", broken, rec.Code, rec.Header().Get("Location"))
		}
		if !strings.Contains(rec.Body.String(), "Back to evil.example") {
			t.Errorf("%v: no way back: %s", broken, rec.Body)
		}
		// Programs on the person's own machine hear at once, and so do known clients.
		pairs[3] = "http://127.0.0.1:8080/cb"
		if rec := w.get(ask(pairs...)); rec.Code != http.StatusFound {
			t.Errorf("%v: loopback: %d", broken, rec.Code)
		}
		if rec := w.get(ask(broken...)); rec.Code != http.StatusFound {
			t.Errorf("%v: a client of the configuration: %d", broken, rec.Code)
		}
	}
}

// TestSignInsOfStrangersAreBounded: from however many addresses, what waits in the
// store has a bound.
func TestSignInsOfStrangersAreBounded(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	const addresses, each = 40, 20
	for i := range addresses {
		w.addr = fmt.Sprintf("192.0.2.%d", i)
		b := w.browser()
		for j := range each {
			b.open(ask("state", fmt.Sprint(i, j, strings.Repeat("s", 4_000))))
			b.allow()
		}
	}
	count := func(prefix string) (n, bytes int) {
		for key, err := range w.store.Keys(context.Background(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			e, err := w.store.Get(context.Background(), key)
			if err != nil {
				t.Fatal(err)
			}
			n, bytes = n+1, bytes+len(e.Value)
		}
		return n, bytes
	}
	n, bytes := count("flow/")
	if n > 600 || n < 500 || bytes > 600*12<<10 {
		t.Errorf("%d sign-ins wait, in %d bytes", n, bytes)
	}
	if used, _ := count("flow-used/"); used > n {
		t.Errorf("%d requests are used up by %d sign-ins: who is sent away must be able to try again", used, n)
	}
	w.clock.add(time.Second)
	w.addr = "198.51.100.1"
	b := w.browser()
	b.open(ask())
	b.allow()
	b.stateOf()
}

// TestOneCallerDoesNotKeepOthersFromRegistering, however long it goes on.
func TestOneCallerDoesNotKeepOthersFromRegistering(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	post := func() int {
		return w.send(httptest.NewRequest(http.MethodPost, base+"/register", strings.NewReader(`{"redirect_uris":["https://x.example/"]}`))).Code
	}
	for range 1200 {
		post()
		w.clock.add(time.Second)
	}
	w.addr = "198.51.100.1"
	if code := post(); code != http.StatusCreated {
		t.Errorf("another address: %d", code)
	}
}

// TestNobodyHidesTheLoopbackWarning by registering an address of the web too.
func TestNobodyHidesTheLoopbackWarning(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	id := w.stranger(`"https://x.example/cb","http://127.0.0.1/cb"`)
	for uri, want := range map[string]bool{"http://127.0.0.1:7777/cb": true, "https://x.example/cb": false} {
		page := w.get(ask("client_id", id, "redirect_uri", uri)).Body.String()
		if strings.Contains(page, "runs on your own computer") != want {
			t.Errorf("%s: the warning should be there: %v", uri, want)
		}
	}
}

// TestCredentialsOfThoseWhoMayNotAreNotKept.
func TestCredentialsOfThoseWhoMayNotAreNotKept(t *testing.T) {
	t.Parallel()
	w := build(t, func(o *oauth.Options) { o.Config.Allow = config.People{Logins: []string{"bob"}} })
	w.gitea.member = false
	b := w.browser()
	b.open(ask())
	b.allow()
	if rec := b.back(b.stateOf()); rec.Code != http.StatusForbidden || len(w.gitea.forgotten) != 1 || w.gitea.forgotten[0] != 7 {
		t.Errorf("%d, forgotten %v", rec.Code, w.gitea.forgotten)
	}
}

// oneClient knows one client.
type oneClient struct {
	oauth.Clients
	c *client.Client
}

func (o oneClient) Client(context.Context, string) (*client.Client, error) { return o.c, nil }

// TestADocumentMakesNobodyKnown: whoever can publish a file is no known client.
func TestADocumentMakesNobodyKnown(t *testing.T) {
	t.Parallel()
	w := build(t, func(o *oauth.Options) {
		o.Clients = oneClient{c: &client.Client{ID: "https://evil.example/c.json", Name: "Claude", Kind: client.Document, Verified: true, Host: "evil.example",
			AuthMethod: client.AuthNone, RedirectURIs: []string{"https://evil.example/cb"}}}
	})
	page := w.get(ask("client_id", "https://evil.example/c.json", "redirect_uri", "https://evil.example/cb")).Body.String()
	if strings.Contains(page, "known client") || !strings.Contains(page, "Described by evil.example") || !strings.Contains(page, "Anybody can publish") {
		t.Error(page)
	}
}
