package fakegitea_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// tokenPath is the endpoint that the faults of these tests are about.
const tokenPath = "/login/oauth/access_token"

// tryRefresh sends a refresh that may fail on the way.
func (a *oauthApp) tryRefresh(ctx context.Context, token string) (int, string, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {a.id}, "client_secret": {a.secret}}
	r, err := http.NewRequestWithContext(ctx, "POST", a.base+tokenPath, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := direct.Transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	return res.StatusCode, res.Header.Get("Content-Type"), nil
}

// TestFaults: the faults that do nothing leave the grant's counter alone, the
// others count it.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fault  fakegitea.OAuthFault
		status int // 0: no answer
		kind   string
		counts bool
	}{
		{"down", fakegitea.OAuthFault{Kind: fakegitea.FaultDown}, 0, "", false},
		{"status", fakegitea.OAuthFault{Kind: fakegitea.FaultStatus}, 502, "text/plain", false},
		{"503", fakegitea.OAuthFault{Kind: fakegitea.FaultStatus, Status: 503}, 503, "text/plain", false},
		{"html", fakegitea.OAuthFault{Kind: fakegitea.FaultHTML}, 200, "text/html", false},
		{"race", fakegitea.OAuthFault{Kind: fakegitea.FaultLostRace}, 400, "application/json", false},
		{"lost answer", fakegitea.OAuthFault{Kind: fakegitea.FaultLostAnswer}, 0, "", true},
	} {
		a := newApp(t, true, fakegitea.Options{})
		a.SetOAuthOptions(fakegitea.OAuthOptions{InvalidateRefreshTokens: true})
		got := a.login("alice", "read:user")
		tt.fault.Times, tt.fault.Paths = 2, []string{tokenPath}
		entered := make(chan struct{}, 1)
		tt.fault.Entered = entered
		a.FailOAuth(tt.fault)
		for range 2 {
			status, kind, err := a.tryRefresh(t.Context(), got.Refresh)
			if status != tt.status || (err != nil) != (tt.status == 0) || !strings.HasPrefix(kind, tt.kind) {
				t.Errorf("%s: %d %q %v", tt.name, status, kind, err)
			}
			if status, _, _ := a.get("/.well-known/openid-configuration", ""); status != 200 {
				t.Errorf("%s: another endpoint fails: %d", tt.name, status)
			}
		}
		if len(entered) != 1 {
			t.Errorf("%s: nobody was told", tt.name)
		}
		again := a.refresh(got.Refresh) // the fault is used up
		if again.status == 200 == tt.counts {
			t.Errorf("%s: %s", tt.name, again.raw)
		}
		if n := a.OAuthCounts(); n.Refresh != 3 {
			t.Errorf("%s: %+v", tt.name, n)
		}
	}
}

// TestHold keeps a request until the test lets it go, before or after the work.
func TestHold(t *testing.T) {
	t.Parallel()
	for kind, done := range map[fakegitea.FaultKind]int64{fakegitea.FaultHold: 1, fakegitea.FaultHoldAnswer: 2} {
		a := newApp(t, true, fakegitea.Options{})
		a.SetOAuthOptions(fakegitea.OAuthOptions{InvalidateRefreshTokens: true})
		got := a.login("alice", "read:user")
		entered, release := make(chan struct{}, 1), make(chan struct{})
		a.FailOAuth(fakegitea.OAuthFault{Kind: kind, Entered: entered, Release: release})
		result := make(chan int, 1)
		go func() {
			status, _, _ := a.tryRefresh(t.Context(), got.Refresh)
			result <- status
		}()
		<-entered
		if c := a.Grants("alice")[0].Counter; c != done || len(result) != 0 {
			t.Errorf("%d: counter %d while held", kind, c)
		}
		if status, _, _ := a.get("/api/v1/user", "Bearer "+got.Access); status != 200 {
			t.Errorf("%d: the API waits too: %d", kind, status)
		}
		close(release)
		if status := <-result; status != 200 || a.Grants("alice")[0].Counter != 2 {
			t.Errorf("%d: %d %+v", kind, status, a.Grants("alice"))
		}
	}
	// A client that goes away ends the waiting.
	a := newApp(t, true, fakegitea.Options{})
	entered := make(chan struct{}, 1)
	a.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultHold, Entered: entered})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, _, err := a.tryRefresh(ctx, "x")
		result <- err
	}()
	<-entered
	cancel()
	if <-result == nil {
		t.Error("it was answered")
	}
	a.ClearOAuthFaults()
	if got := a.refresh("x"); got.Text != "unable to parse refresh token" {
		t.Errorf("cleared: %s", got.raw)
	}
}

// TestHangUpWithoutConnection answers 502 where the connection cannot be closed.
func TestHangUpWithoutConnection(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	s.FailOAuth(fakegitea.OAuthFault{})
	if res := call(s, request{method: "GET", target: "/login/oauth/keys"}); res.Code != 502 || res.Body.Len() != 0 {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}

// TestAppLife: an application that the API made works, its secret rotates, and its
// deletion ends tokens.
func TestAppLife(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	alice := a.Token("alice")
	res := send(a.Server, alice, "POST", "/user/applications/oauth2", `{"name":"mine","redirect_uris":["`+callback+`"],"confidential_client":true}`)
	var app struct {
		ID       int
		ClientID string `json:"client_id"`
		Secret   string `json:"client_secret"`
	}
	if err := json.Unmarshal(res.Body.Bytes(), &app); err != nil || res.Code != 201 {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	code := a.approve("bob", "client_id", app.ClientID, "scope", "read:user").Get("code")
	got := a.tokenAs(app.ClientID, app.Secret, "grant_type", "authorization_code", "code", code, "redirect_uri", callback)
	if got.status != 200 {
		t.Fatalf("%s", got.raw)
	}
	refresh := func(secret string) *tokens {
		return a.tokenAs(app.ClientID, secret, "grant_type", "refresh_token", "refresh_token", got.Refresh)
	}
	if r := refresh(app.Secret); r.status != 200 {
		t.Errorf("refresh: %s", r.raw)
	}
	fresh := a.RotateOAuthSecret(app.ClientID)
	if refresh(app.Secret).Code != "invalid_client" || refresh(fresh).status != 200 || a.RotateOAuthSecret("nope") != "" {
		t.Error("RotateOAuthSecret")
	}
	if !a.DeleteOAuthApp(app.ClientID) {
		t.Fatal("DeleteOAuthApp")
	}
	if r := refresh(fresh); r.Code != "invalid_client" || !strings.HasPrefix(r.Text, "cannot load client with client id: ") {
		t.Errorf("after DELETE: %s", r.raw)
	}
	if status, _, _ := a.get("/api/v1/user", "Bearer "+got.Access); status != 401 || len(a.Grants("bob")) != 0 {
		t.Errorf("after DELETE: %d %+v", status, a.Grants("bob"))
	}
	mine := a.login("bob", "read:user")
	if !a.DeleteOAuthApp(a.id) || a.DeleteOAuthApp(a.id) || a.refresh(mine.Refresh).Code != "invalid_client" {
		t.Error("DeleteOAuthApp")
	}
}

// TestPeople: the number of a user stays through a rename, teams change what she
// sees, and a deleted user's tokens die.
func TestPeople(t *testing.T) {
	t.Parallel()
	a := newApp(t, true, fakegitea.Options{})
	got := a.login("bob", "read:user read:repository write:repository")
	before := payload(t, got.Access)["gnt"]
	if !a.RenameUser("bob", "robert") || a.RenameUser("bob", "x") || a.RenameUser("robert", "ALICE") || a.RenameUser("acme", "x") {
		t.Error("RenameUser")
	}
	if _, _, body := a.get("/api/v1/user", "Bearer "+got.Access); !strings.Contains(body, `"login":"robert"`) {
		t.Errorf("%s", body)
	}
	if g := a.Grants("robert"); len(g) != 1 || float64(g[0].ID) != before || g[0].Login != "robert" {
		t.Errorf("%+v", g)
	}
	pushes := func() string {
		_, _, body := a.get("/api/v1/repos/acme/garden", "Bearer "+got.Access)
		_, rest, _ := strings.Cut(body, `"push":`)
		return rest[:4]
	}
	if pushes() != "true" || !a.SetTeamMember("acme", "developers", "robert", false) || pushes() != "fals" ||
		!a.SetTeamMember("acme", "developers", "robert", true) || pushes() != "true" {
		t.Error("SetTeamMember")
	}
	if a.SetTeamMember("acme", "nope", "robert", true) || a.SetTeamMember("alice", "Owners", "robert", true) || a.SetTeamMember("acme", "Owners", "nope", true) {
		t.Error("SetTeamMember of what does not exist")
	}
	if a.RevokeGrant("alice", a.id) || !a.RevokeGrant("robert", a.id) || a.RevokeGrant("robert", a.id) {
		t.Error("RevokeGrant")
	}
	if _, _, err := a.IssueOAuthTokens("robert", a.id); err == nil || !strings.Contains(err.Error(), "AddGrant") {
		t.Errorf("tokens without a grant: %v", err)
	}
	a.AddGrant("robert", a.id, "read:user")
	access, refresh, err := a.IssueOAuthTokens("robert", a.id)
	if status, _, _ := a.get("/api/v1/user", "Bearer "+access); err != nil || status != 200 || a.refresh(refresh).status != 200 {
		t.Errorf("issued tokens: %d %v", status, err)
	}
}

// TestSaw finds a secret wherever it was sent, and does not when it was not.
func TestSaw(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t/with+odd=chars"
	for where, q := range map[string]request{
		"header Authorization": {method: "GET", target: "/api/v1/version", token: secret},
		"header X-Anything":    {method: "GET", target: "/", header: http.Header{"X-Anything": {"a " + secret + " b"}}},
		"query":                {method: "GET", target: "/?a=" + url.QueryEscape(secret)},
		"path":                 {method: "GET", target: "/api/v1/" + url.PathEscape(secret)},
		"body":                 {method: "POST", target: tokenPath, body: url.Values{"x": {secret}}.Encode()},
	} {
		s := fakegitea.New(fakegitea.Options{})
		if s.Saw(secret) || s.Saw("") {
			t.Errorf("%s: seen before it was sent", where)
		}
		call(s, q)
		if got := s.Sightings(secret); len(got) != 1 || got[0].Where != where || got[0].Method != q.method || !s.Saw(secret) {
			t.Errorf("%s: %+v", where, got)
		}
		s.ResetRequests()
		if s.Saw(secret) {
			t.Errorf("%s: seen after the reset", where)
		}
	}
	s := fakegitea.New(fakegitea.Options{})
	call(s, request{method: "GET", target: "/api/v1/user", header: http.Header{"Authorization": {basic("alice", secret)}}})
	if !s.Saw(secret) {
		t.Error("not seen inside Basic")
	}
	for range 4096 {
		get(s, "", "/version")
	}
	if s.Saw(secret) || s.Dropped() != 1 {
		t.Errorf("dropped: %d", s.Dropped())
	}
}

// FuzzAuthorize throws parameters at the authorization endpoint: whatever they
// are, a browser is only ever sent to a registered address, and gets no code
// before somebody agreed.
func FuzzAuthorize(f *testing.F) {
	s := fakegitea.New(fakegitea.Options{})
	id, _ := s.RegisterOAuthApp("gateway", true, callback, "custom:/back?x=1")
	login := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/user/login", strings.NewReader("user_name=alice&password=demo-password"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.ServeHTTP(login, r)
	cookie := login.Result().Cookies()[0]
	if cookie.Name != "i_like_gitea" {
		f.Fatalf("%v", cookie)
	}
	for _, q := range []string{
		"client_id=" + id + "&response_type=code&redirect_uri=" + url.QueryEscape(callback),
		"client_id=" + id + "&response_type=token&state=%0d%0a&redirect_uri=" + url.QueryEscape(callback+"/"),
		"client_id=" + id + "&redirect_uri=custom:/back%3fx%3d1&state=%ff", "client_id=" + id + "&redirect_uri=//evil.example", "%zz;=&&a", "",
		"client_id=" + id + "&client_id=x&redirect_uri=http%3A%2F%2F127.0.0.1%3A9999%2Fcallback%2F%2F&code_challenge_method=S256",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/login/oauth/authorize", nil)
		r.URL.RawQuery = query
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		loc := w.Header().Get("Location")
		low := strings.ToLower(loc)
		switch {
		case w.Code == 303 && !strings.HasPrefix(low, callback+"?") && !strings.HasPrefix(low, callback+"/?") && !strings.HasPrefix(low, "custom:/back?") && !strings.HasPrefix(low, "custom:///back?"):
			t.Errorf("sent to %q", loc)
		case w.Code == 303 && strings.Contains(loc, "code="):
			t.Errorf("a code without consent: %q", loc)
		case w.Code != 303 && w.Code != 200 && w.Code != 400 || strings.ContainsAny(loc, "\r\n"):
			t.Errorf("%d %q", w.Code, loc)
		}
		if strings.Contains(w.Body.String(), "<script") {
			t.Error("markup in the page")
		}
	})
}
