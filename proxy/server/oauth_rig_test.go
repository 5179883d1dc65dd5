package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/oauth/client"
	"aegis/proxy/server"
)

// house is a whole Aegis with OAuth before a Gitea double, both on ports of their
// own. It can be stopped and started again on the same files.
type house struct {
	t        testing.TB
	o        houseOptions
	double   *fakegitea.Server
	gitea    string // address of the double, by which Aegis reaches it
	browsers string // address of the double for browsers
	app      string // client_id at Gitea
	secret   string // its secret
	file     string // configuration
	dir      string // data_dir
	root     string // scheme, host and port of Aegis
	url      string // public address
	endpoint string
	addr     string
	from     string // client address, told by a trusted proxy; "": the real one
	log      *syncBuffer
	live     *server.Live
	stop     func()
}

// houseOptions are what differs from test to test.
type houseOptions struct {
	oauth string                          // lines below auth.oauth
	top   string                          // further top-level keys
	front func(http.Handler) http.Handler // stands before the double
	fetch func(*client.Options)           // stands in for the internet
	tune  func(*server.Process)           // is called with each process before it opens anything
	path  string                          // of the public address
	sub   string                          // path below which Gitea is, for browsers on another host name
}

func newHouse(t testing.TB, o houseOptions) *house {
	t.Helper()
	h := &house{t: t, o: o, log: &syncBuffer{}}
	var front http.Handler
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { front.ServeHTTP(w, r) }))
	t.Cleanup(up.Close)
	var double fakegitea.Options
	h.gitea, h.browsers = up.URL, up.URL
	if o.sub != "" {
		h.gitea, h.browsers = up.URL+o.sub, strings.Replace(up.URL, "127.0.0.1", "localhost", 1)+o.sub
		double = fakegitea.Options{SubPath: o.sub, RootURL: h.browsers}
	}
	h.double = fakegitea.New(double)
	if front = h.double; o.front != nil {
		front = o.front(front)
	}
	ln := h.listen(steadyAddr(t)) // a restart must get it again
	h.addr = ln.Addr().String()
	h.root = "http://" + h.addr
	h.url = h.root + o.path
	h.endpoint = h.url + "/mcp"
	h.app, h.secret = h.double.RegisterOAuthApp("Aegis", true, h.url+"/oauth/callback")
	h.dir = filepath.Join(t.TempDir(), "data")
	h.file = filepath.Join(t.TempDir(), "aegis.yaml")
	h.write(h.secret, o.oauth)
	h.serve(ln)
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *house) listen(addr string) (ln net.Listener) {
	h.t.Helper()
	eventually(h.t, func() (err error) { // somebody else may have the port for a moment
		ln, err = net.Listen("tcp", addr)
		return err
	})
	return ln
}

// write writes the configuration file.
func (h *house) write(secret, oauth string) {
	h.t.Helper()
	text := fmt.Sprintf("listen: %s\npublic_url: %s\ngitea: {url: %q}\ndata_dir: %q\nauth:\n  oauth:\n    enabled: true\n    client_id: %s\n    client_secret: %s\n",
		h.addr, h.url, h.gitea, h.dir, h.app, secret)
	if h.browsers != h.gitea {
		text += "    browser_url: " + h.browsers + "\n"
	}
	for line := range strings.Lines(oauth) {
		text += "    " + line
	}
	if err := os.WriteFile(h.file, []byte(text+"\n"+h.o.top), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) load() *config.Config {
	h.t.Helper()
	cfg, err := config.Load(h.file)
	if err != nil {
		h.t.Fatal(err)
	}
	return cfg
}

// serve starts Aegis and waits until it answers.
func (h *house) serve(ln net.Listener) {
	h.t.Helper()
	srv, err := server.Build(h.load(), zerolog.New(h.log).Level(zerolog.TraceLevel), func(p *server.Process) {
		server.FetchDocumentsBy(p, h.o.fetch)
		if h.o.tune != nil {
			h.o.tune(p)
		}
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.live = server.NewLive(srv)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.live.Serve(ctx, ln, nil) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("serving ended: %v", err)
		}
		h.live.Close()
	})
	res, err := direct.Get(h.root + "/healthz")
	if err != nil {
		h.t.Fatal(err)
	}
	_ = res.Body.Close()
}

// restart ends the process, as it were, and begins another.
func (h *house) restart() {
	h.t.Helper()
	h.stop()
	h.serve(h.listen(h.addr))
}

// reload loads the file anew.
func (h *house) reload() {
	h.t.Helper()
	if err := h.live.Reload(h.load(), server.Plain(zerolog.New(h.log).Level(zerolog.TraceLevel))); err != nil {
		h.t.Fatal(err)
	}
}

// reply is an HTTP answer, read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

// field returns a member of a JSON answer as text, "" when there is none.
func (a reply) field(name string) string {
	var m map[string]any
	_ = json.Unmarshal([]byte(a.body), &m) // what is no JSON has no members
	switch v := m[name].(type) {
	case string:
		return v
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// ask sends a request as programs do. Without a content type a body is a form.
func (h *house) ask(method, path, body string, headers ...string) reply {
	h.t.Helper()
	at := h.url
	if strings.HasPrefix(path, "/.well-known/") {
		at = h.root // RFC 8615
	}
	q, err := http.NewRequest(method, at+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if h.from != "" {
		q.Header.Set("X-Forwarded-For", h.from)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			q.Host = headers[i+1]
			continue
		}
		q.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Client{Transport: direct.Transport, CheckRedirect: noRedirect, Timeout: patience}).Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(text)}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// tool calls a tool with a token. The reply's body is the tool's own text when
// the call got through to MCP.
func (h *house) tool(token, name, args string) (reply, answer) {
	h.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, args)
	r := h.ask(http.MethodPost, "/mcp", body, "Authorization", "Bearer "+token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	var a answer
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	if json.Unmarshal([]byte(r.body), &m) == nil && len(m.Result.Content) > 0 {
		if err := json.Unmarshal([]byte(m.Result.Content[0].Text), &a); err != nil {
			h.t.Fatalf("%s: %v: %s", name, err, r.body)
		}
	}
	return r, a
}

// whoami calls the simplest tool.
func (h *house) whoami(token string) (reply, answer) {
	h.t.Helper()
	return h.tool(token, "gitea_user_get_me", "{}")
}

// works fails the test unless the token is good for login.
func (h *house) works(token, login string) {
	h.t.Helper()
	if r, a := h.whoami(token); r.status != 200 || a.Identity.Login != login {
		h.t.Errorf("call: %d %s", r.status, r.body)
	}
}

// register makes a client known.
func (h *house) register(body string) string {
	h.t.Helper()
	r := h.ask(http.MethodPost, "/register", body, "Content-Type", "application/json")
	if r.status != http.StatusCreated || strings.Contains(r.body, "null") {
		h.t.Fatalf("register: %d %s", r.status, r.body)
	}
	return r.field("client_id")
}

// app is a public client with a loopback redirect.
type app struct {
	h            *house
	id, redirect string
}

func (h *house) newApp() app {
	h.t.Helper()
	return app{h, h.register(`{"client_name":"Test client","redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"none"}`), "http://127.0.0.1:4711/callback"}
}

const pkceVerifier = "the-verifier-of-these-tests-0123456789-0123456789"

func pkceChallenge() string {
	sum := sha256.Sum256([]byte(pkceVerifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// address returns what the client opens in the browser; "-" leaves a parameter out.
func (a app) address(pairs ...string) string {
	q := url.Values{"client_id": {a.id}, "redirect_uri": {a.redirect}, "response_type": {"code"}, "code_challenge": {pkceChallenge()},
		"code_challenge_method": {"S256"}, "state": {"some-state"}, "resource": {a.h.endpoint}}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	maps.DeleteFunc(q, func(_ string, v []string) bool { return slices.Equal(v, []string{"-"}) })
	return a.h.url + "/authorize?" + q.Encode()
}

// redeem exchanges a code.
func (a app) redeem(code string) reply {
	a.h.t.Helper()
	return a.h.ask(http.MethodPost, "/token", url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {a.id},
		"redirect_uri": {a.redirect}, "code_verifier": {pkceVerifier}, "resource": {a.h.endpoint}}.Encode())
}

// refresh uses a refresh token; pairs are further parameters.
func (a app) refresh(token string, pairs ...string) reply {
	a.h.t.Helper()
	q := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {a.id}}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return a.h.ask(http.MethodPost, "/token", q.Encode())
}

// connect goes the whole way as a person and returns the token answer.
func (a app) connect(login string, pairs ...string) reply {
	a.h.t.Helper()
	r := a.redeem(a.h.person(login).allow(a.address(pairs...)).Get("code"))
	if r.status != http.StatusOK {
		a.h.t.Fatalf("token: %d %s", r.status, r.body)
	}
	return r
}

// auditEvents returns the reasons of the audit records of an event.
func (h *house) auditEvents(event string) (list []string) {
	h.t.Helper()
	for dec := json.NewDecoder(shownAudit(h.t, h.dir, event)); dec.More(); {
		var l auditLine
		if err := dec.Decode(&l); err != nil {
			h.t.Fatal(err)
		}
		if l.Detail != nil {
			list = append(list, l.Detail.Reason)
		}
	}
	return list
}
