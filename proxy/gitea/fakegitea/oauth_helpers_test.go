package fakegitea_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"aegis/proxy/gitea/fakegitea"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// callback is the redirect URI of the tests' applications.
const callback = "http://127.0.0.1:9999/callback"

// verifier and challenge are a PKCE pair.
const verifier = "0123456789-0123456789-0123456789-0123456789"

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// oauthApp is a double with one application, served on loopback.
type oauthApp struct {
	*fakegitea.Server
	t          *testing.T
	base       string // where it is reached, with the sub-path
	id, secret string
	now        *time.Time
}

// newApp starts a double with an application.
func newApp(t *testing.T, confidential bool, opts fakegitea.Options) *oauthApp {
	t.Helper()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	a := &oauthApp{t: t, now: &now, Server: fakegitea.New(opts)}
	a.SetClock(func() time.Time { return now })
	srv := httptest.NewServer(a.Server)
	t.Cleanup(srv.Close)
	a.base = srv.URL + opts.SubPath
	a.id, a.secret = a.RegisterOAuthApp("gateway", confidential, callback)
	return a
}

// authorizeURL is a request of the authorization endpoint; pairs of words replace
// or, when empty, remove parameters.
func (a *oauthApp) authorizeURL(pairs ...string) string {
	q := url.Values{"client_id": {a.id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"st8"}}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return a.base + "/login/oauth/authorize?" + q.Encode()
}

// approve lets a user agree and returns the parameters at the client.
func (a *oauthApp) approve(login string, pairs ...string) url.Values {
	a.t.Helper()
	loc, err := a.Approve(login, a.authorizeURL(pairs...))
	if err != nil {
		a.t.Fatal(err)
	}
	u, err := url.Parse(loc)
	if err != nil || !strings.HasPrefix(loc, callback+"?") {
		a.t.Fatalf("sent to %q: %v", loc, err)
	}
	return u.Query()
}

// tokens is an answer of the token endpoint.
type tokens struct {
	status  int
	raw     string
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
	Code    string `json:"error"`
	Text    string `json:"error_description"`
}

// token sends a form to the token endpoint with the client's Basic credentials.
func (a *oauthApp) token(pairs ...string) *tokens {
	a.t.Helper()
	return a.tokenAs(a.id, a.secret, pairs...)
}

// tokenAs is token with chosen credentials; an empty id sends none.
func (a *oauthApp) tokenAs(id, secret string, pairs ...string) *tokens {
	a.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	auth := ""
	if id != "" {
		auth = basic(id, secret)
	}
	status, _, body := a.post("/login/oauth/access_token", auth, form)
	out := &tokens{status: status, raw: body}
	if err := json.Unmarshal([]byte(body), out); err != nil {
		a.t.Fatalf("%d %s: %v", status, body, err)
	}
	return out
}

// redeem exchanges a code.
func (a *oauthApp) redeem(code string, pairs ...string) *tokens {
	a.t.Helper()
	return a.token(append([]string{"grant_type", "authorization_code", "code", code, "redirect_uri", callback}, pairs...)...)
}

// refresh uses a refresh token.
func (a *oauthApp) refresh(token string) *tokens {
	a.t.Helper()
	return a.token("grant_type", "refresh_token", "refresh_token", token)
}

// login does it all: approval and exchange.
func (a *oauthApp) login(user, scope string) *tokens {
	a.t.Helper()
	out := a.redeem(a.approve(user, "scope", scope).Get("code"))
	if out.status != 200 {
		a.t.Fatalf("login of %s: %d %s", user, out.status, out.raw)
	}
	return out
}

// post sends a form.
func (a *oauthApp) post(path, auth string, form url.Values) (int, http.Header, string) {
	a.t.Helper()
	r, err := http.NewRequest("POST", a.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return a.do(r, auth)
}

// get asks for a path.
func (a *oauthApp) get(path, auth string) (int, http.Header, string) {
	a.t.Helper()
	r, err := http.NewRequest("GET", a.base+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.do(r, auth)
}

// do sends a request without a browser's memory.
func (a *oauthApp) do(r *http.Request, auth string) (int, http.Header, string) {
	a.t.Helper()
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	res, err := direct.Transport.RoundTrip(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

// person is a browser with a cookie jar that follows no redirect.
type person struct {
	t    *testing.T
	http *http.Client
}

func newPerson(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &person{t, &http.Client{Transport: direct.Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// open visits an address, by POST when there is a form.
func (p *person) open(address string, form url.Values, header ...string) (*http.Response, string) {
	p.t.Helper()
	method := "GET"
	if form != nil {
		method = "POST"
	}
	r, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res, string(body)
}

// fields reads the hidden fields of the page's form.
func fields(page string) url.Values {
	out := url.Values{}
	for _, m := range regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		out.Set(m[1], strings.NewReplacer("&#43;", "+", "&amp;", "&", "&#34;", `"`).Replace(m[2]))
	}
	return out
}
