package build_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"aegis/spec"
	"aegis/spec/build"

	"github.com/google/go-cmp/cmp"
)

// pinned builds the catalog of the committed facts.
func pinned(tb testing.TB) *spec.Catalog {
	tb.Helper()
	data, err := os.ReadFile("../facts/gitea.json")
	if err != nil {
		tb.Fatal(err)
	}
	facts, err := build.DecodeFacts(data)
	if err != nil {
		tb.Fatal(err)
	}
	cat, _, err := build.Build(facts, build.Options{Inputs: os.DirFS(".."), Strict: true})
	if err != nil {
		tb.Fatal(err)
	}
	return cat
}

// TestNoDrift fails when the committed files are not what the inputs give.
func TestNoDrift(t *testing.T) {
	t.Parallel()
	cat := pinned(t)
	text, err := build.Encode(cat)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]byte{"../catalog.json": text, "../../docs/tools.md": build.Markdown(cat)} {
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what \"go generate ./...\" makes (%v)", filepath.Base(file), err)
		}
	}
	again, err := build.Encode(pinned(t))
	if err != nil || !bytes.Equal(text, again) {
		t.Error("two builds differ")
	}
}

// TestSwaggerRoundTrip writes the pinned facts as a description, as the demo's
// Gitea serves it, and reads the same facts out of it.
func TestSwaggerRoundTrip(t *testing.T) {
	t.Parallel()
	facts, err := build.DecodeFacts(spec.Facts())
	if err != nil {
		t.Fatal(err)
	}
	text, err := facts.Swagger()
	if err != nil {
		t.Fatal(err)
	}
	again, report, err := build.ParseSwagger(text, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts, again); diff != "" || len(facts.Operations) != 537 {
		t.Errorf("%d operations (-facts +read again): %.2000s", len(facts.Operations), diff)
	}
	if text := report.String(); text != new(build.Report).String() {
		t.Errorf("report: %s", text)
	}
}

// TestFactsRoundTrip decodes and encodes the committed facts.
func TestFactsRoundTrip(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../facts/gitea.json")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := build.DecodeFacts(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := facts.Swagger()
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("the facts change on the way (%v)", err)
	}
}

// doc wraps paths and definitions into a Swagger document.
func doc(paths, definitions string) []byte {
	return fmt.Appendf(nil, `{"swagger":"2.0","info":{"title":"Forge","version":"9.1"},"basePath":"/api/v1","consumes":["application/json"],`+
		`"produces":["application/json"],"paths":{%s},"definitions":{%s}}`, paths, definitions)
}

func fromSwagger(t *testing.T, data []byte) (*spec.Catalog, *build.Report) {
	t.Helper()
	cat, report, err := build.FromSwagger(data, build.Options{Inputs: spec.Inputs()})
	if err != nil {
		t.Fatal(err)
	}
	return cat, report
}

func find(cat *spec.Catalog, route string) *spec.Operation {
	for i := range cat.Operations {
		if o := &cat.Operations[i]; o.Method+" "+o.Path == route {
			return o
		}
	}
	return nil
}

// TestForeignDescriptions holds what other servers' descriptions are known to
// do: every operation is built or left out with a reason.
func TestForeignDescriptions(t *testing.T) {
	t.Parallel()
	cat, report := fromSwagger(t, doc(`
		"/repos/{owner}/{repo}/flags": {
			"get": {"summary": "List\nthe   flags\u0007\u202e of a repository", "responses": {"200": {"schema": {"type": "array", "items": {"type": "string"}}}}},
			"put": {"operationId": "repoReplaceFlags", "parameters": [
				{"in":"path","name":"owner","type":"string","required":true},
				{"in":"header","name":"X-Otp","type":"string"},
				{"in":"body","name":"body","schema":{"type":"array","items":{"type":"string"}}}]},
			"head": {"operationId": "headFlags"}
		},
		"/one": {"post": {"operationId": "same", "parameters": [{"in":"formData","name":"upload","type":"file"},{"in":"formData","name":"label","type":"string"}]}},
		"/two": {"get": {"operationId": "same", "parameters": [{"in":"path","name":"ghost","type":"string","required":true}]}},
		"/three/{id}/{id}": {"get": {"operationId": "twice"}},
		"/four/{id}": {"delete": {"operationId": "delFour", "parameters": [{"in":"query","name":"access_token","type":"string"},{"in":"query","name":"cursor","type":"string"}]}},
		"/five/%2e": {"get": {"operationId": "odd"}},
		"/six": {"post": {"operationId": "six", "parameters": [{"in":"body","name":"b","schema":{"$ref":"#/definitions/Loop"}}]}},
		"/seven": {"get": {"operationId": "seven", "parameters": "none"}},
		"/eight": {"get": {"operationId": "eight", "parameters": [{"in":"query","name":"level","type":"integer","enum":[1,2]},{"in":"query","name":"kind","type":["string","null"],"default":5}]}},
		"/admin/tokens": {"get": {"operationId": "adminMakeToken"}},
		"/user/keys/{id}/registration-token": {"get": {"operationId": "userRunnerToken"}}`,
		`"Loop": {"type":"object","required":["name"],"properties":{"name":{"type":"string"},"next":{"$ref":"#/definitions/Loop"},"list":{"type":"array","items":{"$ref":"#/definitions/Loop"}},"bad name!":{"type":"string"}}}`))

	type row struct {
		Name, Risk, Params string
		ReadOnly           bool
	}
	got := map[string]row{}
	for _, o := range cat.Operations {
		var params []string
		for _, p := range o.Params {
			params = append(params, p.In+":"+p.Name)
		}
		got[o.Method+" "+o.Path] = row{o.Name, o.Risk, strings.Join(params, " "), o.ReadOnly}
	}
	want := map[string]row{
		"GET /repos/{owner}/{repo}/flags":        {"gitea_repository_get_flags", "R1", "path:owner path:repo", true},
		"PUT /repos/{owner}/{repo}/flags":        {"gitea_repository_replace_flags", "R3", "path:owner path:repo whole:body", false},
		"POST /one":                              {"gitea_miscellaneous_same", "R3", "file:upload form:label", false},
		"GET /two":                               {"gitea_miscellaneous_same_b7069d", "R1", "", true},
		"DELETE /four/{id}":                      {"gitea_miscellaneous_del_four", "R3", "path:id query:query_cursor", false},
		"POST /six":                              {"gitea_miscellaneous_six", "R3", "body:name body:bad_name body:list body:next", false},
		"GET /eight":                             {"gitea_miscellaneous_eight", "R1", "query:level query:kind", true},
		"GET /admin/tokens":                      {"gitea_admin_make_token", "R4", "", false},
		"GET /user/keys/{id}/registration-token": {"gitea_user_runner_token", "R4", "path:id", false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if o := find(cat, "GET /repos/{owner}/{repo}/flags"); o.Description != "List the flags of a repository" {
		t.Errorf("description %q", o.Description)
	}
	for _, reason := range []string{"GET /three/{id}/{id}", "GET /five/%2e", "GET /seven"} {
		if !slices.ContainsFunc(report.Left, func(l string) bool { return strings.HasPrefix(l, reason+": ") }) {
			t.Errorf("no reason why %s is left out: %q", reason, report.Left)
		}
	}
	if text := report.String(); !strings.Contains(text, "header parameter") ||
		!strings.Contains(text, "steers authentication") {
		t.Errorf("report:\n%s", text)
	}
}

// TestKnownOperationsKeepTheirNames builds from a description that has one
// known operation with a new argument.
func TestKnownOperationsKeepTheirNames(t *testing.T) {
	t.Parallel()
	base, err := spec.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	cat, report, err := build.FromSwagger(doc(`"/repos/{owner}/{repo}": {"get": {"operationId": "repoGet", "summary": "theirs", "parameters": [
		{"in":"path","name":"owner","type":"string","required":true},{"in":"path","name":"repo","type":"string","required":true},
		{"in":"query","name":"depth","type":"integer","description":"How deep."}]}},
		"/repos/{owner}/{repo}/extra": {"get": {"operationId": "repoExtra"}}`, ``),
		build.Options{Inputs: spec.Inputs(), Baseline: base})
	if err != nil {
		t.Fatal(err)
	}
	o := find(cat, "GET /repos/{owner}/{repo}")
	if o == nil || o.Name != "gitea_repository_get" || o.Risk != "R0" || o.Description == "theirs" {
		t.Errorf("repoGet became %+v", o)
	}
	if !slices.Equal(report.Changed, []string{"GET /repos/{owner}/{repo}"}) ||
		!slices.Equal(report.Added, []string{"GET /repos/{owner}/{repo}/extra"}) ||
		len(report.Missing) != 536 {
		t.Errorf("changed %q, added %q, %d missing", report.Changed, report.Added, len(report.Missing))
	}
}

func TestDescriptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"properties":{"a":`, 200) + `{}` + strings.Repeat(`}}`, 200)
	for name, data := range map[string][]byte{
		"no JSON":         []byte("swagger: '2.0'"),
		"cut":             []byte(`{"swagger":"2.0"`),
		"two documents":   append(doc(`"/a":{"get":{}}`, ``), []byte(" {}")...),
		"OpenAPI 3":       []byte(`{"openapi":"3.0.0","paths":{}}`),
		"no operations":   doc(`"/a":{"head":{}}`, ``),
		"nested too deep": doc(`"/a":{"get":{}}`, `"D":`+deep),
		"too long":        bytes.Repeat([]byte(" "), build.MaxSwaggerBytes+1),
		"empty":           nil,
	} {
		if _, _, err := build.FromSwagger(data, build.Options{Inputs: spec.Inputs()}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestBadAliases: aliases that are wrong stop a build with a word about which.
func TestBadAliases(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../facts/gitea.json")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := build.DecodeFacts(data)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", spec.MaxAlias+1)
	for text, want := range map[string]string{
		"issueGetIssue: [read it, open it, show it, look it up]\nissueListIssues: [read it, bugs, tasks, todo list]": `"read it" stands for issueGetIssue and issueListIssues`,
		"issueGetIssue: [read it]":                                 "issueGetIssue has 1 aliases",
		"issueGetIssue: [read it, open it, show it, " + long + "]": "issueGetIssue: \"" + long + "\" has 51 characters",
		"issueGetNothing: [read it, open it, show it, look it up]": "issueGetNothing is no operation",
		"issueGetIssue: [read it, open it, show it, look it up]":   "issueListIssues has no aliases",
	} {
		files := fstest.MapFS{}
		for _, name := range []string{"names.yaml", "scopes.yaml", "corrections.yaml"} {
			text, err := os.ReadFile(filepath.Join("..", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: text}
		}
		files["descriptions/aliases.yaml"] = &fstest.MapFile{Data: []byte(text)}
		if _, _, err := build.Build(facts, build.Options{Inputs: files, Strict: true}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %.300v; want %s", text, err, want)
		}
	}
}

// TestLongNamesStayUnique gives two operations the same long id prefix.
func TestLongNamesStayUnique(t *testing.T) {
	t.Parallel()
	long := "repoAVeryLongOperationNameThatNobodyCanRemember"
	cat, _ := fromSwagger(t, doc(`"/repos/a": {"get": {"operationId": "`+long+`One"}}, "/repos/b": {"get": {"operationId": "`+long+`Two"}}`, ``))
	if len(cat.Operations) != 2 || cat.Operations[0].Name == cat.Operations[1].Name ||
		len(cat.Operations[0].Name) > spec.MaxName {
		t.Errorf("names %+v", cat.Operations)
	}
}

func FuzzFromSwagger(f *testing.F) {
	f.Add(doc(`"/a/{x}": {"get": {"operationId":"a","parameters":[{"in":"query","name":"q","type":"array","items":{"type":"string"}}],"responses":{"200":{"schema":{"$ref":"#/definitions/D"}}}}}`,
		`"D":{"type":"object","properties":{"d":{"$ref":"#/definitions/D"}},"required":true,"additionalProperties":{"type":["string"]}}`))
	f.Add(doc(`"/a": {"parameters":[{"$ref":"#/parameters/p"}],"post":{"parameters":[{"in":"body","name":"b","schema":{"allOf":[{"$ref":"#/definitions/D"},{"properties":{"x":{"default":{}}}}]}}]}}`, `"D":{"type":"array"}`))
	f.Add(doc(`"": {"post": {}}, "/{": {"get": {}}, "/a/{b}": {"put": {"operationId": "known"}}`, ``))
	inputs := fstest.MapFS{
		"names.yaml":       {Data: []byte("operations: {known: {name: user_get, risk: R1}}")},
		"scopes.yaml":      {Data: []byte("rules: [{path: /a/**, scopes: [user]}]")},
		"corrections.yaml": {Data: []byte("wildcards: [{path: '/a/{b}', params: [b]}]")},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		facts, _, err := build.ParseSwagger(data, true)
		if err != nil {
			return
		}
		if _, _, err := build.Build(facts, build.Options{Inputs: inputs}); err != nil &&
			!errors.Is(err, build.ErrNoOperations) {
			t.Errorf("a description that was read gives no catalog: %v", err)
		}
	})
}

// TestReferencesThatMultiply has two hundred properties in each of a few
// definitions that refer to one another.
func TestReferencesThatMultiply(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 5 {
		var props []string
		for j := range 200 {
			props = append(props, fmt.Sprintf(`"p%d":{"$ref":"#/definitions/D%d"}`, j, (i+j)%5))
		}
		defs = append(defs, fmt.Sprintf(`"D%d":{"type":"object","properties":{%s}}`, i, strings.Join(props, ",")))
	}
	cat, _ := fromSwagger(t, doc(`"/a": {"post": {"operationId": "a", "parameters": [{"in":"body","name":"b","schema":{"$ref":"#/definitions/D0"}}],`+
		`"responses":{"200":{"schema":{"$ref":"#/definitions/D0"}}}}}`, strings.Join(defs, ",")))
	if n := len(spec.NewExpander(cat).Output(&cat.Operations[0])); n > 4<<20 {
		t.Errorf("an output schema of %d bytes", n)
	}
}

// TestRoutesTellKnownOperations builds from descriptions whose ids are missing,
// foreign or mean something else.
func TestRoutesTellKnownOperations(t *testing.T) {
	t.Parallel()
	base, err := spec.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	cat, _, err := build.FromSwagger(doc(`"/repos/{owner}/{repo}": {"get": {}, "delete": {"operationId": "deleteRepository"}},
		"/repos/{owner}/{repo}/gone": {"delete": {"operationId": "repoGet"}}`, ``), build.Options{Inputs: spec.Inputs(), Baseline: base})
	if err != nil {
		t.Fatal(err)
	}
	for route, want := range map[string][2]string{
		"GET /repos/{owner}/{repo}":         {"gitea_repository_get", "R0"},
		"DELETE /repos/{owner}/{repo}":      {"gitea_repository_delete", "R3"},
		"DELETE /repos/{owner}/{repo}/gone": {"gitea_repository_delete_repo_get", "R3"},
	} {
		if o := find(cat, route); o == nil || o.Name != want[0] || o.Risk != want[1] {
			t.Errorf("%s became %+v, want %v", route, o, want)
		}
	}
}

// TestCorrections builds with each kind of correction.
func TestCorrections(t *testing.T) {
	t.Parallel()
	inputs := fstest.MapFS{
		"names.yaml":  {Data: []byte("operations: {one: {name: user_one, risk: R0}, two: {name: user_two, risk: R2, timeout: 5m}, three: {name: user_three, risk: R0}}")},
		"scopes.yaml": {Data: []byte("rules: []")},
		"corrections.yaml": {Data: []byte(`
numbers: {params: [id], except: [one]}
operations:
  one: {reason: r, output: one_or_many, args: {kinds: {enum: [a, b], default: [a]}}, add: [{name: page, in: query, type: integer}, {name: limit, in: query, type: integer}]}
  two: {reason: r, args: {name: {required: true, min_length: 1, max_length: 9, pattern: '^x'}, list: {min_items: 1}}, add: [{name: extra, in: body, type: string, required: true}]}
  three: {reason: r, output: with_nulls}
`)},
	}
	facts, _, err := build.ParseSwagger(doc(`
		"/a/{id}": {"get": {"operationId": "one", "parameters": [{"in":"path","name":"id","type":"string","required":true},{"in":"query","name":"kinds","type":"array","items":{"type":"string"}}],
			"responses": {"200": {"schema": {"$ref": "#/definitions/D"}}}}},
		"/b": {"post": {"operationId": "two", "parameters": [{"in":"body","name":"b","schema":{"type":"object","properties":{"name":{"type":"string"},"list":{"type":"array","items":{"type":"string"}}}}}]}},
		"/c": {"get": {"operationId": "three", "responses": {"200": {"schema": {"type": "array", "items": {"$ref": "#/definitions/D"}}}}}}`, `"D":{"type":"object"}`), false)
	if err != nil {
		t.Fatal(err)
	}
	cat, _, err := build.Build(facts, build.Options{Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	one, two, three := find(cat, "GET /a/{id}"), find(cat, "POST /b"), find(cat, "GET /c")
	if one.Paging != "page" || string(one.Output) != `{"anyOf":[{"$ref":"D"},{"type":"array","items":{"$ref":"D"}}]}` {
		t.Errorf("one: %q %s", one.Paging, one.Output)
	}
	if string(three.Output) != `{"type":["array","null"],"items":{"anyOf":[{"$ref":"D"},{"type":"null"}]}}` {
		t.Errorf("three: %s", three.Output)
	}
	if two.TimeoutSeconds != 300 {
		t.Errorf("two: %d seconds", two.TimeoutSeconds)
	}
	got := map[string]string{}
	for _, o := range []*spec.Operation{one, two} {
		for i := range o.Params {
			p := &o.Params[i]
			got[fmt.Sprint(o.ID, " ", p.In, " ", p.Name, " ", p.Required)] = string(cat.Schema(p))
		}
	}
	want := map[string]string{
		"one path id true":      `{"type":"string","minLength":1,"maxLength":255}`,
		"one query kinds false": `{"type":"array","default":["a"],"items":{"type":"string","enum":["a","b"]},"maxItems":1000}`,
		"one query page false":  `{"type":"integer","minimum":1}`,
		"one query limit false": `{"type":"integer","minimum":1,"maximum":1000}`,
		"two body name true":    `{"type":"string","pattern":"^x","minLength":1,"maxLength":9}`,
		"two body list false":   `{"type":"array","items":{"type":"string","maxLength":255},"minItems":1,"maxItems":1000}`,
		"two body extra true":   `{"type":"string","maxLength":255}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
