package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	neturl "net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/config"
	"aegis/proxy/oauth/client"
)

// FuzzRedirect: whatever is accepted means the same to another parser: the
// registered URI itself, or plain http to the same loopback host, path and query.
func FuzzRedirect(f *testing.F) {
	for _, have := range []string{"http://localhost/cb", "http://127.0.0.1:33418/", "http://[::1]:1/cb?x=1", "https://app.example/cb", cursor} {
		for _, got := range []string{have, "http://localhost:8080/cb", "http://127.0.0.1:1/", "http://localhost\\@evil.example/cb", "http://localhost:1@evil.example/cb", "http://127.1/", "HTTP://LOCALHOST/cb", "http://localhost:0/cb#x"} {
			f.Add(have, got)
		}
	}
	f.Fuzz(func(t *testing.T, have, got string) {
		if client.Redirectable(have, []string{cursor}) != nil {
			if c := (&client.Client{RedirectURIs: []string{have}}); !strings.Contains(have, ":/") && c.Redirect(got) {
				t.Fatalf("%q matches %q, which cannot be registered", got, have)
			}
			return
		}
		h, err := neturl.Parse(have)
		if err != nil || h.User != nil || h.Fragment != "" || h.Opaque != "" || h.Scheme != "https" && h.Scheme != "http" && have != cursor {
			t.Fatalf("%q can be registered: %+v %v", have, h, err)
		}
		if h.Scheme == "http" {
			if a, err := netip.ParseAddr(h.Hostname()); h.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
				t.Fatalf("%q can be registered", have)
			}
		}
		c := &client.Client{RedirectURIs: []string{have}}
		if !c.Redirect(have) {
			t.Fatalf("%q does not match itself", have)
		}
		if have == got || !c.Redirect(got) {
			return
		}
		g, err := neturl.Parse(got)
		if err != nil || h.Scheme != "http" || g.Scheme != "http" || g.Hostname() != h.Hostname() || g.EscapedPath() != h.EscapedPath() || g.RawQuery != h.RawQuery || g.User != nil || g.Fragment != "" || strings.ContainsAny(got, "\\\r\n\t #") {
			t.Fatalf("%q matches %q", got, have)
		}
	})
}

// FuzzRegister: every body gets a well-formed answer without nulls, and a client
// that was registered can be found.
func FuzzRegister(f *testing.F) {
	for _, a := range zoo {
		if a.register != "" {
			f.Add([]byte(a.register))
		}
	}
	f.Add([]byte(`{"redirect_uris":["javascript:1"],"client_name":"\ud800"}`))
	f.Add([]byte(`{"redirect_uris":null}`))
	r := resolver(f, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		status, answer := r.Register(t.Context(), body)
		var got map[string]any
		if err := json.Unmarshal(answer, &got); err != nil || !utf8.Valid(answer) {
			t.Fatalf("%q: %v", answer, err)
		}
		for name, v := range got {
			if v == nil {
				t.Fatalf("%s is null", name)
			}
		}
		switch status {
		case http.StatusCreated:
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			text, _ := got["error_description"].(string)
			checkText(t, text)
			return
		default:
			t.Fatalf("status %d", status)
		}
		id, _ := got["client_id"].(string)
		c, err := r.Client(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var uris []string
		for _, uri := range got["redirect_uris"].([]any) {
			uris = append(uris, uri.(string))
		}
		secret, _ := got["client_secret"].(string)
		if !slices.Equal(uris, c.RedirectURIs) || c.Name != got["client_name"] || c.Secret(secret) != (c.AuthMethod != client.AuthNone) || c.Verified || len(id) > client.MaxID {
			t.Fatalf("%+v, answered %s", c, answer)
		}
		for _, uri := range uris {
			if client.Redirectable(uri, config.Default().Auth.OAuth.PrivateRedirects) != nil || !c.Redirect(uri) {
				t.Fatalf("%q was registered", uri)
			}
		}
	})
}

// FuzzDocument: a document gives a public client of its own URL, or a refusal
// that can be shown.
func FuzzDocument(f *testing.F) {
	for _, a := range zoo {
		if a.at != "" {
			f.Add(a.at, []byte(`{"client_id":"`+a.at+`",`+a.document[1:]))
		}
	}
	f.Add("https://a.example/../x", []byte(`{}`))
	f.Add(url, []byte(`{"client_id":"`+url+`","redirect_uris":["javascript:1",null]}`))
	f.Fuzz(func(t *testing.T, at string, body []byte) {
		c, err := client.ReadDocument(at, body, nil)
		if err != nil {
			var e *client.Error
			if !errors.As(err, &e) || e.Kind != client.Refused {
				t.Fatal(err)
			}
			checkText(t, e.Public)
			return
		}
		u, err := neturl.Parse(at)
		if err != nil || u.Scheme != "https" || u.Host != c.Host || u.Port() != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(u.Path) < 2 {
			t.Fatalf("%q is no URL of a document: %+v", at, u)
		}
		if c.ID != at || c.AuthMethod != client.AuthNone || c.Secret("") || len(c.RedirectURIs) == 0 || c.Name == "" || utf8.RuneCountInString(c.Name) > 60 {
			t.Fatalf("%+v", c)
		}
		for _, uri := range c.RedirectURIs {
			if client.Redirectable(uri, nil) != nil {
				t.Fatalf("%q is accepted", uri)
			}
		}
	})
}

// FuzzClientID: an id that no key of the ring made is unknown, and data that one
// vouches for is still read with care.
func FuzzClientID(f *testing.F) {
	r := resolver(f, nil)
	stranger := resolver(f, func(o *client.Options) { o.Keys = ring("a key that made nothing") })
	made, _ := save(f, r, `{"redirect_uris":["http://localhost/cb"],"client_name":"x"}`)
	f.Add(made.ID)
	f.Add(made.ID[:len(made.ID)-1])
	f.Add("aegis_dc1.AAAAAAAA.AAAA")
	f.Add("https://app.example/client.json")
	f.Add("\x01\x00\x00\x00\x0012345678\x01x\x01\x04\x02cb")
	f.Add("\x00\x00\x00\x00\x0012345678\x00\x02\x00\x0cjavascript:1\x03\x0280")
	whole := "\x01\x00\x00\x00\x0012345678\x01x\x01\x04\x02cb"
	for i := range whole { // cut everywhere, and with a length that is none
		f.Add(whole[:i])
		f.Add(whole[:i] + "\xff\xff\xff\xff\xff\xff\xff\xff\x01")
		f.Add(whole[:i] + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	f.Fuzz(func(t *testing.T, id string) {
		c, err := stranger.Client(t.Context(), id)
		if kindOf(err) == "" {
			t.Fatalf("%q is %+v, %v", id, c, err)
		}
		if _, err = r.Client(t.Context(), id); err != nil && kindOf(err) == "" {
			t.Fatal(err)
		}
		signed := client.Sign(r, []byte(id))
		if c, err = r.Client(t.Context(), signed); err != nil {
			if kindOf(err) == "" {
				t.Fatal(err)
			}
			return
		}
		for _, uri := range c.RedirectURIs {
			if client.Redirectable(uri, []string{cursor}) != nil {
				t.Fatalf("%q may be used", uri)
			}
		}
		if _, err = stranger.Client(t.Context(), signed); kindOf(err) != client.Unknown {
			t.Fatal(err)
		}
	})
}
