package client_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aegis/proxy/oauth/client"
)

func TestDocumentURLs(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	r := build(t, n.options(newClock()))
	const good = "https://claude.ai/oauth/claude-code-client-metadata"
	n.set(good, page(document(good, "http://localhost/callback")))
	if _, err := r.Client(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{
		"https://", "https:///x", "https://claude.ai", "https://claude.ai/", "https://claude.ai?x", "https://claude.ai:443/x", "https://claude.ai:8443/x", "https://claude.ai:/x",
		"https://u@claude.ai/x", "https://u:p@claude.ai/x", "https://@claude.ai/x", "https://claude.ai/x#f", "https://claude.ai/x#", "https://claude.ai/x?y=1", "https://claude.ai/x?",
		"https://claude.ai/../x", "https://claude.ai/a/./x", "https://claude.ai/a/%2e%2e/x", "https://claude.ai/a/%2E./x", "https://claude.ai/a/..", "https://claude.ai/.",
		"https://localhost/x", "https://intranet/x", "https://127.0.0.1/x", "https://10.0.0.1/x", "https://93.184.216.34/x", "https://127.1/x", "https://a.0x7f/x", "https://2130706433/x", "https://[::1]/x", "https://[2606:4700::1]/x",
		"https://Claude.ai/x", "https://claude.ai./x", "https://claude..ai/x", "https://-claude.ai/x", "https://clаude.ai/x", "https://bücher.example/x", "https://claude%2eai/x", "https://claude.ai\\x", "https://claude.ai\\@evil.example/x",
		"https://claude.ai/a b", "https://claude.ai/\x00", "https://claude.ai/\r\nHost: x", "https://claude.ai/\t", "https://claude.ai/ü", "https://claude.ai/%", "https://claude.ai/%zz", "https://claude.ai/<x>", "https://claude.ai/" + strings.Repeat("a", 2048),
	} {
		_, err := r.Client(t.Context(), id)
		wantError(t, err, client.Refused, id)
	}
	for _, id := range []string{"http://claude.ai/x", "HTTPS://claude.ai/x", "//claude.ai/x", "file:///etc/passwd", "ftp://claude.ai/x", "gopher://claude.ai/x", " https://claude.ai/x", "claude.ai/x"} {
		_, err := r.Client(t.Context(), id)
		wantError(t, err, client.Unknown, id)
	}
	if d := n.dials(); len(d) != 1 {
		t.Errorf("a refused URL was fetched: %v", d)
	}
}

func TestHomographsAreShownAsPunycode(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	r := build(t, n.options(newClock()))
	const url = "https://xn--clude-8ve.ai/client.json" // with a Cyrillic letter
	n.set(url, page(map[string]any{"client_id": url, "client_name": "\u202e", "redirect_uris": []string{"https://xn--clude-8ve.ai/cb"}}))
	c, err := r.Client(t.Context(), url)
	if err != nil || c.Host != "xn--clude-8ve.ai" || c.Name != "xn--clude-8ve.ai" || client.RedirectHost(c.RedirectURIs[0]) != "xn--clude-8ve.ai" {
		t.Errorf("%+v %v", c, err)
	}
}

func TestDocumentBodies(t *testing.T) {
	t.Parallel()
	const url = "https://app.example/client.json"
	base := func(change func(map[string]any)) []byte {
		m := document(url, "http://localhost/callback", "https://app.example/cb")
		change(m)
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	set := func(name string, v any) []byte { return base(func(m map[string]any) { m[name] = v }) }
	good := map[string][]byte{
		"plain":     base(func(map[string]any) {}),
		"no method": base(func(m map[string]any) { delete(m, "token_endpoint_auth_method") }),
		"prefers jwt": base(func(m map[string]any) {
			m["token_endpoint_auth_method"] = "private_key_jwt"
			m["token_endpoint_auth_methods_supported"] = []string{"none", "private_key_jwt"}
		}),
		"jwks, logo":       base(func(m map[string]any) { m["jwks_uri"] = "http://169.254.169.254/"; m["logo_uri"] = "http://localhost/" }),
		"null members":     base(func(m map[string]any) { m["scope"] = nil; m["contacts"] = nil; m["client_uri"] = nil }),
		"grants":           set("grant_types", []string{"authorization_code", "refresh_token"}),
		"some bad URIs":    set("redirect_uris", []string{"vscode://x/y", "javascript:1", "http://localhost/callback", "https://app.example/cb"}),
		"byte order":       append([]byte("  \n"), base(func(map[string]any) {})...),
		"application_type": set("application_type", "native"),
	}
	for name, body := range good {
		c, err := client.ReadDocument(url, body, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.ID != url || c.Kind != client.Document || !c.Verified || c.Host != "app.example" || c.AuthMethod != client.AuthNone || c.Secret("x") || c.LoopbackOnly ||
			!slices.Equal(c.RedirectURIs, []string{"http://localhost/callback", "https://app.example/cb"}) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	bad := map[string][]byte{
		"empty":         {},
		"null":          []byte("null"),
		"list":          []byte("[]"),
		"html":          []byte("<!doctype html>"),
		"trailing":      append(base(func(map[string]any) {}), '{', '}'),
		"not UTF-8":     []byte(`{"client_id":"` + url + `","client_name":"` + "\xff" + `","redirect_uris":["http://localhost/callback"]}`),
		"deep":          []byte(strings.Repeat(`{"a":`, 20000)),
		"no id":         base(func(m map[string]any) { delete(m, "client_id") }),
		"Client_ID":     base(func(m map[string]any) { delete(m, "client_id"); m["Client_ID"] = url }),
		"other id":      set("client_id", "https://app.example/other.json"),
		"upper-case id": set("client_id", "https://APP.example/client.json"),
		"slash":         set("client_id", url+"/"),
		"id of a list":  set("client_id", []string{url}),
		"secret":        set("client_secret", "x"),
		"null secret":   set("client_secret", nil),
		"only jwt":      set("token_endpoint_auth_method", "private_key_jwt"),
		"only basic":    set("token_endpoint_auth_method", "client_secret_basic"),
		"jwt, post": base(func(m map[string]any) {
			m["token_endpoint_auth_method"] = "private_key_jwt"
			m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
		}),
		"credentials":       set("grant_types", []string{"client_credentials"}),
		"implicit":          set("response_types", []string{"token"}),
		"no redirects":      base(func(m map[string]any) { delete(m, "redirect_uris") }),
		"redirect string":   set("redirect_uris", "http://localhost/callback"),
		"useless redirects": set("redirect_uris", []string{"javascript:1", "http://app.example/cb"}),
	}
	for name, body := range bad {
		_, err := client.ReadDocument(url, body, nil)
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		wantError(t, err, client.Refused, url, "http://app.example/cb")
	}
}

func TestDomainRules(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	for _, host := range []string{"claude.ai", "a.claude.ai", "claude.ai.evil.example", "notclaude.ai", "bad.claude.ai", "x.bad.claude.ai"} {
		url := "https://" + host + "/c"
		n.set(url, page(document(url, "http://localhost/cb")))
	}
	o := n.options(newClock())
	o.Config.Documents.AllowDomains = []string{"Claude.AI"}
	o.Config.Documents.DenyDomains = []string{"bad.claude.ai"}
	r := build(t, o)
	for host, want := range map[string]client.ErrorKind{
		"claude.ai": "", "a.claude.ai": "", "claude.ai.evil.example": client.Refused, "notclaude.ai": client.Refused, "bad.claude.ai": client.Refused, "x.bad.claude.ai": client.Refused,
	} {
		if _, err := r.Client(t.Context(), "https://"+host+"/c"); kindOf(err) != want {
			t.Errorf("%s: %v", host, err)
		}
		if want == client.Refused && n.hit("https://"+host+"/c") != 0 {
			t.Errorf("%s was fetched", host)
		}
	}
}

func TestDocumentsOff(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	o := n.options(newClock())
	o.Config.Documents.Enabled = false
	_, err := build(t, o).Client(t.Context(), "https://claude.ai/c")
	wantError(t, err, client.Unknown)
	if len(n.dials()) != 0 {
		t.Error("fetched")
	}
}
