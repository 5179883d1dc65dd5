package fakegitea_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/proxy/gitea/fakegitea"
)

// payload decodes the claims of a JWT.
func payload(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a JWT: %q", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRedeemRefusals lists the errors of an exchange; none of them uses the code
// up.
func TestRedeemRefusals(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	code := a.approve("alice", "scope", "read:user", "code_challenge", challenge(), "code_challenge_method", "S256").Get("code")
	other, otherSecret := a.RegisterOAuthApp("other", true, callback, "http://127.0.0.1:9999/second")
	for _, tt := range []struct {
		name, id, secret string
		pairs            []string
		code, text       string
	}{
		{"unknown client", "nope", "x", nil, "invalid_client", "cannot load client with client id: 'nope'"},
		{"wrong secret", a.id, "wrong", nil, "unauthorized_client", "invalid client secret"},
		{"no secret", a.id, "", nil, "unauthorized_client", "invalid empty client secret"},
		{"unknown code", a.id, a.secret, []string{"code", "gta_x"}, "unauthorized_client", "client is not authorized"},
		{"no verifier", a.id, a.secret, nil, "unauthorized_client", "failed PKCE code challenge"},
		{"wrong verifier", a.id, a.secret, []string{"code_verifier", challenge()}, "unauthorized_client", "failed PKCE code challenge"},
		{"foreign redirect", a.id, a.secret, []string{"code_verifier", verifier, "redirect_uri", "http://evil.example/"}, "unauthorized_client", "unexpected redirect URI"},
		{"no redirect", a.id, a.secret, []string{"code_verifier", verifier, "redirect_uri", ""}, "invalid_grant", "redirect_uri differs from the original authorization request"},
		{"redirect with a slash", a.id, a.secret, []string{"code_verifier", verifier, "redirect_uri", callback + "/"}, "invalid_grant", "redirect_uri differs from the original authorization request"},
		{"another client", other, otherSecret, []string{"code_verifier", verifier}, "invalid_grant", "invalid grant"},
		{"grant type", a.id, a.secret, []string{"grant_type", "client_credentials"}, "unsupported_grant_type", "Only refresh_token or authorization_code grant type is supported"},
		{"two client ids", a.id, a.secret, []string{"client_id", other}, "invalid_request", "client_id in request body inconsistent with Authorization header"},
		{"two secrets", a.id, a.secret, []string{"client_secret", "x"}, "invalid_request", "client_secret in request body inconsistent with Authorization header"},
		{"the body goes before the header", a.id, a.secret, []string{"client_id", a.id, "client_secret", "x"}, "unauthorized_client", "invalid client secret"},
	} {
		pairs := append([]string{"grant_type", "authorization_code", "code", code, "redirect_uri", callback}, tt.pairs...)
		got := a.tokenAs(tt.id, tt.secret, pairs...)
		if got.status != 400 || got.Code != tt.code || got.Text != tt.text {
			t.Errorf("%s: %d %s", tt.name, got.status, got.raw)
		}
	}
	if got := a.redeem(code, "code_verifier", verifier); got.status != 200 {
		t.Fatalf("the code is gone: %s", got.raw)
	}
	if got := a.redeem(code, "code_verifier", verifier); got.Code != "unauthorized_client" || got.Text != "client is not authorized" {
		t.Errorf("a used code: %s", got.raw)
	}
	code = a.approve("alice").Get("code")
	*a.now = a.now.Add(10 * time.Minute)
	if got := a.redeem(code); got.Code != "invalid_grant" || got.Text != "authorization code expired" {
		t.Errorf("an old code: %s", got.raw)
	}
	if got := a.redeem(code); got.Text != "client is not authorized" {
		t.Errorf("an old code again: %s", got.raw)
	}
}

// TestTokenForms takes credentials in the header or the body, and JSON bodies.
func TestTokenForms(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	refresh := a.login("alice", "read:user").Refresh
	if got := a.tokenAs("", "", "client_id", a.id, "client_secret", a.secret, "grant_type", "refresh_token", "refresh_token", refresh); got.status != 200 {
		t.Errorf("credentials in the body: %s", got.raw)
	}
	body, err := json.Marshal(map[string]string{"client_id": a.id, "client_secret": a.secret, "grant_type": "refresh_token", "refresh_token": refresh})
	if err != nil {
		t.Fatal(err)
	}
	res := call(a, request{method: "POST", target: "/login/oauth/access_token", body: string(body)})
	if res.Code != 200 || res.Header().Get("Content-Type") != "application/json;charset=utf-8" {
		t.Errorf("JSON: %d %s", res.Code, res.Body)
	}
	if n := a.OAuthCounts(); n.Token != 3 || n.Refresh != 2 {
		t.Errorf("%+v", n)
	}
	if status, _, body := a.post("/login/oauth/access_token", "Bearer x", url.Values{}); status != 401 || body != "Failed to authenticate user\n" {
		t.Errorf("Bearer: %d %s", status, body)
	}
	if status, _, body := a.post("/login/oauth/access_token", "Basic !!", url.Values{}); status != 400 || !strings.Contains(body, "cannot parse basic auth header") {
		t.Errorf("broken Basic: %d %s", status, body)
	}
	if status, header, _ := a.get("/login/oauth/access_token", ""); status != 405 || header.Get("Allow") != "POST" {
		t.Errorf("GET: %d %v", status, header)
	}
}

// TestRefresh: by default every refresh token stays good until it expires, and an
// access token is as good; the errors are those of a provider that says 400 only.
func TestRefresh(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	first := a.login("alice", "read:user")
	if c := payload(t, first.Refresh); c["tt"] != 1.0 || c["cnt"] != nil || c["exp"].(float64)-c["iat"].(float64) != 730*3600 {
		t.Errorf("refresh token: %v", c)
	}
	if c := payload(t, first.Access); c["tt"] != 0.0 || c["gnt"] == nil || c["exp"].(float64)-c["iat"].(float64) != 3600 || len(c) != 4 {
		t.Errorf("access token: %v", c)
	}
	*a.now = a.now.Add(time.Second)
	second := a.refresh(first.Refresh)
	if second.status != 200 || second.Refresh == first.Refresh || a.refresh(first.Refresh).status != 200 || a.refresh(first.Access).status != 200 {
		t.Errorf("%d %s", second.status, second.raw)
	}
	if status, _, _ := a.get("/api/v1/user", "token "+first.Access); status != 200 {
		t.Errorf("the first access token: %d", status)
	}
	if status, _, body := a.get("/api/v1/user", "Bearer "+first.Refresh); status != 401 || !strings.Contains(body, "invalid username, password or token") {
		t.Errorf("a refresh token at the API: %d %s", status, body)
	}
	other, otherSecret := a.RegisterOAuthApp("other", true, callback)
	for _, tt := range []struct{ name, id, secret, token, code, text string }{
		{"garbage", a.id, a.secret, "garbage", "unauthorized_client", "unable to parse refresh token"},
		{"empty", a.id, a.secret, "", "unauthorized_client", "unable to parse refresh token"},
		{"signature", a.id, a.secret, first.Refresh[:len(first.Refresh)-8] + "AAAAAAAA", "unauthorized_client", "unable to parse refresh token"},
		{"wrong secret", a.id, "wrong", first.Refresh, "invalid_client", "invalid client secret"},
		{"no secret", a.id, "", first.Refresh, "invalid_client", "invalid empty client secret"},
		{"unknown client", "nope", "", first.Refresh, "invalid_client", `cannot load client with client id: "nope"`},
		{"another client", other, otherSecret, first.Refresh, "invalid_grant", "refresh token belongs to a different client"},
	} {
		got := a.tokenAs(tt.id, tt.secret, "grant_type", "refresh_token", "refresh_token", tt.token)
		if got.status != 400 || got.Code != tt.code || got.Text != tt.text {
			t.Errorf("%s: %d %s", tt.name, got.status, got.raw)
		}
	}
	*a.now = a.now.Add(time.Hour)
	if status, _, _ := a.get("/api/v1/user", "Bearer "+second.Access); status != 401 {
		t.Errorf("an expired access token: %d", status)
	}
	if got := a.refresh(first.Access); got.Text != "unable to parse refresh token" {
		t.Errorf("an expired access token at refresh: %s", got.raw)
	}
	if a.refresh(first.Refresh).status != 200 {
		t.Error("the refresh token is dead after an hour")
	}
	*a.now = a.now.Add(730 * time.Hour)
	if got := a.refresh(first.Refresh); got.Code != "unauthorized_client" || got.Text != "unable to parse refresh token" {
		t.Errorf("an expired refresh token: %s", got.raw)
	}
}

// TestInvalidatedRefresh: one counter for each grant, so that every answer ends all
// earlier refresh tokens; replay revokes nothing.
func TestInvalidatedRefresh(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	before := a.login("alice", "read:user")
	a.SetOAuthOptions(fakegitea.OAuthOptions{InvalidateRefreshTokens: true, AccessLifetime: 5 * time.Minute})
	if got := a.refresh(before.Refresh); got.Text != "token was already used" {
		t.Errorf("a token without counter: %s", got.raw)
	}
	first := a.login("alice", "read:user")
	second := a.refresh(first.Refresh)
	if second.status != 200 || second.Expires != 300 || payload(t, second.Refresh)["cnt"] != payload(t, first.Refresh)["cnt"].(float64)+1 {
		t.Fatalf("%s", second.raw)
	}
	if got := a.refresh(first.Refresh); got.status != 400 || got.Code != "unauthorized_client" || got.Text != "token was already used" {
		t.Errorf("replay: %s", got.raw)
	}
	if got := a.refresh(second.Access); got.Text != "token was already used" {
		t.Errorf("an access token: %s", got.raw)
	}
	third := a.login("alice", "read:user") // a second login of the same user
	if got := a.refresh(second.Refresh); got.Text != "token was already used" {
		t.Errorf("after another login: %s", got.raw)
	}
	if status, _, _ := a.get("/api/v1/user", "Bearer "+first.Access); status != 200 {
		t.Errorf("the first access token: %d", status)
	}
	var wg sync.WaitGroup
	results := make(chan string, 12)
	for range cap(results) {
		wg.Go(func() {
			got := a.refresh(third.Refresh)
			results <- got.Text
		})
	}
	wg.Wait()
	close(results)
	n := map[string]int{}
	for text := range results {
		n[text]++
	}
	if n[""] != 1 || n["token was already used"] != 11 {
		t.Errorf("twelve at once: %v", n)
	}
	if g := a.Grants("alice"); g[0].Counter != 4 {
		t.Errorf("counter: %+v", g)
	}
}

// TestGrantScopes holds how the words of a grant become rights; it fails open.
func TestGrantScopes(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	for asked, want := range map[string]string{
		"":                                   "all",
		"openid profile email groups":        "all",
		"all":                                "all",
		"read:user bogus:scope":              "all",
		"offline_access read:user":           "all",
		"openid,read:user":                   "all",
		"repo":                               "all",
		"READ:user":                          "all",
		"read:user":                          "read:user",
		"openid read:repository write:issue": "write:issue,read:repository",
		"read:repository,write:issue":        "write:issue,read:repository",
		"read:user,,":                        "read:user",
		"read:user write:user":               "write:user",
		"public-only":                        "public-only",
		"public-only read:repository":        "public-only,read:repository",
		",":                                  "",
		"write:activitypub write:admin":      "write:activitypub,write:admin",
		"write:activitypub write:admin write:misc write:notification write:organization write:package write:issue write:repository write:user": "all",
	} {
		id, _ := a.RegisterOAuthApp("x", true, callback)
		if !a.AddGrant("bob", id, asked) || a.AddGrant("bob", id, asked) {
			t.Fatalf("%q: AddGrant", asked)
		}
		grants := a.Grants("bob")
		if got := grants[len(grants)-1].Effective; got != want {
			t.Errorf("%q: %q, want %q", asked, got, want)
		}
	}
	// What the words say is what happens.
	token := a.login("alice", "read:user bogus").Access
	if status, _, body := a.get("/api/v1/notifications", "Bearer "+token); status != 200 {
		t.Errorf("an unknown word: %d %s", status, body)
	}
}

// TestIntrospection tells the truth about a grant, to its own client.
func TestIntrospection(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{RootURL: "https://git.example/sub/"})
	got := a.login("alice", "read:user bogus")
	ask := func(id, secret, token string) (int, http.Header, string) {
		return a.post("/login/oauth/introspect", basic(id, secret), url.Values{"token": {token}})
	}
	want := `{"active":true,"scope":"read:user bogus","username":"alice","iss":"https://git.example/sub","sub":"1","aud":["` + a.id + `"]}` + "\n"
	for _, token := range []string{got.Access, got.Refresh} {
		if status, _, body := ask(a.id, a.secret, token); status != 200 || body != want {
			t.Errorf("%d %s, want %s", status, body, want)
		}
	}
	other, otherSecret := a.RegisterOAuthApp("other", true, callback)
	const dead = `{"active":false}` + "\n"
	for name, token := range map[string]string{"empty": "", "garbage": "a.b.c", "a PAT": a.Token("alice")} {
		if status, _, body := ask(a.id, a.secret, token); status != 200 || body != dead {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _, body := ask(other, otherSecret, got.Access); status != 200 || body != dead {
		t.Errorf("another client: %d %s", status, body)
	}
	for _, secret := range []string{"", "wrong"} {
		if status, header, body := ask(a.id, secret, got.Access); status != 401 || header.Get("WWW-Authenticate") != `Basic realm="Gitea OAuth2"` || body != "no valid authorization" {
			t.Errorf("secret %q: %d %v %s", secret, status, header, body)
		}
	}
	a.RenameUser("alice", "alina")
	if _, _, body := ask(a.id, a.secret, got.Access); !strings.Contains(body, `"username":"alina"`) || !strings.Contains(body, `"sub":"1"`) {
		t.Errorf("renamed: %s", body)
	}
	// Servers up to 1.26 take the form field for an API token.
	a.SetOAuthOptions(fakegitea.OAuthOptions{OldIntrospection: true})
	for name, token := range map[string]string{"garbage": "a.b.c", "refresh token": got.Refresh} {
		if status, _, body := ask(a.id, a.secret, token); status != 401 || body != "Failed to authenticate user\n" {
			t.Errorf("old, %s: %d %s", name, status, body)
		}
	}
	if status, _, body := ask(other, otherSecret, got.Access); status != 200 || !strings.Contains(body, `"active":true`) {
		t.Errorf("old, another client: %d %s", status, body)
	}
}

// TestNoIdentity: what OpenID Connect has beyond OAuth is not in the demo.
func TestNoIdentity(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	got := a.login("alice", "openid profile")
	for _, path := range []string{"/login/oauth/userinfo", "/login/oauth/keys"} {
		if status, _, body := a.get(path, "Bearer "+got.Access); status != 501 || body != "not in the demo\n" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if strings.Contains(got.raw, "id_token") {
		t.Errorf("%s", got.raw)
	}
}
