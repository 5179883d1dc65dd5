package client_test

import (
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/client"
)

func TestStaticClients(t *testing.T) {
	t.Parallel()
	uris := []string{"http://127.0.0.1/callback", "https://ci.example/cb", "com.example.ci:/cb"}
	r := resolver(t, func(o *client.Options) {
		o.Config.Registration, o.Config.Documents.Enabled, o.Config.PrivateRedirects = "off", false, nil
		o.Config.Clients = []config.OAuthClient{
			{ID: "ci", Name: "CI runner", RedirectURIs: uris},
			{ID: "bot", Name: "Bot", Secret: config.NewSecret("0123456789abcdef"), RedirectURIs: uris},
			{ID: "aegis_dc1.AAAAAAAA.x", Name: "Odd", RedirectURIs: uris},
		}
	})
	ci, err := r.Client(t.Context(), "ci")
	if err != nil || ci.Kind != client.Static || !ci.Verified || ci.Name != "CI runner" || ci.AuthMethod != client.AuthNone || ci.Secret("") || ci.Secret("x") {
		t.Errorf("%+v %v", ci, err)
	}
	for uri, want := range map[string]bool{"http://127.0.0.1:5/callback": true, uris[1]: true, uris[2]: true, "com.example.ci:/cb2": false, "https://ci.example:444/cb": false} {
		if ci.Redirect(uri) != want {
			t.Errorf("%s: %v", uri, !want)
		}
	}
	bot, err := r.Returning(t.Context(), "bot")
	if err != nil || bot.AuthMethod != client.AuthBasic || !bot.Secret("0123456789abcdef") || bot.Secret("0123456789abcdeg") || bot.Secret("0123456789abcde") || bot.Secret("") {
		t.Errorf("%+v %v", bot, err)
	}
	if odd, err := r.Client(t.Context(), "aegis_dc1.AAAAAAAA.x"); err != nil || odd.Kind != client.Static {
		t.Errorf("%+v %v", odd, err)
	}
	for _, id := range []string{"", "CI", "ci ", "ci\x00", "bo"} {
		_, err := r.Client(t.Context(), id)
		wantError(t, err, client.Unknown)
	}
}

// TestOnlyDocumentsAreKept: clients of other kinds need nothing in the store.
func TestOnlyDocumentsAreKept(t *testing.T) {
	t.Parallel()
	spy := &spyStore{}
	r := resolver(t, func(o *client.Options) {
		o.Store = spy
		o.Config.Clients = []config.OAuthClient{{ID: "ci", Name: "CI", RedirectURIs: []string{"http://127.0.0.1/cb"}}}
	})
	ci, err := r.Client(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	registered, _ := save(t, r, `{"redirect_uris":["http://localhost/cb"]}`)
	for _, c := range []*client.Client{ci, registered} {
		if err := r.Keep(t.Context(), c); err != nil || spy.calls.Load() != 0 {
			t.Errorf("%s: %v, %d calls", c.Kind, err, spy.calls.Load())
		}
	}
}

func TestNewResolverRefuses(t *testing.T) {
	t.Parallel()
	one := func(uris ...string) []config.OAuthClient {
		return []config.OAuthClient{{ID: "a", Name: "A", RedirectURIs: uris}}
	}
	for want, change := range map[string]func(*client.Options){
		"store and keys":                         func(o *client.Options) { o.Store = nil },
		"a store and keys":                       func(o *client.Options) { o.Keys = nil },
		"no keys":                                func(o *client.Options) { o.Keys = func(string) [][]byte { return nil } },
		"shorter than 32":                        func(o *client.Options) { o.Keys = func(string) [][]byte { return [][]byte{make([]byte, 31)} } },
		"clients[0].redirect_uris: is empty":     func(o *client.Options) { o.Config.Clients = one() },
		"clients[0].redirect_uris[1]: the URI":   func(o *client.Options) { o.Config.Clients = one("https://a.example/", "javascript:1") },
		"clients[0].redirect_uris[0]: the URI h": func(o *client.Options) { o.Config.Clients = one("http://localhost:0/cb") },
		"clients[0].redirect_uris[0]: the URI d": func(o *client.Options) { o.Config.Clients = one("com.example.ci:cb") },
		"clients[0].id: is empty": func(o *client.Options) {
			o.Config.Clients = []config.OAuthClient{{RedirectURIs: []string{"https://a.example/"}}}
		},
		"clients[1].id: another client": func(o *client.Options) {
			o.Config.Clients = append(one("https://a.example/"), one("https://b.example/")...)
		},
		"private_redirects[0]: the URI has a sc": func(o *client.Options) { o.Config.PrivateRedirects = []string{"javascript://x/%0aalert(1)"} },
		"private_redirects[1]: the URI is not o": func(o *client.Options) { o.Config.PrivateRedirects = []string{cursor, "https://a.example/cb"} },
		"private_redirects[0]: the URI is plain": func(o *client.Options) { o.Config.PrivateRedirects = []string{"http://a.example/cb"} },
		"documents.allow_domains[0]: is no":      func(o *client.Options) { o.Config.Documents.AllowDomains = []string{"."} },
		"documents.deny_domains[1]: is no":       func(o *client.Options) { o.Config.Documents.DenyDomains = []string{"a.example", "10.0.0.1"} },
	} {
		c := newClock()
		o := client.Options{Config: oauthConfig(), Store: kv.NewMemory(c.Now), Keys: ring("first"), Now: c.Now}
		change(&o)
		if _, err := client.NewResolver(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}
