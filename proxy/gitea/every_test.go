package gitea_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/spec"
)

// chain returns the handler of a team that may use everything: validation, then
// Gitea at u.
func chain(t testing.TB, u *upstream) (proxy.Handler, map[string]*proxy.Tool) {
	t.Helper()
	cat, err := spec.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	set, err := catalog.Load(cat)
	if err != nil {
		t.Fatal(err)
	}
	selection, problems := set.Select(config.Default().Tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return proxy.Chain(client(t, u.URL), selection.Stage()), builtin(t)
}

// named returns a call as it comes from a client: a name and JSON.
func named(t testing.TB, tool *proxy.Tool, args proxy.Arguments) *proxy.Call {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	k := call(nil, nil)
	k.Name, k.RawArgs = tool.Name, text
	return k
}

// TestEveryOperation sends every operation of the API with arguments made up
// from its description, and compares what arrives with what the description and
// the measured encoding of paths demand.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	handler, tools := chain(t, u)
	f := readFacts(t)
	warm := named(t, tools["issueListIssues"], proxy.Arguments{"owner": "o", "repo": "r"})
	if _, err := handler.Handle(t.Context(), warm); err != nil { // learns the page sizes
		t.Fatal(err)
	}
	for i := range f.Operations {
		op := &f.Operations[i]
		t.Run(op.ID, func(t *testing.T) {
			tool := tools[op.ID]
			if tool == nil {
				t.Fatal("the catalog has no such operation")
			}
			for seed := range uint64(6) {
				o := oracle{rng: rand.New(rand.NewPCG(seed, uint64(i))), facts: f, op: op, tool: tool}
				o.build(t)
				u.forget()
				_, err := handler.Handle(t.Context(), named(t, tool, o.args))
				got := u.forget()
				if tool.BasicAuthOnly {
					if len(got) != 0 || proxy.AsError(err).Kind != proxy.KindBasicAuthOnly {
						t.Fatalf("%d requests, error %v", len(got), err)
					}
					continue
				}
				if err != nil || len(got) != 1 {
					t.Fatalf("%d requests, error %v", len(got), err)
				}
				o.compare(t, got[0])
			}
		})
	}
}

// wrongType returns a value that no coercion makes fit.
func wrongType(s *proxy.Schema) any {
	switch s.Type {
	case "integer", "number":
		return "1x"
	case "boolean":
		return "maybe"
	case "object":
		return "text"
	case "string", "array":
		return map[string]any{"a": 1}
	}
	return nil
}

// TestEveryOperationRefusesBadArguments breaks the valid arguments of every
// operation in one place each.
func TestEveryOperationRefusesBadArguments(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	handler, tools := chain(t, u)
	f := readFacts(t)
	refused := 0
	for i := range f.Operations {
		op := &f.Operations[i]
		tool := tools[op.ID]
		refuse := func(what string, edit func(proxy.Arguments)) {
			o := oracle{rng: rand.New(rand.NewPCG(7, uint64(i))), facts: f, op: op, tool: tool}
			o.build(t)
			edit(o.args)
			res, err := handler.Handle(t.Context(), named(t, tool, o.args))
			if err == nil || proxy.AsError(err).Kind != proxy.KindInvalidArguments {
				t.Errorf("%s: %s: result %v, error %v", op.ID, what, res, err)
			}
			refused++
		}
		for _, name := range []string{"no_such_argument", "sudo", "access_token", "Owner"} {
			refuse("unknown argument", func(a proxy.Arguments) { a[name] = "x" })
		}
		for j := range tool.Params {
			p := &tool.Params[j]
			if p.Required {
				refuse("missing "+p.Name, func(a proxy.Arguments) { delete(a, p.Name) })
			}
			if v := wrongType(p.Schema); v != nil {
				refuse("wrong type of "+p.Name, func(a proxy.Arguments) { a[p.Name] = v })
			}
			if p.In == proxy.InPath && !tool.BasicAuthOnly {
				for _, v := range hostile {
					if !utf8.ValidString(v) {
						continue // JSON cannot carry it
					}
					refuse("hostile "+p.Name, func(a proxy.Arguments) { a[p.Name] = v })
				}
			}
		}
	}
	if n := len(u.requests()); n != 0 || refused < 30_000 {
		t.Errorf("%d requests were sent, %d calls were refused", n, refused)
	}
}

// TestEveryPathRefusesHostileValues tries each path argument of each operation.
func TestEveryPathRefusesHostileValues(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	tools := builtin(t)
	f := readFacts(t)
	refused := 0
	for i := range f.Operations {
		op := &f.Operations[i]
		tool := tools[op.ID]
		if tool == nil || tool.BasicAuthOnly {
			continue
		}
		for _, p := range op.Params {
			if p.In != "path" {
				continue
			}
			for _, v := range hostile {
				o := oracle{rng: rand.New(rand.NewPCG(1, 2)), facts: f, op: op, tool: tool}
				o.build(t)
				o.args[o.param("path", p.Name).Name] = v
				fails(t, c, call(tool, o.args), proxy.KindInvalidArguments)
				refused++
			}
			// "?" and "#" are legal in some names: then they must not get out bare.
			for _, v := range []string{"a?b=c", "a#b"} {
				o := oracle{rng: rand.New(rand.NewPCG(1, 2)), facts: f, op: op, tool: tool}
				o.build(t)
				o.args[o.param("path", p.Name).Name] = v
				_, path, _, _, err := c.Prepare(call(tool, o.args))
				if err == nil && !strings.Contains(path, escaped(v)) {
					t.Errorf("%s: %s goes out in %s", op.ID, v, path)
				}
			}
		}
	}
	if n := len(u.requests()); n != 0 || refused < 20_000 {
		t.Errorf("%d requests were sent, %d values were refused", n, refused)
	}
}

// The wildcards of the catalog are those that were measured, no more.
func TestWildcards(t *testing.T) {
	t.Parallel()
	for _, tool := range builtin(t) {
		for _, p := range tool.Params {
			want := p.In == proxy.InPath && rawSlash[tool.Path] == p.Wire
			if p.Wildcard != want {
				t.Errorf("%s %s: {%s} wildcard %t, want %t", tool.Method, tool.Path, p.Wire, p.Wildcard, want)
			}
		}
	}
}

// compare holds one request against the expectation.
func (o *oracle) compare(t *testing.T, got seen) {
	t.Helper()
	path, query, _ := strings.Cut(got.URI, "?")
	if got.Method != o.op.Method || path != o.want.path {
		t.Errorf("sent %s %s, want %s %s", got.Method, path, o.op.Method, o.want.path)
	}
	var pairs []string
	if query != "" {
		pairs = strings.Split(query, "&")
	}
	slices.Sort(pairs)
	if diff := cmp.Diff(o.want.query, pairs); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	media, params, _ := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if media != o.want.media {
		t.Errorf("content type %q, want %q", media, o.want.media)
	}
	headers := []string{"Accept", "Authorization", "User-Agent"}
	if media != "" {
		headers = append(headers, "Content-Type")
	}
	if len(got.Body) > 0 || media != "" || got.Method == "POST" || got.Method == "PUT" || got.Method == "PATCH" {
		headers = append(headers, "Content-Length")
	}
	names := make([]string, 0, len(got.Header))
	for name := range got.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Sort(headers)
	if diff := cmp.Diff(headers, names); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if got.Header.Get("Authorization") != "token "+callerToken {
		t.Error("the credential is not the identity's")
	}
	switch {
	case o.want.files != nil:
		if diff := cmp.Diff(o.want.files, formFiles(t, got.Body, params["boundary"])); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	case o.want.json != nil:
		dec := json.NewDecoder(bytes.NewReader(got.Body))
		dec.UseNumber()
		var body any
		if err := dec.Decode(&body); err != nil {
			t.Fatalf("%v: %s", err, got.Body)
		}
		if diff := cmp.Diff(o.want.json, body); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	case string(got.Body) != o.want.text:
		t.Errorf("body %q, want %q", got.Body, o.want.text)
	}
}

func formFiles(t *testing.T, body []byte, boundary string) map[string]string {
	t.Helper()
	files := map[string]string{}
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		files[part.FormName()] = string(data)
	}
}
