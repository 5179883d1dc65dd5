package catalog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"

	"github.com/google/jsonschema-go/jsonschema"
)

// everyList returns each tool of each mode, and some of those with sudo.
func everyList(tb testing.TB) []*proxy.Tool {
	tb.Helper()
	var out []*proxy.Tool
	set := builtin(tb)
	for _, mode := range []string{"full", "search"} {
		sel, problems := set.Select(config.Tools{Mode: mode, Raw: true})
		if len(problems) != 0 {
			tb.Fatal(problems)
		}
		out = append(append(out, sel.Tools()...), sel.SudoTools()[:min(20, len(sel.SudoTools()))]...)
	}
	return out
}

// TestSchemasKeepToTheSubset validates every listed schema against the subset's
// meta-schema, and lets the library check the schema itself.
func TestSchemasKeepToTheSubset(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/subset.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, seen := resolve(t, text), map[string]bool{}
	for _, tool := range everyList(t) {
		for kind, raw := range map[string]json.RawMessage{"input": tool.InputSchema, "list": tool.ListSchema} {
			if raw == nil {
				continue
			}
			var doc any
			if err := json.Unmarshal(raw, &doc); err != nil {
				t.Errorf("%s: %s schema: %v", tool.Name, kind, err)
				continue
			}
			if err := meta.Validate(doc); err != nil {
				t.Errorf("%s: %s schema: %v", tool.Name, kind, err)
			}
			resolve(t, raw)
		}
		if out := string(tool.OutputSchema); out != "" && !seen[out] {
			seen[out] = true
			resolve(t, tool.OutputSchema)
		}
	}
}

func resolve(t *testing.T, raw []byte) *jsonschema.Resolved {
	t.Helper()
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		t.Fatalf("%v in %.200s", err, raw)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatalf("%v in %.200s", err, raw)
	}
	return r
}

// TestSubsetRefuses keeps the meta-schema honest: what providers refuse, it
// refuses.
func TestSubsetRefuses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/subset.json")
	if err != nil {
		t.Fatal(err)
	}
	meta := resolve(t, text)
	for _, prop := range []string{
		`{"anyOf":[{"type":"string"}]}`, `{"type":["string","null"]}`, `{"type":"integer","enum":[1]}`, `{"type":"integer","format":"int64"}`,
		`{"$ref":"#/x"}`, `{"type":"object","required":[]}`, `{}`, `{"type":"string","const":"x"}`,
	} {
		var doc any
		if err := json.Unmarshal([]byte(`{"type":"object","properties":{"a":`+prop+`},"additionalProperties":false}`),
			&doc); err != nil {
			t.Fatal(err)
		}
		if meta.Validate(doc) == nil {
			t.Errorf("%s was accepted", prop)
		}
	}
}

// TestProviderRestrictions encodes what providers of language models refuse a
// whole list for.
func TestProviderRestrictions(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z0-9_]{1,45}$`)
	for _, tool := range everyList(t) {
		if !name.MatchString(tool.Name) {
			t.Errorf("name %q", tool.Name)
		}
		for _, raw := range []json.RawMessage{tool.InputSchema, tool.ListSchema} {
			if raw == nil {
				continue
			}
			var doc map[string]any
			if err := json.Unmarshal(raw, &doc); err != nil {
				t.Fatal(err)
			}
			for _, problem := range lint("", doc, 1) {
				t.Errorf("%s%s", tool.Name, problem)
			}
			if len(doc["properties"].(map[string]any)) > 100 {
				t.Errorf("%s has more than 100 arguments", tool.Name)
			}
		}
	}
}

func lint(at string, s map[string]any, depth int) (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, at+": "+fmt.Sprintf(format, args...)) }
	typ, ok := s["type"].(string)
	if !ok {
		fail("type is %v", s["type"])
	}
	if depth > 5 {
		fail("nested %d deep", depth)
	}
	for _, k := range []string{"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "if", "const", "nullable",
		"patternProperties", "dependentRequired"} {
		if _, bad := s[k]; bad {
			fail("uses %s", k)
		}
	}
	if list, ok := s["required"].([]any); ok {
		props, _ := s["properties"].(map[string]any)
		if len(list) == 0 {
			fail("empty required")
		}
		for _, n := range list {
			if props[n.(string)] == nil {
				fail("requires %v, which it does not have", n)
			}
		}
	}
	if d, has := s["default"]; has && !fits(typ, d, s["enum"]) {
		fail("default %v of a %s", d, typ)
	}
	if p, ok := s["pattern"].(string); ok && strings.Contains(p, "(?") {
		fail("pattern %s needs more than every engine has", p)
	}
	if typ == "array" && s["items"] == nil {
		fail("array without items")
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := s[key].(map[string]any); ok {
			problems = append(problems, lint(at+"."+key, sub, depth+1)...)
		}
	}
	if props, ok := s["properties"].(map[string]any); ok {
		for n, sub := range props {
			if strings.HasPrefix(n, "$") {
				fail("a property called %s", n)
			}
			problems = append(problems, lint(at+"."+n, sub.(map[string]any), depth+1)...)
		}
	}
	return problems
}

func fits(typ string, v, enum any) bool {
	switch v := v.(type) {
	case string:
		list, _ := enum.([]any)
		return typ == "string" && (list == nil || slices.Contains(list, any(v)))
	case bool:
		return typ == "boolean"
	case float64:
		return typ == "number" || typ == "integer" && v == float64(int64(v))
	case []any:
		return typ == "array"
	}
	return false
}

// TestEverythingIsBounded walks the complete schemas: every string has a
// length or a list, every integer a minimum, every array a size, page sizes
// are 1 to 50, and names in paths have a pattern.
func TestEverythingIsBounded(t *testing.T) {
	t.Parallel()
	for _, tool := range everything(t).Enabled() {
		for i := range tool.Params {
			p := &tool.Params[i]
			for _, problem := range unbounded(p.Name, p.Schema) {
				t.Errorf("%s: %s", tool.Name, problem)
			}
			switch {
			case p.In == proxy.InQuery && p.Name == "limit":
				if p.Schema.Maximum == nil || *p.Schema.Maximum != 1000 || *p.Schema.Minimum != 1 {
					t.Errorf("%s: limit is not 1 to 1000", tool.Name)
				}
			case p.In == proxy.InPath && slices.Contains([]string{"owner", "repo", "org", "username", "user",
				"collaborator"}, p.Wire):
				if p.Schema.Pattern == "" {
					t.Errorf("%s: %s has no pattern", tool.Name, p.Name)
				}
			case p.In == proxy.InPath && p.Schema.Type == "string" && p.Schema.Pattern == "" &&
				p.Schema.MinLength == 0 && p.Schema.Enum == nil:
				t.Errorf("%s: %s may be empty", tool.Name, p.Name)
			case p.In == proxy.InPath && p.Schema.Type == "integer" && *p.Schema.Minimum < 1:
				t.Errorf("%s: %s may be 0", tool.Name, p.Name)
			}
		}
	}
}

func unbounded(at string, s *proxy.Schema) (problems []string) {
	switch {
	case s.Type == "string" && s.MaxLength == 0 && len(s.Enum) == 0:
		return []string{at + " is a string of any length"}
	case s.Type == "integer" && s.Minimum == nil:
		return []string{at + " has no minimum"}
	case s.Type == "array" && s.MaxItems == 0:
		return []string{at + " is an array of any size"}
	case s.Type == "":
		return []string{at + " has no type"}
	}
	if s.Items != nil {
		problems = unbounded(at+"[]", s.Items)
	}
	for _, p := range s.Properties {
		problems = append(problems, unbounded(at+"."+p.Name, p.Schema)...)
	}
	return problems
}

// TestListSchemaAgrees compares the listed schema with the complete one: the
// same arguments, required alike, of the same types.
func TestListSchemaAgrees(t *testing.T) {
	t.Parallel()
	type schema struct {
		Properties map[string]struct {
			Type string
			Enum []string
		}
		Required []string
	}
	for _, tool := range everything(t).Enabled() {
		var full, listed schema
		if json.Unmarshal(tool.InputSchema, &full) != nil || json.Unmarshal(tool.ListSchema, &listed) != nil {
			t.Fatal(tool.Name)
		}
		if !slices.Equal(full.Required, listed.Required) || len(full.Properties) != len(listed.Properties) {
			t.Errorf("%s: %v and %v", tool.Name, full, listed)
		}
		for name, p := range full.Properties {
			if q := listed.Properties[name]; q.Type != p.Type || !slices.Equal(q.Enum, p.Enum) {
				t.Errorf("%s: %s differs", tool.Name, name)
			}
		}
	}
}

// TestExamples sends every example through validation.
func TestExamples(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	n := 0
	for _, tool := range sel.Enabled() {
		if tool.Example == nil {
			continue
		}
		n++
		if _, _, err := run(sel, tool.Name, string(tool.Example), false); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
	if n < 60 {
		t.Errorf("%d examples; the 60 most used tools need one", n)
	}
}

// TestKeep takes tools out and asks for them in every way.
func TestKeep(t *testing.T) {
	t.Parallel()
	set := builtin(t).Keep(func(tool *proxy.Tool) bool {
		return tool.Domain != "wiki" &&
			tool.OperationID != "repoDelete"
	})
	sel, problems := set.Select(config.Tools{Raw: true})
	if len(problems) != 0 || len(sel.Enabled()) != 536 {
		t.Fatalf("%d tools, %v", len(sel.Enabled()), problems)
	}
	if _, err := sel.Lookup("gitea_repository_delete"); err == nil {
		t.Error("found by name")
	}
	if call, _, err := run(sel, "gitea_api_request", `{"method":"DELETE","path":"/repos/a/b"}`, false); err == nil ||
		call != nil {
		t.Error("reached through the raw tool")
	}
}

// TestCommonArguments checks that what the list leaves without words is
// explained.
func TestCommonArguments(t *testing.T) {
	t.Parallel()
	for _, tool := range everything(t).Enabled() {
		var s struct {
			Properties map[string]struct{ Description string }
		}
		if err := json.Unmarshal(tool.ListSchema, &s); err != nil {
			t.Fatal(err)
		}
		for name, p := range s.Properties {
			if p.Description == "" && slices.Contains([]string{"owner", "repo", "org", "username", "index", "page",
				"limit", "fields", "cursor"}, name) &&
				!strings.Contains(catalog.CommonArguments, name) {
				t.Errorf("%s: nobody explains %s", tool.Name, name)
			}
		}
	}
}
