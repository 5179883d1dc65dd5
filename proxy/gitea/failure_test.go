package gitea_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
)

const swagger = `,"url":"http://127.0.0.1:3300/api/swagger"}`

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status int
		media  string
		body   string
		kind   proxy.Kind
		wants  []string
	}{
		{"bad request", 400, "application/json", `{"message":"sha not found [main]"` + swagger, proxy.KindBadRequest, []string{"sha not found [main]"}},
		{"bad escape", 400, "text/plain", "400 Bad Request", proxy.KindBadRequest, []string{"400 Bad Request"}},
		{"bad token", 401, "application/json", `{"message":"invalid username, password or token"` + swagger, proxy.KindUnauthorized, []string{"invalid username, password or token", "Gitea token of this identity"}},
		{"scope", 403, "application/json", `{"message":"token does not have at least one of required scope(s), required=[read:issue], token scope=read:repository"` + swagger, proxy.KindForbidden, []string{"required=[read:issue]", "token scope=read:repository"}},
		{"no admin", 403, "application/json", `{"message":"user should be the site admin"` + swagger, proxy.KindForbidden, []string{"site admin"}},
		{"sudo", 403, "application/json", `{"message":"Only administrators allowed to sudo."}`, proxy.KindForbidden, []string{"Only administrators"}},
		{"not found", 404, "application/json", `{"message":"not found"` + swagger, proxy.KindNotFound, []string{"not found", "may not see it"}},
		{"unknown route", 404, "text/plain; charset=utf-8", "404 page not found\n", proxy.KindNotFound, []string{"404 page not found", "may not see it"}},
		{"empty 404", 404, "", "", proxy.KindNotFound, []string{"may not see it"}},
		{"file", 404, "application/json", `{"message":"object does not exist [id: , rel_path: docs/nope.txt]"` + swagger, proxy.KindNotFound, []string{"rel_path: docs/nope.txt"}},
		{"merge later", 405, "application/json", `{"message":"Please try again later"` + swagger, proxy.KindMethodNotAllowed, []string{"Please try again later"}},
		{"merge of a draft", 405, "application/json", `{"message":"Work in progress PRs cannot be merged"` + swagger, proxy.KindMethodNotAllowed, []string{"Work in progress PRs cannot be merged"}},
		{"wrong method", 405, "", "", proxy.KindMethodNotAllowed, []string{"does not allow"}},
		{"head out of date", 409, "application/json", `{"message":"head out of date"` + swagger, proxy.KindConflict, []string{"head out of date"}},
		{"gone", 410, "application/json", `{"message":"gone"}`, proxy.KindGone, []string{"gone"}},
		{"precondition", 412, "application/json", `{"message":"x"}`, proxy.KindPreconditionFailed, []string{"x"}},
		{"attachment", 413, "application/json", `{"message":"attachment exceeds limit 104857600"` + swagger, proxy.KindPayloadTooLarge, []string{"104857600"}},
		{"validation", 422, "application/json", `{"message":"[Title]: Required"` + swagger, proxy.KindValidation, []string{"[Title]: Required"}},
		{"sha of a file", 422, "application/json", `{"message":"sha does not match [given: 0000000000000000000000000000000000000000, expected: b9bca019c83a65e6d717d0b6da86215f45dde1b3]"` + swagger, proxy.KindValidation, []string{"b9bca019c83a65e6d717d0b6da86215f45dde1b3"}},
		{"topics", 422, "application/json", `{"invalidTopics":["up x","b"],"message":"Topic name is invalid"}`, proxy.KindValidation, []string{"Topic name is invalid", "up x, b"}},
		{"one topic", 422, "application/json", `{"invalidTopics":"up x","message":"Topic name is invalid"}`, proxy.KindValidation, []string{"up x"}},
		{"list of errors", 422, "application/json", `{"errors":["first","second"]}`, proxy.KindValidation, []string{"first, second"}},
		{"list of error objects", 422, "application/json", `{"errors":[{"message":"first"},{"message":"second"}]}`, proxy.KindValidation, []string{"first, second"}},
		{"archived", 423, "application/json", `{"message":"repo is archived"` + swagger, proxy.KindLocked, []string{"repo is archived"}},
		{"rate", 429, "text/html", "<html><head><title>429 Too Many Requests</title></head><body><center>nginx/1.25.3</center></body></html>", proxy.KindRateLimited, []string{"429 Too Many Requests"}},
		{"teapot", 418, "", "", proxy.KindBadRequest, []string{"teapot"}},
		{"unnamed status", 499, "", "", proxy.KindBadRequest, []string{"refused"}},
		{"500 for a caller", 500, "application/json", `{"message":""` + swagger, proxy.KindUpstreamError, []string{"Gitea failed"}},
		{"500 for an administrator", 500, "application/json", `{"message":"GetCommit[nope]: object does not exist [id: nope, rel_path: ]"` + swagger, proxy.KindUpstreamError, []string{"GetCommit[nope]"}},
		{"501", 501, "", "", proxy.KindUpstreamError, []string{"Gitea failed"}},
		{"gateway", 502, "text/html", "<html><head><title>502 Bad Gateway</title></head><body><hr><center>nginx</center></body></html>", proxy.KindUpstreamUnavailable, []string{"502 Bad Gateway"}},
		{"broken json", 422, "application/json", `{"message":"x`, proxy.KindValidation, []string{"Unprocessable"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := serve(t, answer(tc.status, tc.media, tc.body, "Retry-After", "3600"))
			e := fails(t, client(t, u.URL), call(get("/x"), nil), tc.kind)
			if e.Status != tc.status {
				t.Errorf("status %d", e.Status)
			}
			for _, want := range tc.wants {
				if !strings.Contains(e.Public, want) {
					t.Errorf("no %q in: %s", want, e.Public)
				}
			}
			for _, bad := range []string{"127.0.0.1", "3300", "swagger", "<", "nginx/"} {
				if strings.Contains(e.Public, bad) {
					t.Errorf("%q in: %s", bad, e.Public)
				}
			}
			if e.RetryAfter != time.Hour {
				t.Errorf("retry after %s", e.RetryAfter)
			}
		})
	}
}

func TestInsidesStayInside(t *testing.T) {
	t.Parallel()
	stack := "runtime error: invalid memory address\n\n/usr/local/go/src/runtime/panic.go:262\n/go/src/code.gitea.io/gitea/routers/api/v1/repo/branch.go:77 (0x1a2b3c4d)\ngoroutine 87 [running]:\n" + strings.Repeat("x", 8000)
	for _, tc := range []struct{ media, body string }{
		{"text/plain", stack},
		{"application/json", `{"message":` + quote(stack) + `}`},
		{"application/json", `{"message":"Error 1062 (23000): Duplicate entry 'alice' for key 'user.UQE_user_name'"}`},
		{"application/json", `{"message":"SELECT ` + "`id`" + ` FROM ` + "`user`" + ` WHERE passwd='x': no such table: user"}`},
		{"application/json", `{"message":"pq: password authentication failed for user \"gitea\""}`},
		{"application/json", `{"message":"dial tcp 10.1.2.3:5432: connect: connection refused"}`},
		{"text/html", "<html><body><pre>" + stack + "</pre></body></html>"},
	} {
		u := serve(t, answer(500, tc.media, tc.body))
		e := fails(t, client(t, u.URL), call(get("/x"), nil), proxy.KindUpstreamError)
		if e.Public != "Gitea failed; the cause is in its log" {
			t.Errorf("%.60q: %s", tc.body, e.Public)
		}
	}
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

func TestScrub(t *testing.T) {
	t.Parallel()
	jwt := "eyJhbGciOiJSUzI1NiJ9" + "." + "eyJnbnQiOjN9" + "." + "c2lnbmF0dXJl"
	for _, tc := range []struct{ name, in, want string }{
		{"the caller's token", "bad " + callerToken + "!", "bad [REDACTED]!"},
		{"authorization", "header Authorization: token abc", "header Authorization: [REDACTED]"},
		{"bearer", "got Bearer abcdefghijklmnopqrst from you", "got Bearer [REDACTED] from you"},
		{"words about tokens stay", "invalid username, password or token", "invalid username, password or token"},
		{"scopes stay", "token scope=read:repository", "token scope=read:repository"},
		{"json web token", "x " + jwt + " y", "x [REDACTED] y"},
		{"pair", "access_token=abcdef&x=1 password: hunter22", "access_token=[REDACTED]&x=1 password: [REDACTED]"},
		{"other forges' tokens", "gh" + "p_0123456789abcdefABCD", "[REDACTED]"},
		{"user in a URL", "clone https://bob:pw@example.org/x failed", "clone https://example.org/x failed"},
		{"gitea itself", "see http://git.corp.example:3000/api/swagger", "see http://[host]/api/swagger"},
		{"gitea by name", "at GIT.corp.example today", "at [host] today"},
		{"public host stays", "cannot migrate from https://github.com/o/r", "cannot migrate from https://github.com/o/r"},
		{"private address", "from 10.1.2.3 and 192.168.0.7", "from [host] and [host]"},
		{"address with port", "dial 8.8.8.8:53", "dial [host]"},
		{"name with port", "lookup db.prod:5432: no", "lookup [host]: no"},
		{"one word with port", "postgres:5432", "[host]"},
		{"ipv6", "dial [fd00::1]:80 and fe80::1 and ::1", "dial [host] and [host] and [host]"},
		{"local names", "host redis.svc.cluster.local, localhost", "host [host], [host]"},
		{"single-label URL", "post http://hooks/x", "post http://[host]/x"},
		{"versions stay", "1.28.0 of 8.8.8.8", "1.28.0 of 8.8.8.8"},
		{"times stay", `parsing time "2006-01-02T15:04:05Z07:00"`, `parsing time "2006-01-02T15:04:05Z07:00"`},
		{"path on disk", "open /var/lib/gitea/data/x.db: denied", "open [path]: denied"},
		{"path in quotes", `stat "/data/git/repositories/o/r.git"`, `stat "[path]"`},
		{"windows path", `open C:\gitea\data\x now`, "open [path] now"},
		{"path in a repository stays", "file docs/usr/readme.md and /repos/o/r", "file docs/usr/readme.md and /repos/o/r"},
		{"source line", "at routers/api/x.go:77 now", "at [path] now"},
		{"control characters", "a\x00b\x1b[31mc\r\nd\te\u202ef\u200b", "a b [31mc d ef"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"markup", "<h1>Not <b>found</b></h1><script>alert(1)</script>", "Not found"},
		{"private key", "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY----- x", "[REDACTED] x"},
		{"no markup", "a < b", "a"},
	} {
		if got := gitea.Scrub(tc.in, "git.corp.example:3000", callerToken); strings.TrimSpace(got) != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	long := gitea.Scrub(strings.Repeat("ü ", 9000), "h", "")
	if n := utf8.RuneCountInString(long); n != 4000 || !strings.HasSuffix(long, "…") {
		t.Errorf("%d characters", n)
	}
}

// TestScrubKeepsNoHalfWord: what the bound cuts may be a secret.
func TestScrubKeepsNoHalfWord(t *testing.T) {
	t.Parallel()
	for before := 8150; before < 8192; before++ {
		got := gitea.Scrub("<p>"+strings.Repeat("<br>x ", before/6)+strings.Repeat("y",
			before%6)+" zq-half-a-secret-0123456789-abcdefghij", "h", "")
		if i := strings.Index(got, "zq-"); i >= 0 && !strings.Contains(got, "abcdefghij") {
			t.Fatalf("%d: half a word is left: %q", before, got[i:])
		}
	}
}

// FuzzScrub: whatever comes in, what goes out is one bounded line without
// control characters, markup, the caller's token or a private address.
func FuzzScrub(f *testing.F) {
	f.Add("plain")
	f.Add("Authorization: Bearer " + callerToken)
	f.Add("dial tcp 10.0.0.1:80 <a href='x'>")
	f.Add("\xff\x00\u202e<<>>::::[::1]:1")
	f.Fuzz(func(t *testing.T, in string) {
		for _, text := range []string{in, in + " " + callerToken + " 10.1.2.3 " + in,
			in + " Bearer " + strings.Repeat("x", 40)} {
			out := gitea.Scrub(text, "git.example.org:3000", callerToken)
			if !utf8.ValidString(out) || utf8.RuneCountInString(out) > 4000 {
				t.Fatalf("%q", out)
			}
			if strings.Contains(out, callerToken) || strings.Contains(out, "10.1.2.3") {
				t.Fatalf("%q leaks: %q", text, out)
			}
			for _, r := range out {
				if unicode.IsControl(r) || r == '\u2028' || r == '\u202e' {
					t.Fatalf("%q holds %U", out, r)
				}
			}
		}
	})
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, nil)
	args := proxy.Arguments{"owner": "alice", "repo": "ren-old"}
	for _, tc := range []struct {
		name, path, location string
		status               int
		kind                 proxy.Kind
		want                 string
	}{
		{"renamed repository", "/repos/{owner}/{repo}/issues", "/api/v1/repos/alice/ren-new/issues?state=all&token=x", 301, proxy.KindMoved, "alice/ren-new"},
		{"below a sub-path", "/repos/{owner}/{repo}", "/git/api/v1/repos/bob/ren-old", 301, proxy.KindMoved, "bob/ren-old"},
		{"renamed account", "/users/{owner}", "/api/v1/users/alicia", 301, proxy.KindMoved, "alicia"},
		{"same name", "/repos/{owner}/{repo}", "/api/v1/repos/Alice/ren-old", 301, proxy.KindUpstreamError, "redirect"},
		{"elsewhere", "/repos/{owner}/{repo}", other.URL + "/api/v1/repos/alice/ren-new", 301, proxy.KindUpstreamError, "redirect"},
		{"storage", "/repos/{owner}/{repo}/archive", "https://bucket.example/x?X-Amz-Signature=abc", 302, proxy.KindUpstreamError, "redirect"},
		{"login page", "/repos/{owner}/{repo}", "/user/login", 303, proxy.KindUpstreamError, "redirect"},
		{"temporary", "/repos/{owner}/{repo}", "/api/v1/repos/alice/ren-new", 307, proxy.KindMoved, "alice/ren-new"},
		{"no location", "/repos/{owner}/{repo}", "", 301, proxy.KindUpstreamError, "redirect"},
		{"hostile name", "/repos/{owner}/{repo}", "/api/v1/repos/al%0Aice/x%20y", 301, proxy.KindUpstreamError, "redirect"},
		{"broken", "/repos/{owner}/{repo}", "http://[::1", 301, proxy.KindUpstreamError, "redirect"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := serve(t, answer(tc.status, "text/html", "<a href=x>Moved</a>", "Location", tc.location))
			for _, method := range []string{"GET", "POST", "DELETE"} {
				tool := write(method, tc.path)
				tool.ReadOnly = method == "GET"
				e := fails(t, client(t, u.URL), call(tool, args), tc.kind)
				if !strings.Contains(e.Public, tc.want) {
					t.Errorf("message: %s", e.Public)
				}
				for _, bad := range []string{"token=", "Signature", "bucket", "/api", "?", "http"} {
					if strings.Contains(e.Public, bad) {
						t.Errorf("%q in: %s", bad, e.Public)
					}
				}
			}
			if n := len(u.requests()); n != 3 {
				t.Errorf("%d requests for 3 calls", n)
			}
		})
	}
	if n := len(other.requests()); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestLoginVersionReady(t *testing.T) {
	t.Parallel()
	var status int
	var body string
	u := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(status, "application/json", body)(w, r) })
	c := client(t, u.URL).Instead(func(time.Duration) {})
	ctx := t.Context()
	cred := proxy.NewCredential(proxy.ModeStatic, callerToken)

	status, body = 200, `{"id":3,"login":"alice","is_admin":true}`
	if who, err := c.Login(ctx, cred); err != nil || who != (proxy.Person{ID: 3, Login: "alice", Admin: true}) {
		t.Errorf("Login: %+v %v", who, err)
	}
	if got := u.requests()[0]; got.URI != "/api/v1/user" || got.Header.Get("Authorization") != "token "+callerToken {
		t.Errorf("sent %s as %q", got.URI, got.Header.Get("Authorization"))
	}
	status, body = 401, `{"message":"token is required"}`
	if _, err := c.Login(ctx, cred); proxy.AsError(err).Kind != proxy.KindUnauthorized {
		t.Errorf("Login: %v", err)
	}
	if err := c.Ready(ctx); err != nil {
		t.Errorf("a Gitea that wants a login is there all the same: %v", err)
	}
	status, body = 200, `{}`
	if _, err := c.Login(ctx, cred); err == nil {
		t.Error("Login takes an answer without a login")
	}
	if _, err := c.Version(ctx); err == nil {
		t.Error("Version takes an answer without one")
	}
	status, body = 200, `<html>`
	if err := c.Ready(ctx); err == nil {
		t.Error("a web page counts as ready")
	}
	status, body = 200, `{"version":"1.28.1"}`
	if v, err := c.Version(ctx); err != nil || v != "1.28.1" {
		t.Errorf("Version: %q %v", v, err)
	}
	if got := u.requests(); len(got[len(got)-1].Header["Authorization"]) != 0 {
		t.Error("the version was asked for with a credential")
	}
	if res := must(t, c, call(get("/x"), nil)); res.Source != "gitea 1.28.1" {
		t.Errorf("source %q", res.Source)
	}
	status = 503
	if err := c.Ready(ctx); err == nil {
		t.Error("a Gitea that is down counts as ready")
	}
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	if err := client(t, dead.URL).Ready(ctx); err == nil {
		t.Error("a Gitea that is gone counts as ready")
	}
}

// TestScrubIsRequired: a client that would pass on what Gitea quotes is not made.
func TestScrubIsRequired(t *testing.T) {
	t.Parallel()
	u := &url.URL{Scheme: "http", Host: "git.example.org"}
	if _, err := gitea.New(config.Gitea{URL: &config.URL{URL: *u}}, gitea.Limits{}, nop()); err == nil ||
		!strings.Contains(err.Error(), "Scrub") {
		t.Error(err)
	}
}

// TestGiteasWordsAreUntrusted wherever an error has any: in a message, and in a new name.
func TestGiteasWordsAreUntrusted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		h    http.HandlerFunc
		kind proxy.Kind
		want bool
	}{
		"message":    {answer(409, "application/json", `{"message":"branch x exists"}`), proxy.KindConflict, true},
		"no message": {answer(409, "application/json", `{}`), proxy.KindConflict, false},
		"moved":      {answer(301, "", "", "Location", "/api/v1/repos/evil/name"), proxy.KindMoved, true},
	} {
		e := fails(t, client(t, serve(t, tc.h).URL), call(get("/repos/o/r"), nil), tc.kind)
		if e.Untrusted != tc.want {
			t.Errorf("%s: untrusted %v in %q", name, e.Untrusted, e.Public)
		}
	}
}
