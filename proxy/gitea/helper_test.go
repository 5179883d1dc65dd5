package gitea_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
	"aegis/proxy/mask/match"
)

const callerToken = "0123456789abcdef0123456789abcdef01234567"

// seen is one request as an upstream got it.
type seen struct {
	Method, URI, Proto, Host string
	Header                   http.Header
	Body                     []byte
}

// upstream is a server that records and answers as it is told.
type upstream struct {
	*httptest.Server
	mu  sync.Mutex
	got []seen
}

// serve starts an upstream that answers with h; nil answers "{}".
func serve(t testing.TB, h http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(u.record(h))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) record(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		u.mu.Lock()
		u.got = append(u.got, seen{r.Method, r.RequestURI, r.Proto, r.Host, r.Header.Clone(), body})
		u.mu.Unlock()
		if h != nil {
			h(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json;charset=utf-8")
		_, _ = io.WriteString(w, "{}")
	})
}

// requests returns what has arrived, without Aegis's own questions.
func (u *upstream) requests() []seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []seen
	for _, s := range u.got {
		if !strings.HasSuffix(s.URI, "/api/v1/settings/api") {
			out = append(out, s)
		}
	}
	return out
}

// forget returns everything that has arrived, and forgets it.
func (u *upstream) forget() []seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	got := u.got
	u.got = nil
	return got
}

// answer is a handler that gives one answer to everything.
func answer(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/settings/api") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"max_response_items":50,"default_paging_num":30,"default_git_trees_per_page":1000}`)
			return
		}
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Add(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// client returns a Client of the server at base; edit may change its settings.
func client(t testing.TB, base string, edit ...func(*config.Gitea, *gitea.Limits)) *gitea.Client {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Gitea{URL: &config.URL{URL: *u}}
	limits := gitea.Limits{Version: "1.2.3", Scrub: match.Credentials}
	for _, f := range edit {
		f(&cfg, &limits)
	}
	c, err := gitea.New(cfg, limits, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// call returns a call of tool by a static identity.
func call(tool *proxy.Tool, args proxy.Arguments) *proxy.Call {
	k := &proxy.Call{
		Tool: tool, Args: args,
		Identity: &proxy.Identity{
			Login: "alice", Mode: proxy.ModeStatic,
			Credential: proxy.NewCredential(proxy.ModeStatic, callerToken),
		},
	}
	if tool != nil {
		k.Name = tool.Name
		k.Resolve(tool)
	}
	return k
}

// spelled returns a call that spells its request itself, as the catalog hands on
// those of the tool for any route; op is nil for a route that it lacks.
func spelled(op *proxy.Tool, args proxy.Arguments) *proxy.Call {
	tool := proxy.Tool{}
	if op != nil {
		tool = *op
	}
	tool.Name, tool.Params = "gitea_api_request", nil
	k := call(nil, args)
	k.Tool, k.Op, k.Name = &tool, op, tool.Name
	k.Wire.Method, _ = args["method"].(string)
	k.Wire.Path, _ = args["path"].(string)
	list := func(in proxy.In, v any) (out []proxy.Field) {
		object, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			out = append(out, proxy.Field{Name: name, In: in, Value: object[name]})
		}
		return out
	}
	k.Wire.Query = list(proxy.InQuery, args["query"])
	if body, given := args["body"]; given {
		k.Wire.Body, k.Wire.Sends = list(proxy.InBody, body), proxy.InBody
	}
	return k
}

// get is a reading tool at path; every {name} in it is a required argument, a
// name with "*" before it a wildcard.
func get(path string, params ...proxy.Param) *proxy.Tool {
	t := &proxy.Tool{
		Name: "gitea_test_get", OperationID: "test", Method: http.MethodGet,
		ReadOnly: true, Produces: "application/json",
	}
	for rest := path; ; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			break
		}
		name, tail, _ := strings.Cut(rest[open+1:], "}")
		wire := strings.TrimPrefix(name, "*")
		t.Params = append(t.Params, proxy.Param{Name: wire, Wire: wire, In: proxy.InPath, Required: true,
			Wildcard: wire != name})
		rest = tail
	}
	t.Path = strings.ReplaceAll(path, "{*", "{")
	t.Params = append(t.Params, params...)
	return t
}

// write is a writing tool.
func write(method, path string, params ...proxy.Param) *proxy.Tool {
	t := get(path, params...)
	t.Method, t.ReadOnly = method, false
	return t
}

func param(in proxy.In, name string) proxy.Param { return proxy.Param{Name: name, Wire: name, In: in} }

// must runs a call that has to succeed.
func must(t testing.TB, c *gitea.Client, k *proxy.Call) *proxy.Result {
	t.Helper()
	res, err := c.Handle(context.Background(), k)
	if err != nil {
		t.Fatalf("Handle: %v", err)
	}
	if res == nil {
		t.Fatal("Handle: neither result nor error")
	}
	return res
}

// fails runs a call that has to fail with this kind.
func fails(t testing.TB, c *gitea.Client, k *proxy.Call, kind proxy.Kind) *proxy.Error {
	t.Helper()
	res, err := c.Handle(context.Background(), k)
	var e *proxy.Error
	if res != nil || !errors.As(err, &e) {
		t.Fatalf("Handle: result %v, error %v; want an error of kind %s", res, err, kind)
	}
	if e.Kind != kind {
		t.Fatalf("kind %s (%s), want %s", e.Kind, e.Public, kind)
	}
	if strings.Contains(e.Error(), callerToken) {
		t.Errorf("the error carries the caller's token: %v", e)
	}
	return e
}

func number(s string) json.Number { return json.Number(s) }

func nop() zerolog.Logger { return zerolog.Nop() }

// serveQuiet is serve without the records, for benchmarks.
func serveQuiet(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
