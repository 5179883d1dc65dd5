package catalog_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aegis/proxy"
)

// TestBothFormsMeanTheSame: an operation called by its own tool and through the raw
// tool is one call to all that come after the catalog, for every operation and for
// all arguments that both can spell.
func TestBothFormsMeanTheSame(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	same := 0
	for _, tool := range builtin(t).Tools() {
		for _, optional := range []bool{false, true} {
			given := sampled(tool, optional)
			typed, _, err := run(sel, tool.Name, text(t, given), false)
			raw, _, rawErr := run(sel, "gitea_api_request", text(t, rawForm(tool, given)), false)
			if reason := oneForm(tool); reason != "" {
				if rawErr == nil || raw != nil {
					t.Errorf("%s has one form only (%s), and the raw tool takes it", tool.OperationID, reason)
				}
				continue
			}
			if err != nil || rawErr != nil {
				t.Fatalf("%s %v: %v, raw: %v", tool.OperationID, given, err, rawErr)
			}
			if typed.Op != raw.Op || typed.Op.OperationID != tool.OperationID {
				t.Errorf("%s: the operations are %v and %v", tool.OperationID, typed.Op, raw.Op)
			}
			if diff := gocmp.Diff(plainWire(&typed.Wire), plainWire(&raw.Wire)); diff != "" {
				t.Errorf("%s: the requests differ (-typed +raw):\n%s", tool.OperationID, diff)
			}
			if typed.Target != raw.Target {
				t.Errorf("%s: the targets are %+v and %+v", tool.OperationID, typed.Target, raw.Target)
			}
			same++
		}
	}
	if same < 2*500 {
		t.Errorf("only %d calls in both forms", same)
	}
}

// oneForm says why the raw tool refuses an operation; "" when it does not.
func oneForm(tool *proxy.Tool) string {
	switch {
	case strings.HasPrefix(tool.Consumes, "multipart/"):
		return "its arguments hold a file"
	case strings.HasPrefix(tool.Consumes, "text/"):
		return "its body is text, and the raw tool's is an object"
	case tool.BasicAuthOnly:
		return "no token opens its route, in either form"
	}
	return ""
}

// TestWhatOneFormSpells lists what the raw tool cannot spell in a path: the tool of
// the operation sends it, escaped, and the raw tool refuses it or means another route.
func TestWhatOneFormSpells(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	for _, value := range []string{"a%b", "a?b", "a#b", `a\b`, "a/b"} {
		given := map[string]any{"owner": "acme", "repo": "web", "filepath": value}
		typed, _, err := run(sel, "gitea_contents_get_editorconfig", text(t, given), false)
		if err != nil || typed.Wire.Values[2].Value != given["filepath"] {
			t.Errorf("%q: %v", value, err)
		}
		raw, _, err := run(sel, "gitea_api_request", text(t, rawForm(typed.Op, given)), false)
		if err == nil && raw.Op != nil || err != nil && value == "a/b" {
			t.Errorf("%q: the raw tool takes it for %+v, %v", value, raw, err)
		}
	}
	// In the body, the tools encode text that Gitea wants in base64; the raw tool
	// sends what it is given.
	typed, _, err := run(sel, "gitea_contents_create_file",
		`{"owner":"a","repo":"b","filepath":"c","message":"m","content_text":"é"}`, false)
	if err != nil || proxy.Find(typed.Wire.Body, "content").Param.Encode != proxy.EncodeBase64 {
		t.Errorf("%v", err)
	}
	raw, _, err := run(sel, "gitea_api_request",
		`{"method":"POST","path":"/repos/a/b/contents/c","body":{"message":"m","content_text":"é"}}`, false)
	if err != nil || len(raw.Wire.Body) != 2 || proxy.Find(raw.Wire.Body, "content_text").Param != nil {
		t.Errorf("%v", err)
	}
}

// TestUnknownRouteHasNoTarget: what the catalog lacks is judged in the strictest
// way, and nothing is read from its path.
func TestUnknownRouteHasNoTarget(t *testing.T) {
	t.Parallel()
	c, _, err := run(everything(t), "gitea_api_request",
		`{"method":"POST","path":"/repos/acme/web/new/thing","query":{"b":1,"a":null},"body":{"z":1,"y":[2]}}`, false)
	if err != nil {
		t.Fatal(err)
	}
	want := proxy.Wire{Method: "POST", Path: "/repos/acme/web/new/thing", Sends: proxy.InBody,
		Query: []proxy.Field{{Name: "a", In: proxy.InQuery}, {Name: "b", In: proxy.InQuery, Value: json.Number("1")}},
		Body: []proxy.Field{
			{Name: "y", In: proxy.InBody, Value: []any{json.Number("2")}}, {Name: "z", In: proxy.InBody, Value: json.Number("1")},
		},
	}
	if diff := gocmp.Diff(want, c.Wire); diff != "" || c.Op != nil || c.Target != (proxy.Target{}) {
		t.Errorf("operation %v, target %+v, request (-want +got):\n%s", c.Op, c.Target, diff)
	}
	if c.Tool.Risk != proxy.R4 || c.Tool.Class() != proxy.ClassDestructive {
		t.Errorf("risk %v, class %s", c.Tool.Risk, c.Tool.Class())
	}
}

// TestRefusedCallsMeanNothing: no stage may act on half a call.
func TestRefusedCallsMeanNothing(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	for name, args := range map[string]string{
		"gitea_issue_get":                 `{"owner":"acme"}`,
		"gitea_user_get":                  `{"username":"search"}`,
		"gitea_api_request":               `{"method":"GET","path":"/repos/../x"}`,
		"gitea_user_delete_token":         `{"username":"a","token_name":"b"}`,
		"gitea_release_create_attachment": `{"owner":"a"}`,
	} {
		if c, _, err := run(sel, name, args, false); err == nil || c != nil {
			t.Errorf("%s %s is let through", name, args)
		}
	}
}

// plainWire is a request with all its values as JSON, and without what says how
// arguments are encoded.
func plainWire(w *proxy.Wire) any {
	list := func(fields []proxy.Field) (out []string) {
		for i := range fields {
			f := &fields[i]
			v := f.Value
			if n, ok := v.(json.Number); ok && f.In != proxy.InBody { // text on the wire in any case
				v = n.String()
			}
			b, err := json.Marshal(v)
			if err != nil {
				b = []byte(err.Error())
			}
			out = append(out, fmt.Sprint(f.In, " ", f.Name, "=", string(b)))
		}
		return out
	}
	return []any{w.Method, w.Path, w.Sends, list(w.Values), list(w.Query), list(w.Body)}
}

// text is a value as JSON.
func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sampled returns arguments that fit a tool and that the raw tool can spell: the
// required ones, or all.
func sampled(tool *proxy.Tool, optional bool) map[string]any {
	out := map[string]any{}
	for i := range tool.Params {
		p := &tool.Params[i]
		if p.Encode == proxy.EncodeNone && (p.Required || optional || p.In == proxy.InBody && paired(tool, p)) {
			v := sampleOf(p.Wire, p.In, p.Schema, 0)
			if text, ok := v.(string); ok && p.In == proxy.InPath && !p.Wildcard { // else only the tool can spell it
				v = strings.ReplaceAll(text, "/", "-")
			}
			out[p.Name] = v
		}
	}
	return out
}

// paired reports whether exactly one of two arguments must be given, of which this
// one is as Gitea takes it.
func paired(tool *proxy.Tool, p *proxy.Param) bool {
	return slices.ContainsFunc(tool.Params, func(q proxy.Param) bool {
		return q.Encode != proxy.EncodeNone && q.Wire == p.Wire
	})
}

var samples = []string{
	"x1", "2026-01-31T12:00:00Z", "2026-01-31", "a@example.com", "#00aabb", "eA==", "0123456789012345678901234567890123456789",
}

func sampleOf(wire string, in proxy.In, s *proxy.Schema, depth int) any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type != "string":
	case wire == "content" || wire == "content_base64" || in == proxy.InFile:
		return "eA=="
	case wire == "filepath" || wire == "path" || wire == "from_path":
		return "docs/a.md"
	}
	switch s.Type {
	case "integer", "number":
		n := int64(7)
		if s.Maximum != nil {
			n = min(n, *s.Maximum)
		}
		return n
	case "boolean":
		return true
	case "array":
		if s.Items == nil || depth > 3 {
			return []any{}
		}
		return []any{sampleOf(wire, in, s.Items, depth+1)}
	case "object", "":
		out := map[string]any{}
		for i := range s.Properties {
			if p := &s.Properties[i]; p.Encode == proxy.EncodeNone && (p.Required || p.Name == "content") {
				out[cmp.Or(p.Wire, p.Name)] = sampleOf(p.Name, in, p.Schema, depth+1)
			}
		}
		return out
	}
	formats := map[string]string{"date-time": samples[1], "date": samples[2], "email": samples[3]}
	if v := formats[s.Format]; v != "" {
		return v
	}
	for _, v := range samples {
		if s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(v) {
			return v
		}
	}
	return ""
}

// rawForm is the same call through the raw tool. Lists in the query are as the
// operation wants them: the key again and again, or commas.
func rawForm(tool *proxy.Tool, given map[string]any) map[string]any {
	path, query, body, hasBody := tool.Path, map[string]any{}, map[string]any{}, false
	var whole any
	for i := range tool.Params {
		p := &tool.Params[i]
		hasBody = hasBody || p.In != proxy.InPath && p.In != proxy.InQuery
		v, ok := given[p.Name]
		if !ok {
			continue
		}
		switch p.In {
		case proxy.InPath:
			path = strings.ReplaceAll(path, "{"+p.Wire+"}", fmt.Sprint(v))
		case proxy.InQuery:
			query[p.Wire] = v
		case proxy.InWhole:
			whole = v
		default:
			body[p.Wire] = v
		}
	}
	out := map[string]any{"method": tool.Method, "path": path, "query": query}
	switch {
	case whole != nil:
		out["body"] = whole
	case hasBody:
		out["body"] = body
	}
	return out
}
