package fakegitea_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/proxy/envelope"
	"aegis/spec"
)

// schemas checks answers against the output schemas that clients see.
var schemas = sync.OnceValues(func() (*schemaCheck, error) {
	cat, err := spec.Builtin()
	if err != nil {
		return nil, err
	}
	set, err := catalog.Load(cat)
	if err != nil {
		return nil, err
	}
	selection, problems := set.Select(config.Default().Tools)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%v", problems)
	}
	c := &schemaCheck{routes: selection, tools: map[string]*proxy.Tool{}}
	for _, tool := range set.Tools() {
		c.tools[tool.OperationID] = tool
	}
	cursors, err := envelope.NewCursors("")
	results := config.Default().Results
	results.Structured = true
	c.render = envelope.New(results, cursors).RenderLocal()
	return c, err
})

type schemaCheck struct {
	routes *catalog.Selection
	tools  map[string]*proxy.Tool
	render proxy.Stage
}

// mismatch returns where an answer to a request breaks the schema of the request's operation,
// "" where it fits or is no answer of an operation.
func (c *schemaCheck) mismatch(t *testing.T, method, target string, res *httptest.ResponseRecorder) string {
	t.Helper()
	route, ok := strings.CutPrefix(target, "/api/v1")
	if !ok || res.Code/100 != 2 {
		return ""
	}
	route, _, _ = strings.Cut(route, "?")
	args, err := json.Marshal(map[string]string{"method": method, "path": route})
	if err != nil {
		t.Fatal(err)
	}
	tool := c.routes.Target("gitea_api_request", args)
	if tool == nil || c.tools[tool.OperationID] == nil {
		return ""
	}
	call := &proxy.Call{Tool: c.tools[tool.OperationID], Identity: &proxy.Identity{}}
	result := &proxy.Result{Status: res.Code, Body: res.Body.Bytes()}
	switch media := res.Header().Get("Content-Type"); {
	case strings.HasPrefix(media, "text/"):
		result.Kind = proxy.BodyText
	case len(result.Body) == 0:
	case strings.HasPrefix(media, "application/json"):
		result.Kind = proxy.BodyJSON
	default:
		result.Kind = proxy.BodyBinary
	}
	h := c.render(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return result, nil }))
	out, err := h.Handle(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if out.Structured == nil && call.Stats.SchemaMismatch == "" {
		t.Errorf("%s %s: neither structured content nor a mismatch", method, target)
	}
	return call.Stats.SchemaMismatch
}

// checkSchema fails the test when an answer breaks its operation's output schema.
func checkSchema(t *testing.T, method, target string, res *httptest.ResponseRecorder) {
	t.Helper()
	c, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	if at := c.mismatch(t, method, target, res); at != "" {
		t.Errorf("%s %s breaks its output schema at %s: %.200s", method, target, at, res.Body)
	}
}

// examples returns JSON texts that have the shape, enough of them that each kind of each value
// is in one, with and without what is optional.
func (s *shape) examples() []string {
	if s == nil {
		return []string{"null"}
	}
	var out []string
	for _, kind := range s.kinds {
		switch kind {
		case 's':
			out = append(out, `"x"`)
		case 'n':
			out = append(out, "7")
		case 'b':
			out = append(out, "true")
		case 'z':
			out = append(out, "null")
		case 'a':
			out = append(out, "[]")
			if s.item != nil {
				out = append(out, "["+strings.Join(s.item.examples(), ",")+"]")
			}
		case 'o':
			out = append(out, s.objects()...)
		}
	}
	return out
}

// objects returns an object for each of the most examples that a member has: a member with
// fewer of them repeats its last, and is left out where it may be.
func (s *shape) objects() []string {
	members, most := map[string][]string{}, 1
	for _, key := range s.keys {
		members[key] = s.in[key].examples()
		most = max(most, len(members[key]))
	}
	var out []string
	for i := range most {
		var parts []string
		for _, key := range s.keys {
			if texts := members[key]; i < len(texts) || !s.opt[key] {
				parts = append(parts, `"`+key+`":`+texts[min(i, len(texts)-1)])
			}
		}
		out = append(out, "{"+strings.Join(parts, ",")+"}")
	}
	return out
}

// TestRecordedAnswersFitTheirSchemas: what a real Gitea was recorded to answer, in every kind
// that a value had, fits the output schema of its operation.
func TestRecordedAnswersFitTheirSchemas(t *testing.T) {
	t.Parallel()
	lines, defs := readRecorded(t)
	checked := 0
	for _, rec := range lines {
		method, target, _ := strings.Cut(strings.ReplaceAll(rec.Do, "{head}", strings.Repeat("a", 40)), " ")
		bodies := []string{""}
		switch {
		case rec.Shape != "":
			bodies = (&shapeParser{rec.Shape, defs}).parse().examples()
		case rec.Text != nil:
			bodies = []string{*rec.Text}
		}
		for _, body := range bodies {
			if body == "" && rec.Text == nil && rec.Type != "" {
				continue // the bytes were not recorded
			}
			res := httptest.NewRecorder()
			res.Header().Set("Content-Type", rec.Type)
			res.WriteHeader(rec.Status)
			_, _ = res.WriteString(body)
			checkSchema(t, method, target, res)
			checked++
		}
	}
	if checked < len(lines) {
		t.Errorf("%d answers of %d recordings were checked", checked, len(lines))
	}
}
