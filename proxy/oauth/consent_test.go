package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/oauth"
	"aegis/proxy/oauth/upstream"
)

func TestNarrowing(t *testing.T) {
	t.Parallel()
	const asked = "write:repository read:issue write:issue read:user"
	for name, c := range map[string]struct {
		fields []string
		want   string
	}{
		"all":            {nil, "write:repository read:issue write:issue read:user"},
		"read":           {[]string{"access", "read"}, "read:repository read:issue read:user"},
		"pick":           {[]string{"access", "pick", "area.repository", "read", "area.issue", "write", "area.user", "none"}, "read:repository read:issue write:issue"},
		"pick some":      {[]string{"access", "pick", "area.user", "read"}, "read:user"},
		"pick too much":  {[]string{"access", "pick", "area.user", "write", "area.admin", "write"}, "read:user"},
		"unknown choice": {[]string{"access", "everything", "area.user", "read"}, "read:user"},
	} {
		w := build(t, nil)
		b := w.browser()
		b.open(ask("scope", asked))
		b.allow(c.fields...)
		b.back(b.stateOf())
		if got := strings.Join(w.grants.codes[b.location().Get("code")].Scopes, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNothingLeft: whoever leaves nothing is asked again, with what was chosen,
// and the request can still be answered.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	page := b.open(ask("scope", "write:issue read:user")).Body.String()
	if n := len(selects.FindAllString(page, -1)); n != 2 {
		t.Errorf("%d areas to choose from", n)
	}
	rec := b.allow("access", "pick", "area.issue", "none", "area.user", "none")
	if rec.Code != http.StatusUnprocessableEntity || !strings.Contains(rec.Body.String(), "Nothing is left") || !strings.Contains(rec.Body.String(), `<option value="none" selected>`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec = b.allow("say", "perhaps"); rec.Code != http.StatusUnprocessableEntity {
		t.Errorf("neither yes nor no: %d", rec.Code)
	}
	b.allow()
	b.back(b.stateOf())
	b.location()
}

func TestDeny(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	rec := b.allow("say", "deny")
	u, err := url.Parse(b.next())
	if err != nil || rec.Code != http.StatusOK || u.Host != "known.example" || u.Query().Get("error") != "access_denied" || u.Query().Get("state") != "the state" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if w.gitea.logins != 0 || len(w.events) != 1 || w.events[0].Reason != "denied" {
		t.Errorf("events %v, logins %d", w.events, w.gitea.logins)
	}
}

// TestConsentOnce: one form, its copy in another tab and its replay are answered
// once in all.
func TestConsentOnce(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	first := b.form()
	b.open(ask()) // the same request in another tab
	second := b.form()
	for _, f := range []url.Values{first, second} {
		f.Set("access", "all")
		f.Set("say", "allow")
	}
	b.submit(base+"/consent", first)
	b.stateOf()
	for name, f := range map[string]url.Values{"again": first, "other tab": second} {
		if rec := b.submit(base+"/consent", f); rec.Code != http.StatusConflict || b.next() != "" {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	second.Set("say", "deny")
	if rec := b.submit(base+"/consent", second); rec.Code != http.StatusConflict {
		t.Errorf("a no after the yes: %d", rec.Code)
	}
	if w.gitea.logins != 1 {
		t.Errorf("%d sign-ins began", w.gitea.logins)
	}
	b.open(ask("code_challenge", strings.Repeat("x", 43))) // another request
	b.allow()
	b.stateOf()
}

func TestConsentForgery(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	victim, attacker := w.browser(), w.browser()
	attacker.open(ask("client_id", "app", "redirect_uri", "cursor://anysphere.cursor-mcp/oauth/callback"))
	theirs := attacker.form()
	victim.open(ask())
	fill := func(f url.Values, drop ...string) url.Values {
		f.Set("access", "all")
		f.Set("say", "allow")
		for _, d := range drop {
			f.Del(d)
		}
		return f
	}
	token := victim.form().Get("token")
	mixed := fill(attacker.form())
	mixed.Set("token", token)
	changed := fill(victim.form())
	changed.Set("request", "A"+changed.Get("request")[1:])
	twice := fill(victim.form())
	twice.Add("request", theirs.Get("request"))
	for name, f := range map[string]url.Values{
		"no token": fill(victim.form(), "token"), "no request": fill(victim.form(), "request"), "nothing": {}, "the attacker's form": fill(theirs),
		"the attacker's browser token": mixed, "changed": changed, "twice": twice,
	} {
		if rec := victim.submit(base+"/consent", f); rec.Code != http.StatusForbidden && rec.Code != http.StatusBadRequest || victim.next() != "" {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	for name, h := range map[string][]string{
		"cross-site": {"Sec-Fetch-Site", "cross-site"}, "same-site": {"Sec-Fetch-Site", "same-site"}, "none": {"Sec-Fetch-Site", "none"},
		"origin": {"Origin", "https://evil.example"}, "other port": {"Origin", base + ":8443"}, "frame": {"Sec-Fetch-Dest", "iframe"},
		"origin alone": {"Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin"},
	} {
		victim.open(ask())
		if rec := victim.submit(base+"/consent", fill(victim.form()), h...); rec.Code != http.StatusForbidden || victim.next() != "" {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
	victim.open(ask())
	cookies := victim.cookies
	victim.cookies = map[string]string{}
	if rec := victim.submit(base+"/consent", fill(victim.form())); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "cookie") {
		t.Errorf("without a cookie: %d", rec.Code)
	}
	victim.cookies = cookies
	for name, r := range map[string]*http.Request{
		"GET":       httptest.NewRequest(http.MethodGet, base+"/consent?"+fill(victim.form()).Encode(), nil),
		"query":     httptest.NewRequest(http.MethodPost, base+"/consent?"+fill(victim.form()).Encode(), nil),
		"JSON":      httptest.NewRequest(http.MethodPost, base+"/consent", strings.NewReader(`{"say":"allow"}`)),
		"multipart": httptest.NewRequest(http.MethodPost, base+"/consent", strings.NewReader("--x")),
	} {
		if name == "multipart" {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		}
		if victim.do(r); victim.last.Code < 400 || victim.next() != "" {
			t.Errorf("%s: %d", name, victim.last.Code)
		}
	}
	if w.gitea.logins != 0 {
		t.Error("a forged form began a sign-in")
	}
	victim.open(ask())
	victim.allow() // and an honest one still works, from browsers without Sec-Fetch-Site too
	victim.stateOf()
}

func TestConsentTooLate(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	w.clock.add(11 * time.Minute)
	if rec := b.allow(); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "too long") || b.next() != "" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// TestOtherBrowser is the attack of GHSA-rww4-4w9c-7733: the attacker agrees and
// sends the way to Gitea to a victim, whose answer must not become the attacker's.
func TestOtherBrowser(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	attacker, victim := w.browser(), w.browser()
	victim.open(ask()) // the victim has cookies of ours, too
	attacker.open(ask())
	attacker.allow()
	state := attacker.stateOf()
	if rec := victim.back(state); rec.Code != http.StatusForbidden || rec.Header().Get("Location") != "" || victim.next() != "" || strings.Contains(rec.Body.String(), "known.example") {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	// The flow is over for the attacker too.
	if rec := attacker.back(state); rec.Code != http.StatusBadRequest || rec.Header().Get("Location") != "" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
	if len(w.grants.codes) != 0 {
		t.Error("there is a code")
	}
}

func TestCallbackOnce(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	b.allow()
	state := b.stateOf()
	saved := map[string]string{}
	for k, v := range b.cookies {
		saved[k] = v
	}
	b.back(state)
	b.location()
	b.cookies = saved
	for name, target := range map[string]string{
		"replay":   "?code=gitea-code&state=" + state,
		"unknown":  "?code=gitea-code&state=" + strings.Repeat("A", 43),
		"no state": "?code=gitea-code",
		"empty":    "?code=gitea-code&state=",
		"twice":    "?code=gitea-code&state=" + state + "&state=" + state,
		"nothing":  "",
		"garbage":  "?%zz",
		"error":    "?error=access_denied&state=" + state,
	} {
		if rec := b.open(base + "/oauth/callback" + target); rec.Code != http.StatusBadRequest || rec.Header().Get("Location") != "" || b.next() != "" {
			t.Errorf("%s: %d %v", name, rec.Code, rec.Header())
		}
	}
	b.open(ask("code_challenge", strings.Repeat("y", 43)))
	b.allow()
	state = b.stateOf()
	w.clock.add(11 * time.Minute)
	if rec := b.back(state); rec.Code != http.StatusBadRequest || rec.Header().Get("Location") != "" {
		t.Errorf("too late: %d", rec.Code)
	}
	if len(w.grants.codes) != 1 {
		t.Errorf("%d codes", len(w.grants.codes))
	}
}

// TestTwoTabs: two sign-ins of one browser at once do not disturb each other.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	b.allow()
	first := b.stateOf()
	b.open(ask("code_challenge", strings.Repeat("z", 43)))
	b.allow()
	second := b.stateOf()
	for _, state := range []string{second, first} {
		b.back(state)
		if b.location().Get("code") == "" {
			t.Errorf("no code: %d", b.last.Code)
		}
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	var all []*http.Cookie
	all = append(all, b.open(ask()).Result().Cookies()...)
	all = append(all, b.allow().Result().Cookies()...)
	if len(all) < 2 {
		t.Fatalf("cookies: %v", all)
	}
	for _, c := range all {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge == 0 {
			t.Errorf("cookie %v", c)
		}
	}
	// What a neighbour of the domain can plant has another name, or comes twice.
	state := b.stateOf()
	for name, value := range b.cookies {
		delete(b.cookies, name)
		b.cookies[strings.TrimPrefix(name, "__Host-")] = value
	}
	if rec := b.back(state); rec.Code != http.StatusForbidden {
		t.Errorf("a cookie without the prefix was taken: %d", rec.Code)
	}
	// On plain http, which is for loopback, the prefix would keep it from being set.
	w = build(t, func(o *oauth.Options) {
		o.Base, _ = url.Parse("http://127.0.0.1:8080")
		o.Resources = []string{"http://127.0.0.1:8080/mcp"}
	})
	for _, c := range w.get("http://127.0.0.1:8080/authorize?" + strings.SplitN(ask("resource", "-"), "?", 2)[1]).Result().Cookies() {
		if strings.HasPrefix(c.Name, "__Host-") || c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("cookie %v", c)
		}
	}
}

// TestStyleMatchesPolicy: the browser would drop the style otherwise.
func TestStyleMatchesPolicy(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	for _, target := range []string{ask(), base + "/account", ask("client_id", "x")} {
		rec := w.get(target)
		_, rest, _ := strings.Cut(rec.Body.String(), "<style>")
		style, _, ok := strings.Cut(rest, "</style>")
		sum := sha256.Sum256([]byte(style))
		if !ok || !strings.Contains(rec.Header().Get("Content-Security-Policy"), "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("%s: the style is not the one of the policy", target)
		}
	}
}

func TestWhatGoesWrongAtGitea(t *testing.T) {
	t.Parallel()
	for kind, want := range map[upstream.Kind]struct {
		status int
		code   string
	}{
		upstream.Narrow: {403, "access_denied"}, upstream.Wide: {403, "access_denied"}, upstream.Denied: {403, "access_denied"}, upstream.Gone: {403, "access_denied"},
		upstream.Config: {502, "server_error"}, upstream.Unavailable: {503, "temporarily_unavailable"},
	} {
		w := build(t, nil)
		w.gitea.exchange = &upstream.Error{Kind: kind, Public: "do this and that", Err: errors.New("inner cause")}
		b := w.browser()
		b.open(ask())
		b.allow()
		rec := b.back(b.stateOf())
		page := rec.Body.String()
		// The page stays, so that the person can read it; a link tells the client.
		if rec.Code != want.status || b.next() != "" || !strings.Contains(page, "Do this and that.") || !strings.Contains(page, "https://known.example/cb?error="+want.code) || strings.Contains(page, "inner cause") {
			t.Errorf("%s: %d %s", kind, rec.Code, page)
		}
		if len(w.grants.codes) != 0 || !strings.Contains(w.log.String(), "inner cause") {
			t.Errorf("%s: codes %v, log %s", kind, w.grants.codes, w.log.String())
		}
		if (kind == upstream.Narrow || kind == upstream.Wide) != strings.Contains(page, `href="https://git.example/user/settings/applications"`) {
			t.Errorf("%s: link to Gitea: %s", kind, page)
		}
	}
}

func TestDeniedAtGitea(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	b.allow()
	b.open(base + "/oauth/callback?error=access_denied&error_description=<b>no&state=" + b.stateOf())
	if q := b.location(); q.Get("error") != "access_denied" || q.Get("state") != "the state" || strings.Contains(q.Get("error_description"), "<b>") {
		t.Errorf("%v", q)
	}
	for _, answer := range []string{"error=server_error&error_description=<script>", "code="} {
		b.open(ask("code_challenge", strings.Repeat("q", 43), "state", answer))
		b.allow()
		b.open(base + "/oauth/callback?" + answer + "&state=" + b.stateOf())
		if page := b.last.Body.String(); b.last.Code < 400 || strings.Contains(page, "<script") || !strings.Contains(page, "https://known.example/cb?error=server_error") {
			t.Errorf("%s: %d %s", answer, b.last.Code, page)
		}
	}
}

func TestWhoMaySignIn(t *testing.T) {
	t.Parallel()
	people := func(o *oauth.Options) { o.Config.Allow = config.People{Organizations: []string{"acme"}} }
	w := build(t, people)
	w.signIn(w.browser())
	w.gitea.member = false
	b := w.browser()
	b.open(ask())
	b.allow()
	rec := b.back(b.stateOf())
	if rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "signed in to Gitea as alice") || !strings.Contains(rec.Body.String(), "error=access_denied") || len(w.grants.codes) != 1 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	w.gitea.memberErr = &upstream.Error{Kind: upstream.Unavailable, Public: "Gitea is away"}
	b.open(ask("code_challenge", strings.Repeat("m", 43)))
	b.allow()
	if rec = b.back(b.stateOf()); rec.Code != http.StatusServiceUnavailable || len(w.grants.codes) != 1 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// TestStoreTrouble: without a store nobody gets in, and nobody is told inner
// causes.
func TestStoreTrouble(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	form := b.form()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	form.Set("access", "all")
	form.Set("say", "allow")
	for name, rec := range map[string]*httptest.ResponseRecorder{
		"consent": b.submit(base+"/consent", form), "callback": b.back("x"), "account": func() *httptest.ResponseRecorder {
			b.cookies["__Host-aegis-account"] = strings.Repeat("A", 43)
			return b.open(base + "/account")
		}(),
	} {
		if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || rec.Header().Get("Location") != "" || strings.Contains(rec.Body.String(), "closed") || !strings.Contains(rec.Body.String(), "req-1") {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
}

// TestCodeNotMade: the person hears that it did not work, and the client can.
func TestCodeNotMade(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	b := w.browser()
	b.open(ask())
	b.allow()
	state := b.stateOf()
	w.grants.fail = context.DeadlineExceeded
	if rec := b.back(state); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "error=temporarily_unavailable") || len(w.events) != 0 {
		t.Errorf("%d %s %v", rec.Code, rec.Body, w.events)
	}
}
