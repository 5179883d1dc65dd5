package doctor_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/config"
	"aegis/proxy/server"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// named names the proxy in every answer.
func named(name string) func(*http.Response) error {
	return func(r *http.Response) error {
		r.Header.Set("Server", name)
		return nil
	}
}

func also(fs ...func(*http.Response) error) func(*http.Response) error {
	return func(r *http.Response) error {
		for _, f := range fs {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// collect reads a whole answer before it sends it on.
func collect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// only answers some requests in the proxy's own way.
func only(match func(*http.Request) bool, status int, text string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if match(r) {
				http.Error(w, text, status)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func bodyOver(limit int64) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.ContentLength > limit }
}

// TestBrokenProxies: each fault of a reverse proxy is found, by its name, with
// the line that mends it, and a proxy without fault has none.
func TestBrokenProxies(t *testing.T) {
	t.Parallel()
	a := plain(t)
	replace := func(from, to string) func(*http.Response) error {
		return func(r *http.Response) error {
			if r.Header.Get("Content-Type") != "application/json" {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = bytes.ReplaceAll(body, []byte(from), []byte(to))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Del("Content-Length")
			return nil
		}
	}
	tests := []struct {
		name  string
		front front
		tune  func(*doctor.Options)
		want  []string // all that is not well
		says  string   // in one of them
		fix   string
	}{
		{name: "none", front: front{answer: named("nginx")}},
		{
			name: "strips the challenge", front: front{answer: also(named("nginx/1.27"), func(r *http.Response) error {
				r.Header.Del("WWW-Authenticate")
				return nil
			})},
			want: []string{"failure challenge"}, says: "without WWW-Authenticate", fix: "proxy_intercept_errors off",
		},
		{
			name: "adds a challenge", front: front{answer: func(r *http.Response) error {
				if r.StatusCode == http.StatusUnauthorized {
					r.Header.Add("WWW-Authenticate", `Basic realm="x"`)
				}
				return nil
			}},
			want: []string{"failure challenge"}, says: "not Aegis's alone", fix: "auth_basic",
		},
		{
			name: "decodes slashes", front: front{answer: named("Apache"),
				rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.RawPath = "" }},
			want: []string{"failure encoded slash"}, says: "decodes paths", fix: "Apache: AllowEncodedSlashes NoDecode",
		},
		{
			name: "refuses slashes", front: front{wrap: only(func(r *http.Request) bool { return strings.Contains(r.URL.RawPath, "%2F") }, 400, "no")},
			want: []string{"failure encoded slash"}, says: "refused on the way: 400", fix: "allowEncodedSlash",
		},
		{
			name: "buffers answers", front: front{answer: named("openresty"), wrap: collect},
			tune: func(o *doctor.Options) { o.Quiet(patience) }, // the rest is there, however slow this machine is
			want: []string{"failure streaming"}, says: "all at once", fix: "proxy_buffering off;",
		},
		{
			name: "buffers requests", front: front{wrap: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						return
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					next.ServeHTTP(w, r)
				})
			}},
			tune: func(o *doctor.Options) { o.Held(100 * time.Millisecond) }, // nothing comes, however long it takes
			want: []string{"warning uploads"}, says: "collects", fix: "proxy_request_buffering off;",
		},
		{
			name: "drops Host", front: front{answer: named("nginx"),
				rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = "backend" }},
			want: []string{"failure aegis", "failure authorization", "failure challenge", "failure cors",
				"failure metadata", "warning readyz"},
			says: "refuses the Host", fix: "proxy_set_header Host $host;",
		},
		{
			name: "names one Host for all", front: front{rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = host }},
			want: []string{"warning host"}, says: "replaces Host", fix: "ProxyPreserveHost On",
		},
		{
			name: "small body limit", front: front{answer: named("nginx"),
				wrap: only(bodyOver(1<<20), 413, "too large")},
			want: []string{"failure body size"}, says: "8 MiB", fix: "client_max_body_size",
		},
		{
			name: "strips Authorization", front: front{rewrite: func(r *httputil.ProxyRequest) { r.Out.Header.Del("Authorization") }},
			want: []string{"failure authorization"}, says: "does not reach Aegis", fix: "proxy_set_header Authorization",
		},
		{
			name: "strips Origin", front: front{rewrite: func(r *httputil.ProxyRequest) { r.Out.Header.Del("Origin") }},
			want: []string{"failure cors", "failure origin"},
			says: "removes or replaces the Origin", fix: "RequestHeader unset Origin",
		},
		{
			name: "doubles CORS", front: front{answer: func(r *http.Response) error {
				r.Header.Add("Access-Control-Allow-Origin", "*")
				return nil
			}},
			want: []string{"failure cors"}, says: "twice", fix: "add_header Access-Control",
		},
		{
			name: "keeps well-known", front: front{wrap: only(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/.well-known/") }, 404, "none")},
			want: []string{"failure encoded slash", "failure metadata"},
			says: "is not there: 404", fix: "location /.well-known/oauth-",
		},
		{
			name: "answers HEAD itself", front: front{wrap: only(func(r *http.Request) bool { return r.Method == http.MethodHead }, 405, "")},
			want: []string{"failure challenge"}, says: "HEAD /mcp must be 401", fix: "pass all methods",
		},
		{
			name: "rewrites documents", front: front{answer: replace(`"resource":"https`, `"resource": "https`)},
			want: []string{"failure metadata"}, says: "byte for byte", fix: "sub_filter",
		},
		{
			name: "turns https into http", front: front{answer: replace("https://"+host, "http://"+host)},
			want: []string{"failure metadata"}, says: "http instead of https", fix: "set public_url to " + public,
		},
		{
			name: "breaks compression", front: front{answer: func(r *http.Response) error {
				if strings.Contains(r.Request.Header.Get("Accept-Encoding"), "gzip") && r.StatusCode == 200 {
					r.Header.Set("Content-Encoding", "gzip")
				}
				return nil
			}},
			want: []string{"failure compression", "failure streaming"}, says: "does not unpack", fix: "gzip off;",
		},
		{
			name: "is a page", front: front{wrap: only(func(*http.Request) bool { return true }, 200, "<html>hello")},
			want: []string{"failure aegis", "failure authorization", "failure body size", "failure challenge",
				"failure cors", "failure encoded slash", "failure metadata", "warning origin", "warning readyz"},
			says: "another program", fix: "pass every path",
		},
		{
			name: "reaches nothing", front: front{wrap: only(func(*http.Request) bool { return true }, 502,
				"bad gateway")},
			want: []string{"failure aegis", "failure authorization", "failure challenge", "failure cors",
				"failure encoded slash", "failure metadata", "warning origin", "warning readyz"},
			says: "cannot reach Aegis", fix: "upstream address",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := tt.front.serve(t, a)
			if tt.tune != nil {
				tt.tune(&o)
			}
			f := examine(t, o)
			if diff := cmp.Diff(tt.want, f.bad()); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", diff, f.text())
			}
			if !strings.Contains(f.text(), tt.says) || !strings.Contains(f.text(), tt.fix) {
				t.Errorf("neither %q nor %q may be missing:\n%s", tt.says, tt.fix, f.text())
			}
		})
	}
}

// TestCompressionThatWorks: a proxy that compresses rightly is no fault.
func TestCompressionThatWorks(t *testing.T) {
	a := plain(t)
	pack := func(r *http.Response) error {
		if r.Header.Get("Content-Type") != "application/json" || !strings.Contains(r.Request.Header.Get("Accept-Encoding"), "gzip") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
		r.Body, r.ContentLength = io.NopCloser(&b), int64(b.Len())
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Del("Content-Length")
		return nil
	}
	if f := examine(t, front{answer: pack, wrap: quick}.serve(t, a)); len(f.bad()) > 0 {
		t.Error(f.text())
	}
}

// TestCertificates: what clients refuse is told apart.
func TestCertificates(t *testing.T) {
	t.Parallel()
	a := plain(t)
	tests := []struct {
		name  string
		chain func(t *testing.T, ca *authority) tls.Certificate
		want  string
		says  string
	}{
		{"expired", func(t *testing.T, ca *authority) tls.Certificate { return ca.leaf(t, host, -time.Hour) },
			"failure certificate", "has expired"},
		{"ends soon", func(t *testing.T, ca *authority) tls.Certificate { return ca.leaf(t, host, 24*time.Hour) },
			"warning certificate", "ends soon"},
		{"other name", func(t *testing.T, ca *authority) tls.Certificate {
			return ca.leaf(t, "other.test", 500*time.Hour)
		}, "failure certificate", "is for other.test, not for " + host},
		{"other authority", func(t *testing.T, _ *authority) tls.Certificate {
			return newAuthority(t).leaf(t, host, 500*time.Hour)
		}, "failure certificate", "chain is not complete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := examine(t, front{wrap: quick,
				chain: func(ca *authority) tls.Certificate { return tt.chain(t, ca) }}.serve(t, a))
			if got := f.bad(); len(got) != 1 || got[0] != tt.want || !strings.Contains(f.text(), tt.says) {
				t.Errorf("%v\n%s", got, f.text())
			}
		})
	}
	t.Run("not yet valid", func(t *testing.T) {
		o := front{wrap: quick}.serve(t, a)
		o.Now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
		if f := examine(t, o); !strings.Contains(f.text(), "valid only from") ||
			!strings.Contains(strings.Join(f.bad(), " "), "failure clock") {
			t.Error(f.text())
		}
	})
}

// TestWrongAddress: the address that clients use and public_url differ.
func TestWrongAddress(t *testing.T) {
	t.Parallel()
	a := start(t, func(cfg *config.Config) {
		cfg.PublicURL = address(t, "https://old.test")
		cfg.Server.AllowedHosts = []string{host}
	})
	f := examine(t, front{wrap: quick}.serve(t, a))
	if !strings.Contains(f.text(), "resource https://old.test/mcp, and clients use https://aegis.test") || !strings.Contains(f.text(), "set public_url to https://aegis.test") {
		t.Error(f.text())
	}
}

// TestOtherConfiguration: the running Aegis has another configuration than the
// file.
func TestOtherConfiguration(t *testing.T) {
	a := plain(t)
	o := front{wrap: quick}.serve(t, a)
	o.Reference = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{}`))
			return
		}
		a.ref.Handler.ServeHTTP(w, r)
	})
	if f := examine(t, o); !strings.Contains(f.text(), "reload it (SIGHUP)") {
		t.Error(f.text())
	}
}

// TestUnreachable: nothing else is asked where nothing answers.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	a := plain(t)
	o := front{wrap: quick}.serve(t, a)
	o.Resolver = resolver{}
	if f := examine(t, o); len(f.list) != 2 || f.list[0].Check != "dns" || f.list[0].Status != doctor.Failure {
		t.Error(f.text())
	}
	o.Resolver = resolver{"198.51.100.7"}
	o.Base = &url.URL{Scheme: "https", Host: "nowhere.test"}
	if f := examine(t, o); len(f.list) != 3 || f.list[1].Check != "port" || f.list[1].Status != doctor.Failure {
		t.Error(f.text())
	}
}

// TestClients: what single clients need beyond the rest.
func TestClients(t *testing.T) {
	t.Parallel()
	a := plain(t)
	closed := start(t, func(cfg *config.Config) {
		cfg.Auth.OAuth.Registration, cfg.Auth.OAuth.Documents.Enabled = "off", false
	})
	tests := []struct {
		client string
		at     *aegis
		addrs  resolver
		want   []string
		says   string
	}{
		{"claude", a, resolver{"198.51.100.7"}, nil, "198.51.100.7"},
		{"claude", a, resolver{"10.0.0.5"}, []string{"failure client claude", "warning dns"},
			"not reachable from there"},
		{"chatgpt", a, resolver{"198.51.100.7", "192.168.1.2"}, []string{"failure client chatgpt", "warning dns"},
			"not reachable from there"},
		{"claude", a, resolver{"2001:db8::1"}, []string{"failure client claude", "warning dns"}, "A record"},
		{"codex", a, resolver{"198.51.100.7"}, []string{"warning client codex"}, "advertise_issuer: false"},
		{"cursor", a, resolver{"198.51.100.7"}, nil, "a client can register"},
		{"cursor", closed, resolver{"198.51.100.7"}, []string{"failure client cursor"}, "cannot introduce itself"},
		{"vscode", a, resolver{"198.51.100.7"}, nil, "resource is the address"},
		{"gemini", a, resolver{"198.51.100.7"}, nil, "can introduce itself"},
		{"inspector", a, resolver{"198.51.100.7"}, nil, "preflights of /token pass for http://localhost:6274"},
	}
	for _, tt := range tests {
		t.Run(tt.client+" "+strings.Join(tt.addrs, " "), func(t *testing.T) {
			t.Parallel()
			o := front{wrap: quick}.serve(t, tt.at)
			o.Client, o.Register, o.Resolver = tt.client, true, tt.addrs
			f := examine(t, o)
			if diff := cmp.Diff(tt.want, f.bad()); diff != "" || !strings.Contains(f.text(), tt.says) &&
				tt.want != nil {
				t.Errorf("%s\n%s", diff, f.text())
			}
		})
	}
}

// TestNoSecretLeaves: what is examined from outside never gets a credential.
func TestNoSecretLeaves(t *testing.T) {
	a := plain(t)
	secrets := []string{a.cfg.Auth.Tokens[0].Token.Reveal(), a.cfg.Auth.Tokens[0].GiteaToken.Reveal(),
		a.cfg.Auth.OAuth.ClientSecret.Reveal()}
	o := front{wrap: quick, rewrite: func(r *httputil.ProxyRequest) {
		dump, _ := httputil.DumpRequest(r.In, r.In.ContentLength >= 0 && r.In.ContentLength < 1<<16)
		for _, s := range secrets {
			if bytes.Contains(dump, []byte(s)) {
				t.Errorf("a secret was sent: %s", dump)
			}
		}
	}}.serve(t, a)
	o.Register = true
	f := examine(t, o)
	for _, s := range secrets {
		if strings.Contains(f.text(), s) {
			t.Error("a secret is reported")
		}
	}
}

// TestManualNamesChecks: docs/troubleshooting.md has a row for every check.
func TestManualNamesChecks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	a := plain(t)
	o := front{}.serve(t, a)
	o.Register, o.Client = true, "vscode"
	f := examine(t, o)
	doctor.ExamineGitea(t.Context(), doctor.GiteaOptions{
		Gitea:       doctor.Gitea{URL: &a.cfg.Gitea.URL.URL, HTTP: direct},
		Auth:        config.Auth{OAuth: config.OAuth{Enabled: true}, Tokens: a.cfg.Auth.Tokens[:1]},
		CheckSignIn: a.ref.CheckSignIn, Needed: a.ref.Needs,
	}, f.add)
	if got := f.bad(); len(got) > 0 {
		t.Error(f.text())
	}
	for _, x := range f.list {
		name := x.Check
		for _, prefix := range []string{"client", "token"} {
			if strings.HasPrefix(name, prefix+" ") {
				name = prefix + " NAME"
			}
		}
		if !strings.Contains(string(page), "| `"+name+"`") && !strings.Contains(string(page), ", `"+name+"`") {
			t.Errorf("no row for the check %s", name)
		}
	}
	if len(f.list) < 20 {
		t.Errorf("%d checks: %s", len(f.list), f.text())
	}
}

// TestStreamIsTheServers: both sides mean the same time.
func TestStreamIsTheServers(t *testing.T) {
	t.Parallel()
	if doctor.StreamGap != server.StreamGap {
		t.Errorf("the doctor expects %s between events, the server waits %s", doctor.StreamGap, server.StreamGap)
	}
}
