package gitea_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"aegis/proxy"
)

// factOperation is an operation as the pinned API description has it. The
// oracle reads these, never the catalog, so that a mistake in the catalog shows
// as well as one in the executor.
type factOperation struct {
	ID, Method, Path, Consumes string
	Params                     []factParam
}

type factParam struct {
	Name   string     `json:"name"`
	In     string     `json:"in"`
	Format string     `json:"collectionFormat"`
	Schema factSchema `json:"schema"`
}

type factSchema struct {
	Type       string                `json:"type"`
	Ref        string                `json:"$ref"`
	Enum       []string              `json:"enum"`
	Items      *factSchema           `json:"items"`
	Properties map[string]factSchema `json:"properties"`
}

type facts struct {
	Operations  []factOperation // sorted by path, then method
	Definitions map[string]factSchema
}

// compiled compiles each expression of the facts once.
func compiled(expr string) *regexp.Regexp {
	re, ok := expressions.Load(expr)
	if !ok {
		re, _ = expressions.LoadOrStore(expr, regexp.MustCompile(expr))
	}
	return re.(*regexp.Regexp)
}

var expressions sync.Map

func readFacts(t testing.TB) facts {
	t.Helper()
	text, err := os.ReadFile("../../spec/facts/gitea.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID         string            `json:"operationId"`
			Consumes   []string          `json:"consumes"`
			Parameters []json.RawMessage `json:"parameters"`
		} `json:"paths"`
		Definitions map[string]factSchema `json:"definitions"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	f := facts{Definitions: doc.Definitions}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			o := doc.Paths[path][method]
			op := factOperation{ID: o.ID, Method: strings.ToUpper(method), Path: path, Consumes: strings.Join(o.Consumes, "")}
			for _, raw := range o.Parameters {
				// A body has a schema; any other parameter is one.
				var p factParam
				if err := json.Unmarshal(raw, &p); err != nil || p.In != "body" && json.Unmarshal(raw, &p.Schema) != nil {
					t.Fatalf("%s: %s (%v)", o.ID, raw, err)
				}
				op.Params = append(op.Params, p)
			}
			f.Operations = append(f.Operations, op)
		}
	}
	if len(f.Operations) != 537 {
		t.Fatalf("%d operations in the facts, want 537", len(f.Operations))
	}
	return f
}

// rawSlash is where the measured server takes a slash in a path value as it is.
var rawSlash = map[string]string{
	"/repos/{owner}/{repo}/branches/{branch}":         "branch",
	"/repos/{owner}/{repo}/branch_protections/{name}": "name",
	"/repos/{owner}/{repo}/tags/{tag}":                "tag",
	"/repos/{owner}/{repo}/contents/{filepath}":       "filepath",
	"/repos/{owner}/{repo}/contents-ext/{filepath}":   "filepath",
	"/repos/{owner}/{repo}/raw/{filepath}":            "filepath",
	"/repos/{owner}/{repo}/media/{filepath}":          "filepath",
	"/repos/{owner}/{repo}/compare/{basehead}":        "basehead",
	"/repos/{owner}/{repo}/git/refs/{ref}":            "ref",
	"/repos/{owner}/{repo}/commits/{ref}/status":      "ref",
	"/repos/{owner}/{repo}/commits/{ref}/statuses":    "ref",
	"/repos/{owner}/{repo}/archive/{archive}":         "archive",
	"/repos/{owner}/{repo}/pulls/{base}/{head}":       "head",
}

// leftOut are body properties that the catalog does without: older spellings of
// others.
var leftOut = map[string]bool{"Wiki": true, "units": true, "branch_name": true, "old_branch_name": true}

// oracle makes arguments for a tool and says what must arrive.
type oracle struct {
	rng   *rand.Rand
	facts facts
	op    *factOperation
	tool  *proxy.Tool
	args  proxy.Arguments
	want  expected
}

// expected is the request that must reach the server.
type expected struct {
	path  string
	query []string // "key=value", escaped, sorted
	media string
	json  any               // the decoded body of JSON requests
	text  string            // the body of text requests
	files map[string]string // the files of a form, by field
}

// escaped is the one right spelling of a value outside a query's syntax:
// everything but letters, digits and -._~ in hexadecimal.
func escaped(v string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") }

// tricky are pieces of values that break sloppy escapes.
var tricky = []string{"a", "Z9", "-", "_", ".x", " ", "/", "%", "%2F", "+", "&", "=", "?", "#", ";", ":", "@", "ü",
	"日", "'", "\"", "(", "*", "~", "$", ",", "!", "|"}

// word returns a random value, with a slash inside when slashes holds.
func (o *oracle) word(slashes bool) string {
	var b strings.Builder
	b.WriteString("v")
	for range o.rng.IntN(6) {
		if p := tricky[o.rng.IntN(len(tricky))]; p != "/" || slashes {
			b.WriteString(p)
			b.WriteString("w")
		}
	}
	return b.String()
}

// param returns the tool's argument that is sent in this place under this name;
// nil when the tool does without it. Of two that share a name it is the one that
// goes out as it is.
func (o *oracle) param(in, wire string) *proxy.Param {
	for i := range o.tool.Params {
		if p := &o.tool.Params[i]; string(p.In) == in && p.Wire == wire && p.Encode == proxy.EncodeNone {
			return p
		}
	}
	return nil
}

// twin returns the argument that takes the same body property as plain text.
func (o *oracle) twin(wire string) *proxy.Param {
	for i := range o.tool.Params {
		if p := &o.tool.Params[i]; p.In == proxy.InBody && p.Wire == wire && p.Encode == proxy.EncodeBase64 {
			return p
		}
	}
	return nil
}

// value returns an argument of the facts' type that the catalog's schema c (nil
// for none) accepts, and its text in a path or query.
func (o *oracle) value(s factSchema, c *proxy.Schema, slashes bool) (any, string) {
	if c == nil {
		c = &proxy.Schema{Type: s.Type}
	}
	switch enum := append(slices.Clone(c.Enum), s.Enum...); {
	case len(enum) > 0:
		v := enum[o.rng.IntN(len(c.Enum)+len(s.Enum))]
		if len(c.Enum) > 0 {
			v = enum[o.rng.IntN(len(c.Enum))]
		}
		return v, v
	case c.Type == "integer" || c.Type == "number":
		low, high := int64(1), int64(1)<<53
		if c.Minimum != nil {
			low = *c.Minimum
		}
		if c.Maximum != nil {
			high = *c.Maximum
		}
		v := strconv.FormatInt(low+o.rng.Int64N(high-low+1), 10)
		return json.Number(v), v
	case c.Type == "boolean":
		v := o.rng.IntN(2) == 0
		return v, strconv.FormatBool(v)
	}
	v := o.text(c, slashes)
	return v, v
}

// text returns a string that fits c.
func (o *oracle) text(c *proxy.Schema, slashes bool) string {
	switch c.Format {
	case "date-time":
		return "2026-01-31T12:00:00+01:00"
	case "date":
		return "2026-01-31"
	case "email":
		return "a.b+c@example.org"
	case "uri":
		return "https://example.org/a?b=c&d"
	}
	if c.Pattern != "" {
		rule := compiled(c.Pattern)
		for _, v := range []string{"Some-name_1." + strconv.Itoa(o.rng.IntN(9)), "Name_1", "#00aabb"} {
			if rule.MatchString(v) {
				return v
			}
		}
	}
	v := o.word(slashes)
	if c.MaxLength > 0 && utf8.RuneCountInString(v) > c.MaxLength {
		return strings.Repeat("v", c.MaxLength)
	}
	return v
}

func (o *oracle) build(t *testing.T) {
	o.args, o.want = proxy.Arguments{}, expected{path: "/api/v1" + o.op.Path}
	for _, p := range o.op.Params {
		switch p.In {
		case "path":
			o.pathValue(t, p.Name, p.Schema)
		case "query":
			o.queryValue(p.Name, p.Format == "multi", p.Schema)
		case "body":
			o.body(t, p.Schema)
		case "formData":
			o.file(t, p.Name)
		}
	}
	o.added()
	o.paging()
	slices.Sort(o.want.query)
}

// added fills in the body of an operation whose description has none though the
// server wants one.
func (o *oracle) added() {
	for i := range o.tool.Params {
		p := &o.tool.Params[i]
		if _, given := o.args[p.Name]; given || !p.Required || p.In != proxy.InBody || p.Encode != proxy.EncodeNone {
			continue
		}
		object, ok := o.want.json.(map[string]any)
		if !ok {
			object = map[string]any{}
			o.want.json, o.want.media = object, "application/json"
		}
		v := o.property(p.Wire, p.Schema)
		o.args[p.Name], object[p.Wire] = v, v
	}
}

func (o *oracle) pathValue(t *testing.T, wire string, s factSchema) {
	p := o.param("path", wire)
	if p == nil {
		t.Fatalf("no argument for {%s}", wire)
	}
	v, text := o.value(s, p.Schema, true)
	o.args[p.Name] = v
	out := escaped(text)
	if rawSlash[o.op.Path] == wire {
		out = strings.ReplaceAll(out, "%2F", "/")
	}
	o.want.path = strings.Replace(o.want.path, "{"+wire+"}", out, 1)
}

func (o *oracle) queryValue(wire string, multi bool, s factSchema) {
	p := o.param("query", wire)
	if p == nil || !p.Required && o.rng.IntN(4) == 0 {
		return
	}
	if p.Schema.Type != "array" {
		v, text := o.value(s, p.Schema, wire != "ref" && wire != "sha")
		o.args[p.Name] = v
		o.want.query = append(o.want.query, escaped(wire)+"="+escaped(text))
		return
	}
	values := []any{}
	var texts []string
	for range o.rng.IntN(4) {
		v, text := o.value(factSchema{}, p.Schema.Items, true)
		values, texts = append(values, v), append(texts, text)
	}
	o.args[p.Name] = values
	switch {
	case len(texts) == 0:
	case multi:
		for _, text := range texts {
			o.want.query = append(o.want.query, escaped(wire)+"="+escaped(text))
		}
	default:
		o.want.query = append(o.want.query, escaped(wire)+"="+escaped(strings.Join(texts, ",")))
	}
}

// paging adds what a list must carry when the caller leaves it out.
func (o *oracle) paging() {
	has := func(key string) bool {
		return slices.ContainsFunc(o.want.query, func(pair string) bool { return strings.HasPrefix(pair, key+"=") })
	}
	add := func(key, value string) {
		if o.param("query", key) != nil && !has(key) {
			o.want.query = append(o.want.query, key+"="+value)
		}
	}
	switch o.tool.Paging {
	case proxy.PagingPage:
		add("page", "1")
		add("limit", "30")
	case proxy.PagingPerPage:
		if has("page") || has("per_page") {
			add("page", "1")
			add("per_page", "1000")
		}
	}
}

func (o *oracle) body(t *testing.T, s factSchema) {
	if whole := o.param("whole", "body"); whole != nil {
		if o.op.Consumes == "text/plain" {
			o.want.text = "# " + o.word(true) + "\r\n"
			o.args[whole.Name], o.want.media = o.want.text, "text/plain"
			return
		}
		o.want.json = map[string]any{"k": []any{json.Number("1"), nil, o.word(true)}}
		o.args[whole.Name], o.want.media = o.want.json, "application/json"
		return
	}
	if s.Ref != "" {
		s = o.facts.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
	}
	o.want.media = "application/json"
	object := map[string]any{}
	o.want.json = object
	for _, wire := range slices.Sorted(maps.Keys(s.Properties)) {
		if leftOut[wire] {
			continue
		}
		p := o.param("body", wire)
		if p == nil {
			t.Errorf("no argument for the body property %s", wire)
			continue
		}
		twin := o.twin(wire)
		if twin == nil && !p.Required && o.rng.IntN(4) == 0 {
			continue
		}
		if twin != nil && o.rng.IntN(2) == 0 {
			text := "\ufeff" + o.word(true) + "\r\n"
			o.args[twin.Name], object[wire] = text, base64.StdEncoding.EncodeToString([]byte(text))
			continue
		}
		v := o.property(wire, p.Schema)
		o.args[p.Name], object[wire] = v, v
	}
}

// property returns a value of a body property that the catalog accepts.
func (o *oracle) property(wire string, c *proxy.Schema) any {
	switch c.Type {
	case "array":
		list := []any{}
		for range max(c.MinItems, o.rng.IntN(3)) {
			list = append(list, o.property(wire, c.Items))
		}
		return list
	case "object":
		object := map[string]any{}
		for i := range c.Properties {
			if p := &c.Properties[i]; p.Encode == proxy.EncodeNone {
				object[p.Name] = o.property(p.Name, p.Schema)
			}
		}
		if c.Open {
			item := c.Items
			if item == nil {
				item = &proxy.Schema{Type: "string"}
			}
			object["any.key"] = o.property("", item)
		}
		return object
	}
	if wire == "content" && strings.Contains(o.op.Path, "/contents") || wire == "content_base64" {
		return base64.StdEncoding.EncodeToString([]byte(o.word(true)))
	}
	v, _ := o.value(factSchema{}, c, false)
	if text, ok := v.(string); ok && c.Format == "" && c.Pattern == "" && len(c.Enum) == 0 && wire != "path" &&
		wire != "from_path" && wire != "files" &&
		(c.MaxLength == 0 || utf8.RuneCountInString(text)+8 < c.MaxLength) {
		return text + "\r\n<&>\u2028"
	}
	return v
}

func (o *oracle) file(t *testing.T, wire string) {
	p := o.param("file", wire)
	if p == nil {
		t.Fatalf("no argument for the file %s", wire)
	}
	data := "\x00\xff" + o.word(true)
	o.args[p.Name] = base64.StdEncoding.EncodeToString([]byte(data))
	o.want.media, o.want.files = "multipart/form-data", map[string]string{wire: data}
}
