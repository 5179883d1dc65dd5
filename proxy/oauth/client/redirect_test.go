package client_test

import (
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/oauth/client"
)

const cursor = "cursor://anysphere.cursor-mcp/oauth/callback"

func TestRedirectable(t *testing.T) {
	t.Parallel()
	good := []string{
		"https://claude.ai/api/mcp/auth_callback",
		"https://chatgpt.com/connector/oauth/AbC_1-2",
		"https://app.example:8443/cb?tenant=1&x=%20",
		"https://app.example", "https://intranet/cb", "https://my_app.internal/cb",
		"https://xn--bcher-kva.example/cb", "https://192.0.2.7/cb", "https://[2001:db8::1]/cb",
		"https://127.0.0.1.evil.com/cb", // a host of its own; it never matches 127.0.0.1
		"http://localhost/callback", "http://localhost:1/callback", "http://localhost:65535",
		"http://127.0.0.1/", "http://127.0.0.1:33418/", "http://127.8.9.10:80/x", "http://[::1]:8080/cb", "http://[::1]/cb",
		cursor,
	}
	for _, uri := range good {
		if err := client.Redirectable(uri, []string{cursor}); err != nil {
			t.Errorf("%s: the URI %v", uri, err)
		}
	}
	bad := []string{
		"", "/", "//evil.example/cb", "///evil.example", "callback", "https:", "https:/evil.example/cb", "https:evil.example", "https:///cb", "https://", "http://", "://x",
		// Schemes.
		"javascript:alert(1)", "javascript://localhost/%0aalert(1)", "JavaScript:alert(1)", "data:text/html,x", "data://localhost/x", "file:///etc/passwd",
		"vbscript:x", "blob:https://a.example/1", "about:blank", "view-source:https://a.example", "filesystem:https://a.example/x", "intent://a.example#Intent;end",
		"ws://localhost/", "ftp://localhost/", "mailto:a@b.example", "urn:ietf:wg:oauth:2.0:oob", "HTTPS://app.example/cb", "Http://localhost/cb", "hTTp://127.0.0.1/cb",
		"vscode://vscode.github-authentication/did-authenticate", "cursor://anysphere.cursor-mcp/oauth/callback/", "cursor://anysphere.cursor-mcp/oauth/callback?x=1",
		"cursor://other/oauth/callback", "CURSOR://anysphere.cursor-mcp/oauth/callback", "com.example.app:/cb",
		// Plain http to somewhere else.
		"http://app.example/cb", "http://127.0.0.1.evil.com/cb", "http://localhost.evil/cb", "http://evil.localhost/cb", "http://10.0.0.1/cb", "http://0.0.0.0/cb", "http://[::]/cb", "http://128.0.0.1/cb",
		// Spellings of loopback that some parsers know.
		"http://127.1/cb", "http://127.0.1/cb", "http://2130706433/cb", "http://0x7f.0.0.1/cb", "http://0x7f000001/cb", "http://0177.0.0.1/cb", "http://127.0.0.01/cb", "http://127.000.000.001/cb",
		"http://localhost./cb", "http://127.0.0.1./cb", "http://[0:0:0:0:0:0:0:1]/cb", "http://[::0001]/cb", "http://[::ffff:127.0.0.1]/cb", "http://[::1%25lo]/cb", "http://[::1%lo]/cb", "http://::1/cb", "http://[127.0.0.1]/cb", "http://[localhost]/cb",
		"https://[2001:DB8::1]/cb", "https://[2001:db8:0:0::1]/cb", "https://[fe80::1%25lo]/cb", "https://[::ffff:8.8.8.8]/cb", "https://127.1/cb", "https://a.0x7f/cb", "https://2130706433/cb", "https://1.2.3.4.5/cb", "https://010.0.0.1/cb",
		// Upper case, percent-encoding and other alphabets in hosts.
		"http://LOCALHOST/cb", "http://LocalHost:80/cb", "https://App.Example/cb", "http://loc%61lhost/cb", "https://app%2eexample/cb", "https://%65vil.example/cb", "https://bücher.example/cb", "http://ⅼocalhost/cb", "http://localhost。evil/cb", "http://１２７.0.0.1/cb", "https://evil.example／.app.example/cb",
		// User names, fragments, backslashes, blanks, controls.
		"https://user@app.example/cb", "https://a:b@app.example/cb", "https://@app.example/cb", "http://localhost@evil.example/cb", "http://localhost:80@evil.example/cb", "http://localhost%40evil.example/cb",
		"https://app.example/cb#x", "https://app.example/cb#", "http://localhost#@evil.example/", "https://app.example\\@evil.example/cb", "http://localhost\\.evil.example/cb", "http:\\\\localhost/cb", "https://app.example/a\\b",
		"https://app.example/cb\r\nLocation: https://evil.example", "https://app.example/cb\n", "https://app.example/\tcb", "https://app\t.example/cb", "http://local\nhost/cb", " https://app.example/cb", "https://app.example/cb ", "https://app.example/a b", "https://app.example/\x00", "https://app.example/\x7f", "java\tscript:alert(1)", "\x01javascript:alert(1)",
		"https://app.example/ü", "https://app.example/<x>", "https://app.example/\"x", "https://app.example/{x}", "https://app.example/a|b", "https://app.example/^", "https://app.example/`",
		"https://app.example/%", "https://app.example/%2", "https://app.example/%zz",
		// Ports.
		"http://localhost:/cb", "http://localhost:0/cb", "http://localhost:00/cb", "http://localhost:080/cb", "http://localhost:65536/cb", "http://localhost:99999999999/cb", "http://localhost:-1/cb", "http://localhost:+80/cb", "http://localhost:8a/cb", "http://localhost:80:80/cb", "http://localhost:*/cb", "https://app.example:/cb", "http://[::1]:/cb", "http://[::1]80/cb", "http://[::1", "http://::1]:80/",
		// Paths.
		"https://app.example/../cb", "https://app.example/a/./b", "https://app.example/a/%2e%2E/b", "https://app.example/.", "https://app.example/a/..", "https://app.example?x=1", "http://localhost:80?x", "http://localhost/%2e./cb",
		// Hosts that are none.
		"https://-a.example/", "https://a-.example/", "https://a..example/", "https://.example/", "https://app.example./", "https://*.example/", "https://a,b/", "https://" + strings.Repeat("a", 64) + ".example/", "https://" + strings.Repeat("a.", 127) + "example/",
		"https://app.example/" + strings.Repeat("a", 2048),
	}
	for _, uri := range bad {
		err := client.Redirectable(uri, []string{cursor, "javascript:alert(1)", "data:text/html,x", "http://app.example/cb"})
		if err == nil {
			t.Errorf("accepted %q", uri)
			continue
		}
		checkText(t, err.Error(), uri)
	}
}

// TestRedirectMatches: what a client that registered have may be sent back to.
func TestRedirectMatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		have string
		yes  []string
		no   []string
	}{
		{
			"http://localhost/callback",
			[]string{"http://localhost/callback", "http://localhost:1/callback", "http://localhost:65535/callback"},
			[]string{
				"http://127.0.0.1/callback", "http://[::1]/callback", "https://localhost/callback", "http://localhost/callback/", "http://localhost/Callback",
				"http://localhost/callback?x=1", "http://localhost/", "http://localhost", "http://localhost:8080/other", "http://localhost:8080/callback/../x", "http://localhost:8080/callback#x", "http://localhost:8080//callback",
				"http://localhost.evil.example/callback", "http://localhost:80@evil.example/callback", "http://evil.example/localhost/callback", "http://localhost:0/callback", "http://localhost:/callback",
				"http://LOCALHOST/callback", "HTTP://localhost/callback", "http://localhost:8080/%63allback", "http://localhost:8080/callback%00", "http://localhost\\@evil.example/callback", "http://localhost:8080\\@evil.example/callback", "",
			},
		},
		{
			"http://127.0.0.1:33418/",
			[]string{"http://127.0.0.1/", "http://127.0.0.1:33418/", "http://127.0.0.1:4711/"},
			[]string{"http://127.0.0.1:4711", "http://127.0.0.2:33418/", "http://localhost:33418/", "http://127.1:33418/", "http://127.0.0.1.evil.example:33418/", "http://127.0.0.1:33418/x", "http://0:33418/", "https://127.0.0.1:33418/"},
		},
		{"http://[::1]:80/cb", []string{"http://[::1]/cb", "http://[::1]:9/cb"}, []string{"http://[0:0:0:0:0:0:0:1]/cb", "http://[::ffff:127.0.0.1]/cb", "http://localhost/cb"}},
		{"http://localhost:5/cb?a=1", []string{"http://localhost:6/cb?a=1"}, []string{"http://localhost:5/cb", "http://localhost:5/cb?a=2", "http://localhost:5/cb?a=1&b"}},
		{
			"https://app.example/cb",
			[]string{"https://app.example/cb"},
			[]string{"https://app.example:443/cb", "https://app.example:8443/cb", "http://app.example/cb", "https://APP.example/cb", "https://app.example/cb/", "https://app.example/cb?", "https://app.example/cb#", "https://app.example/%63b", "https://evil.example/cb", "https://app.example.evil/cb", "https://app.example@evil.example/cb", "//app.example/cb"},
		},
		{"https://localhost:8443/cb", []string{"https://localhost:8443/cb"}, []string{"https://localhost:8444/cb", "http://localhost:8443/cb"}},
		{"https://127.0.0.1.evil.com/cb", []string{"https://127.0.0.1.evil.com/cb"}, []string{"http://127.0.0.1/cb", "https://127.0.0.1/cb"}},
		{cursor, []string{cursor}, []string{cursor + "/", cursor + "?x", "CURSOR" + cursor[6:], "cursor://evil/oauth/callback"}},
		{"com.example.app:/cb", []string{"com.example.app:/cb"}, []string{"com.example.app://cb", "com.example.app:/cb/", "com.example.app2:/cb"}},
	}
	for _, tt := range tests {
		r := resolver(t, func(o *client.Options) {
			o.Config.Clients = []config.OAuthClient{{ID: "one", Name: "One", RedirectURIs: []string{tt.have}}}
		})
		c, err := r.Client(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		for _, uri := range tt.yes {
			if !c.Redirect(uri) {
				t.Errorf("%s: %s is refused", tt.have, uri)
			}
		}
		for _, uri := range tt.no {
			if c.Redirect(uri) {
				t.Errorf("%s: %q is accepted", tt.have, uri)
			}
		}
	}
}

func TestRedirectHostIsWhatPeopleSee(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://xn--bcher-kva.example:8443/cb": "xn--bcher-kva.example",
		"http://localhost:5/cb":                 "localhost",
		"http://[::1]:5/cb":                     "[::1]",
		cursor:                                  "cursor:",
		"https://bücher.example/cb":             "",
		"javascript:alert(1)":                   "",
	} {
		if got := client.RedirectHost(uri); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}

func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		uris []string
		want bool
	}{
		{[]string{"http://localhost/cb"}, true},
		{[]string{"http://localhost/cb", "http://127.0.0.1:1/", "http://[::1]/"}, true},
		{[]string{"http://localhost/cb", "https://app.example/cb"}, false},
		{[]string{cursor}, false},
		{[]string{"https://localhost/cb"}, false},
	} {
		r := resolver(t, func(o *client.Options) {
			o.Config.Clients = []config.OAuthClient{{ID: "one", Name: "One", RedirectURIs: tt.uris}}
		})
		c, err := r.Client(t.Context(), "one")
		if err != nil || c.LoopbackOnly != tt.want {
			t.Errorf("%v: %+v %v", tt.uris, c, err)
		}
	}
}
