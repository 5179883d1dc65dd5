package oauth_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/oauth"
	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/upstream"
)

// clock is a clock that stands until it is set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// fakeGitea signs everybody in as alice, number 7.
type fakeGitea struct {
	user                                  upstream.User
	exchange, credential, state, rejected error
	dead                                  bool // State says no
	member                                bool
	memberErr                             error
	forgotten                             []int64
	logins, credentials                   int
}

func (g *fakeGitea) LoginURL(state, verifier string) string {
	g.logins++
	return "https://git.example/login/oauth/authorize?state=" + state
}
func (g *fakeGitea) Exchange(_ context.Context, code, verifier string) (*upstream.User, error) {
	if g.exchange != nil {
		return nil, g.exchange
	}
	if code != "gitea-code" || len(verifier) < 43 {
		return nil, errors.New("not the code of this test")
	}
	u := g.user
	return &u, nil
}
func (g *fakeGitea) Credential(context.Context, int64) (upstream.Credential, error) {
	g.credentials++
	if g.credential != nil {
		return upstream.Credential{}, g.credential
	}
	return upstream.Credential{Token: proxy.NewCredential(proxy.ModeOAuth, "gitea-access-token"),
		Login: g.user.Login, Scopes: g.user.Scopes}, nil
}
func (g *fakeGitea) State(context.Context, int64) (bool, error) { return !g.dead, g.state }
func (g *fakeGitea) Forget(_ context.Context, id int64) error {
	g.forgotten = append(g.forgotten, id)
	return nil
}
func (g *fakeGitea) Member(context.Context, int64, config.People) (bool, error) {
	return g.member, g.memberErr
}
func (g *fakeGitea) Rejected(context.Context, int64, proxy.Credential) error { return g.rejected }
func (g *fakeGitea) RevokeURL() string                                       { return "https://git.example/user/settings/applications" }

// fakeGrants are grants without lifetimes, whose failures can be ordered.
type fakeGrants struct {
	n       int
	codes   map[string]grant.Code
	grants  map[string]*grant.Grant // by id
	fail    error                   // what every method answers
	refused []error                 // what Allow answered
}

func (g *fakeGrants) IssueCode(_ context.Context, c grant.Code) (string, error) {
	if g.fail != nil {
		return "", g.fail
	}
	g.n++
	code := "aegis_ac_" + strconv.Itoa(g.n)
	g.codes[code] = c
	return code, nil
}

func (g *fakeGrants) tokens(gr *grant.Grant) *grant.Tokens {
	return &grant.Tokens{Access: "aegis_at_" + gr.ID, Refresh: "aegis_rt_" + gr.ID, ExpiresIn: time.Hour,
		Scopes: gr.Scopes, Grant: *gr}
}

func (g *fakeGrants) Redeem(_ context.Context, code string, r grant.Redeem) (*grant.Tokens, error) {
	if g.fail != nil {
		return nil, g.fail
	}
	c, ok := g.codes[code]
	sum := sha256.Sum256([]byte(r.Verifier))
	if !ok || c.ClientID != r.ClientID || c.RedirectURI != r.RedirectURI ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != c.Challenge {
		return nil, grant.ErrInvalid
	}
	if r.Resource != "" && r.Resource != c.Resource {
		return nil, grant.ErrTarget
	}
	delete(g.codes, code)
	g.n++
	gr := &grant.Grant{ID: "g" + strconv.Itoa(g.n), ClientID: c.ClientID, ClientName: c.ClientName,
		Verified: c.Verified, UserID: c.UserID, Login: c.Login, Scopes: c.Scopes, Resource: c.Resource}
	g.grants[gr.ID] = gr
	return g.tokens(gr), nil
}

func (g *fakeGrants) Refresh(ctx context.Context, token string, r grant.Refresh) (*grant.Tokens, error) {
	if g.fail != nil {
		return nil, g.fail
	}
	gr := g.grants[strings.TrimPrefix(token, "aegis_rt_")]
	if gr == nil || gr.ClientID != r.ClientID {
		return nil, grant.ErrInvalid
	}
	if err := r.Allow(ctx, *gr); err != nil {
		g.refused = append(g.refused, err)
		if errors.Is(err, grant.ErrDenied) {
			delete(g.grants, gr.ID)
			return nil, fmt.Errorf("%w: %w", grant.ErrInvalid, err)
		}
		return nil, err
	}
	return g.tokens(gr), nil
}

func (g *fakeGrants) Verify(_ context.Context, access string) (*grant.Grant, error) {
	if g.fail != nil {
		return nil, g.fail
	}
	gr := g.grants[strings.TrimPrefix(access, "aegis_at_")]
	if gr == nil {
		return nil, grant.ErrInvalid
	}
	return gr, nil
}

func (g *fakeGrants) Revoke(_ context.Context, token, clientID string) (bool, error) {
	if g.fail != nil {
		return false, g.fail
	}
	id := strings.TrimPrefix(strings.TrimPrefix(token, "aegis_rt_"), "aegis_at_")
	if gr := g.grants[id]; gr != nil && gr.ClientID == clientID {
		delete(g.grants, id)
		return true, nil
	}
	return false, nil
}

func (g *fakeGrants) Get(_ context.Context, id string) (grant.Grant, error) {
	if gr := g.grants[id]; gr != nil || g.fail != nil {
		return *cmp.Or(gr, &grant.Grant{}), g.fail
	}
	return grant.Grant{}, grant.ErrInvalid
}

func (g *fakeGrants) List(_ context.Context, userID int64) (list []grant.Grant, err error) {
	for _, gr := range g.grants {
		if gr.UserID == userID {
			list = append(list, *gr)
		}
	}
	return list, g.fail
}

func (g *fakeGrants) All(context.Context) iter.Seq2[grant.Grant, error] {
	return func(yield func(grant.Grant, error) bool) {
		for _, gr := range g.grants {
			if !yield(*gr, g.fail) {
				return
			}
		}
	}
}

func (g *fakeGrants) End(_ context.Context, id string) error {
	delete(g.grants, id)
	return g.fail
}

func (g *fakeGrants) EndUser(_ context.Context, userID int64) (n int, err error) {
	for id, gr := range g.grants {
		if gr.UserID == userID {
			delete(g.grants, id)
			n++
		}
	}
	return n, g.fail
}

// world is a server with everything around it.
type world struct {
	t      testing.TB
	server *oauth.Server
	mux    *http.ServeMux
	gitea  *fakeGitea
	grants *fakeGrants
	store  *kv.Memory
	clock  *clock
	events []oauth.Event
	log    bytes.Buffer
	codes  *fakeCodes
	addr   string
}

type fakeCodes struct{ pending []oauth.PendingCode }

func (c *fakeCodes) Pending(context.Context, int64) ([]oauth.PendingCode, error) {
	return c.pending, nil
}

const (
	base     = "https://aegis.example"
	endpoint = base + "/mcp"
	team     = base + "/mcp/red"
)

// settings is the configuration of most tests.
func settings() config.OAuth {
	c := config.Default().Auth.OAuth
	c.Enabled, c.ClientID, c.ClientSecret = true, "app", config.NewSecret("secret-of-the-application")
	c.Admins = []string{"root"}
	c.Clients = []config.OAuthClient{
		{ID: "known", Name: "Known client", RedirectURIs: []string{"https://known.example/cb",
			"http://127.0.0.1/callback"}},
		{ID: "secretive", Name: "Secretive", Secret: config.NewSecret("secret of+the%20client"),
			RedirectURIs: []string{"https://secretive.example/cb?x=1"}},
		{ID: "app", Name: "App", RedirectURIs: []string{"cursor://anysphere.cursor-mcp/oauth/callback"}},
	}
	return c
}

// build makes a world; change may alter the configuration.
func build(t testing.TB, change func(*oauth.Options)) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{at: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}, addr: "192.0.2.7",
		codes: &fakeCodes{},
		gitea: &fakeGitea{user: upstream.User{ID: 7,
			Credential: upstream.Credential{Login: "alice", Scopes: settings().Scopes}}, member: true},
		grants: &fakeGrants{codes: map[string]grant.Code{}, grants: map[string]*grant.Grant{}}}
	w.store = kv.NewMemory(w.clock.now)
	ring, err := seal.New([]byte("a key of at least thirty-two bytes"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	o := oauth.Options{Config: settings(), Base: u, Grants: w.grants, Upstream: w.gitea, Store: w.store,
		Keys:      ring.Derive,
		Resources: []string{endpoint, team}, Codes: w.codes, Log: zerolog.New(&w.log), Now: w.clock.now,
		Event: func(_ *proxy.RequestInfo, e oauth.Event) { w.events = append(w.events, e) }}
	if change != nil {
		change(&o)
	}
	if o.Clients == nil {
		resolver, err := client.NewResolver(client.Options{Config: o.Config, Store: w.store, Keys: ring.Derive,
			Now: w.clock.now,
			Lookup: func(context.Context, string) ([]netip.Addr, error) {
				return nil, errors.New("no names here")
			}})
		if err != nil {
			t.Fatal(err)
		}
		o.Clients = resolver
	}
	if w.server, err = oauth.New(o); err != nil {
		t.Fatal(err)
	}
	w.mux = http.NewServeMux()
	w.server.Register(w.mux)
	return w
}

// send answers a request.
func (w *world) send(r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r = r.WithContext(proxy.WithRequestInfo(r.Context(), &proxy.RequestInfo{RequestID: "req-1", Addr: w.addr}))
	w.mux.ServeHTTP(rec, r)
	return rec
}

func (w *world) get(target string) *httptest.ResponseRecorder {
	return w.send(httptest.NewRequest(http.MethodGet, target, nil))
}

// post sends a form as programs do.
func (w *world) post(target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.send(r)
}

// browser keeps cookies and sends what browsers send.
type browser struct {
	w       *world
	cookies map[string]string
	last    *httptest.ResponseRecorder
}

func (w *world) browser() *browser { return &browser{w: w, cookies: map[string]string{}} }

func (b *browser) do(r *http.Request) *httptest.ResponseRecorder {
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	b.last = b.w.send(r)
	for _, c := range b.last.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return b.last
}

func (b *browser) open(target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Dest", "document")
	return b.do(r)
}

// submit sends a form from one of our own pages, which tell no referrer.
func (b *browser) submit(target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Dest", "document")
	r.Header.Set("Origin", "null")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return b.do(r)
}

var (
	hidden  = regexp.MustCompile(`<input type="hidden" name="([a-z_.]+)" value="([^"]*)">`)
	refresh = regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]*)">`)
	selects = regexp.MustCompile(`<select class="pick" name="([^"]+)"`)
)

// form returns the hidden fields of the page that was shown last.
func (b *browser) form() url.Values { return formOf(b.last.Body.String()) }

func formOf(page string) url.Values {
	f := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		f.Set(m[1], html.UnescapeString(m[2]))
	}
	return f
}

// next returns where the page that was shown last goes by itself.
func (b *browser) next() string { return refreshOf(b.last.Body.String()) }

func refreshOf(page string) string {
	m := refresh.FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

const verifier = "a-verifier-of-more-than-forty-three-characters-0123456789"

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ask returns the address that a client opens.
func ask(pairs ...string) string {
	q := url.Values{"client_id": {"known"}, "redirect_uri": {"https://known.example/cb"}, "response_type": {"code"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "state": {"the state"}, "resource": {endpoint}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "-" {
			q.Del(pairs[i])
			continue
		}
		q.Set(pairs[i], pairs[i+1])
	}
	return base + "/authorize?" + q.Encode()
}

// allow answers the consent page that was shown last; extra are further fields.
func (b *browser) allow(extra ...string) *httptest.ResponseRecorder {
	f := b.form()
	f.Set("access", "all")
	f.Set("say", "allow")
	for i := 0; i+1 < len(extra); i += 2 {
		f.Set(extra[i], extra[i+1])
	}
	return b.submit(base+"/consent", f)
}

// stateOf returns the state of the address at Gitea that the page leads to.
func (b *browser) stateOf() string {
	b.w.t.Helper()
	u, err := url.Parse(b.next())
	if err != nil || u.Host != "git.example" {
		b.w.t.Fatalf("the page does not lead to Gitea: %d %s", b.last.Code, b.last.Body)
	}
	return u.Query().Get("state")
}

// back comes back from Gitea.
func (b *browser) back(state string) *httptest.ResponseRecorder {
	return b.open(base + "/oauth/callback?code=gitea-code&state=" + url.QueryEscape(state))
}

// location returns the query of the address that the last answer leads to.
func (b *browser) location() url.Values {
	b.w.t.Helper()
	u, err := url.Parse(b.last.Header().Get("Location"))
	if err != nil || b.last.Code != http.StatusFound {
		b.w.t.Fatalf("no redirect: %d %s", b.last.Code, b.last.Body)
	}
	return u.Query()
}

// signIn goes the whole way and returns the code.
func (w *world) signIn(b *browser, pairs ...string) string {
	w.t.Helper()
	if b.open(ask(pairs...)).Code != http.StatusOK {
		w.t.Fatalf("no consent page: %d %s", b.last.Code, b.last.Body)
	}
	b.allow()
	b.back(b.stateOf())
	code := b.location().Get("code")
	if code == "" {
		w.t.Fatalf("no code: %v", b.last.Header())
	}
	return code
}

// redeem exchanges a code as a public client.
func (w *world) redeem(code string, pairs ...string) *httptest.ResponseRecorder {
	f := url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {"https://known.example/cb"}, "code_verifier": {verifier}, "client_id": {"known"}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return w.post(base+"/token", f)
}

// object reads a JSON answer, which must hold no null.
func object(t testing.TB, rec *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil || strings.Contains(rec.Body.String(), "null") ||
		rec.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("not JSON without nulls: %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	return m
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
