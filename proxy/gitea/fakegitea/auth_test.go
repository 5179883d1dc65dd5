package fakegitea_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// basic is a Basic header.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// TestSchemes checks every way to present a token.
func TestSchemes(t *testing.T) {
	t.Parallel()
	s, tok := newLab(t)
	for _, tt := range []struct {
		name, auth, query string
		status            int
		warned            bool
	}{
		{"token", "token " + tok, "", 200, false},
		{"Bearer", "Bearer " + tok, "", 200, false},
		{"bearer", "bearer " + tok, "", 200, false},
		{"TOKEN", "TOKEN " + tok, "", 200, false},
		{"bare", tok, "", 401, false},
		{"upper case", "token " + strings.ToUpper(tok), "", 401, false},
		{"basic", basic("alice", tok), "", 200, false},
		{"basic as user", basic(tok, ""), "", 200, false},
		{"basic x-oauth-basic", basic(tok, "x-oauth-basic"), "", 200, false},
		{"basic with another name", basic("bob", tok), "", 200, false},
		{"basic password", basic("alice", "demo-password"), "", 200, false},
		{"basic wrong", basic("alice", "nope"), "", 401, false},
		{"query token", "", "?token=" + tok, 200, true},
		{"query access_token", "", "?access_token=" + tok, 200, true},
	} {
		h := http.Header{}
		if tt.auth != "" {
			h.Set("Authorization", tt.auth)
		}
		res := call(s, request{method: "GET", target: "/api/v1/user" + tt.query, header: h})
		if res.Code != tt.status || (res.Header().Get("X-Gitea-Warning") != "") != tt.warned {
			t.Errorf("%s: %d %v", tt.name, res.Code, res.Header())
		}
		if tt.status == 200 && !strings.Contains(res.Body.String(), `"login":"alice"`) {
			t.Errorf("%s: not alice: %s", tt.name, res.Body)
		}
	}
}

// TestQueryTokenOff refuses credentials in the query when told to.
func TestQueryTokenOff(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{DisableQueryToken: true})
	if res := get(s, "", "/user?token="+s.Token("alice")); res.Code != 401 {
		t.Errorf("%d", res.Code)
	}
}

// TestSudo lets administrators act as others, and refuses anyone else who even
// asks, wherever the wish stands.
func TestSudo(t *testing.T) {
	t.Parallel()
	s, alice := newLab(t)
	admin := s.Token("aegis-admin")
	const refused = `{"message":"Only administrators allowed to sudo."}`
	for _, tt := range []struct {
		name, token, target, sudo string
		status                    int
		body                      string
	}{
		{"admin header", admin, "/user", "bob", 200, `"login":"bob"`},
		{"admin query", admin, "/user?sudo=bob", "", 200, `"login":"bob"`},
		{"admin unknown", admin, "/user", "nobody", 404, `"message":"not found"`},
		{"alice", alice, "/user", "bob", 403, refused},
		{"alice herself", alice, "/user", "alice", 403, refused},
		{"alice query", alice, "/user?sudo=bob", "", 403, refused},
		{"alice version", alice, "/version", "bob", 403, refused},
		{"nobody", "", "/repos/acme/paths-lab", "bob", 403, refused},
	} {
		h := http.Header{}
		if tt.sudo != "" {
			h.Set("Sudo", tt.sudo)
		}
		res := call(s, request{method: "GET", target: "/api/v1" + tt.target, token: tt.token, header: h})
		if res.Code != tt.status || !strings.Contains(res.Body.String(), tt.body) {
			t.Errorf("%s: %d %s", tt.name, res.Code, res.Body)
		}
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	res := call(s, request{method: "POST", target: "/api/v1/repos/acme/paths-lab/issues", token: alice, body: "title=x&sudo=bob", header: form})
	if res.Code != 403 || res.Body.String() != refused {
		t.Errorf("sudo in a form: %d %s", res.Code, res.Body)
	}
	res = send(s, alice, "POST", "/repos/acme/paths-lab/issues", `{"title":"x","sudo":"bob"}`)
	if res.Code != 201 || !strings.Contains(res.Body.String(), `"login":"alice"`) {
		t.Errorf("sudo in JSON: %d %s", res.Code, res.Body)
	}
	if res := call(s, request{method: "GET", target: "/api/v1/user", token: alice, header: http.Header{"Sudo": {""}}}); res.Code != 200 {
		t.Errorf("empty header: %d", res.Code)
	}
}

// TestScopes enforces what a token was made for.
func TestScopes(t *testing.T) {
	t.Parallel()
	s, _ := newLab(t)
	for _, tt := range []struct {
		scopes         []string
		method, target string
		status         int
		message        string
	}{
		{[]string{"read:repository"}, "GET", "/repos/acme/paths-lab", 200, ""},
		{[]string{"read:repository"}, "GET", "/version", 200, ""},
		{[]string{"read:repository"}, "GET", "/repos/acme/issues-lab/issues", 403, "required=[read:issue], token scope=read:repository"},
		{[]string{"read:repository"}, "GET", "/user", 403, "required=[read:user], token scope=read:repository"},
		{[]string{"read:repository"}, "GET", "/user/repos", 403, "required=[read:user], token scope=read:repository"},
		{[]string{"read:user"}, "GET", "/user/repos", 403, "required=[read:repository], token scope=read:user"},
		{[]string{"read:repository", "read:user"}, "GET", "/user/repos", 200, ""},
		{[]string{"read:repository"}, "GET", "/orgs/acme", 403, "required=[read:organization], token scope=read:repository"},
		{[]string{"read:repository"}, "GET", "/notifications", 403, "required=[read:notification], token scope=read:repository"},
		{[]string{"read:repository"}, "GET", "/packages/acme", 403, "required=[read:package], token scope=read:repository"},
		{[]string{"read:repository"}, "POST", "/repos/acme/paths-lab/branches", 403, "required=[write:repository], token scope=read:repository"},
		{[]string{"read:repository", "write:issue"}, "GET", "/admin/users", 403, "required=[read:admin], token scope=write:issue,read:repository"},
		{[]string{"write:repository"}, "GET", "/repos/acme/paths-lab", 200, ""},
		{[]string{"all"}, "GET", "/user", 200, ""},
		{[]string{"public-only", "read:repository"}, "GET", "/repos/acme/issues-lab", 200, ""},
		{[]string{"public-only", "read:repository"}, "GET", "/repos/acme/private-repo", 404, "not found"},
		{[]string{"public-only", "read:user"}, "GET", "/user/emails", 403, "public-only"},
		{[]string{"public-only", "read:user"}, "GET", "/user", 200, ""},
	} {
		res := send(s, s.NewToken("alice", tt.scopes...), tt.method, tt.target, "")
		if res.Code != tt.status || !strings.Contains(message(res), tt.message) {
			t.Errorf("%v %s: %d %q, want %d %q", tt.scopes, tt.target, res.Code, message(res), tt.status, tt.message)
		}
		if strings.Contains(tt.message, "required=") && !strings.HasPrefix(message(res), "token does not have at least one of required scope(s), ") {
			t.Errorf("%v %s: %q", tt.scopes, tt.target, message(res))
		}
	}
	if s.NewToken("alice", "bogus") != "" || s.Token("nobody") != "" {
		t.Error("an unknown scope or user got a token")
	}
}
