package catalog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
	"aegis/spec"
)

// Set is every tool of a catalog. It never changes; everyone may share it.
type Set struct {
	tools    []*proxy.Tool // sorted by name
	byName   map[string]*proxy.Tool
	patterns map[string]*regexp.Regexp
	routes   func() *router      // made by the first call
	asked    map[string][]string // what people ask for, by tool name
	index    func() *index       // built by the first search
	bind     config.Bind         // what the tools are bound to
	outside  map[string]bool     // names of the tools that the binding hides
}

// Load builds the tools of a catalog. It fails when a schema uses what the
// validator does not enforce: clients would trust a rule that is not checked.
func Load(cat *spec.Catalog) (*Set, error) {
	l := loader{
		cat: cat, schemas: map[string]*proxy.Schema{}, listed: map[listedKey][]byte{}, expand: spec.NewExpander(cat),
	}
	s := &Set{patterns: map[string]*regexp.Regexp{}, asked: map[string][]string{}}
	for i := range cat.Operations {
		t, err := l.tool(&cat.Operations[i])
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", cat.Operations[i].Name, err)
		}
		s.tools = append(s.tools, t)
		s.asked[t.Name] = cat.Operations[i].Aliases
	}
	slices.SortFunc(s.tools, func(a, b *proxy.Tool) int { return strings.Compare(a.Name, b.Name) })
	// Once here and not at each call; RE2 has no pattern that runs long on some text.
	for _, text := range l.patterns {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("the pattern %q of an argument is no RE2 expression: %w", text, err)
		}
		s.patterns[text] = re
	}
	s.routes = sync.OnceValue(func() *router { return newRouter(s.tools) })
	return s.with(s.tools), nil
}

// Tools returns every tool, sorted by name. Do not modify the slice.
func (s *Set) Tools() []*proxy.Tool { return s.tools }

// Keep returns a set without the tools for which keep is false, for example those whose
// operation the live server lacks. They stay known to the raw tool as routes that are not
// available. So a path that reaches one of them is refused and not taken for an unknown
// route, which may be open.
func (s *Set) Keep(keep func(*proxy.Tool) bool) *Set {
	return s.with(slices.DeleteFunc(slices.Clone(s.tools), func(t *proxy.Tool) bool { return !keep(t) }))
}

// with returns the set with these tools only. Routes and rivals stay those of the whole
// catalog: a path that reaches a tool which is gone must not be taken for another one's.
// Patterns stay as well; to compile them again would cost every bound team a part of a
// start.
func (s *Set) with(tools []*proxy.Tool) *Set {
	out := *s
	out.tools, out.byName = tools, make(map[string]*proxy.Tool, len(tools))
	for _, t := range tools {
		out.byName[t.Name] = t
	}
	out.index = sync.OnceValue(func() *index { return newIndex(tools, s.asked) })
	return &out
}

// loader shares what many tools have in common. It lives for one Load; what it has made is
// shared by the tools and must not be changed.
type loader struct {
	cat      *spec.Catalog
	schemas  map[string]*proxy.Schema // by JSON text
	listed   map[listedKey][]byte     // what compact makes
	patterns []string
	expand   *spec.Expander
	in       inputs // its memory serves one tool after another
}

// listedKey is a schema's JSON text, and whether it is listed without words: many schemas
// are, in some tools.
type listedKey struct {
	text   string
	silent bool
}

// tool makes a tool of an operation. The vocabulary has a type of its own for a tool, as
// packages that judge calls must not depend on the form of the catalog's file.
func (l *loader) tool(o *spec.Operation) (*proxy.Tool, error) {
	// A catalog may come from a file of the operator's, so nothing of it is taken for
	// granted.
	risk, ok := proxy.ParseRisk(o.Risk)
	if !ok {
		return nil, fmt.Errorf("unknown risk %q", o.Risk)
	}
	t := &proxy.Tool{
		Name: o.Name, CanonicalName: canonical(o.Name, o.Domain), Version: o.Version, Domain: o.Domain,
		Title: o.Title, Description: o.Description,
		OperationID: o.ID, Method: o.Method, Path: o.Path, Consumes: o.Consumes, Produces: o.Produces,
		Risk: risk, Scopes: o.Scopes,
		ReadOnly: o.ReadOnly, Destructive: o.Destructive, Idempotent: o.Idempotent, OpenWorld: o.OpenWorld,
		Paging: proxy.Paging(o.Paging), CredentialIssuing: o.CredentialIssuing, BasicAuthOnly: o.BasicAuthOnly,
		Deprecated: o.Deprecated, ReplacedBy: o.ReplacedBy, Timeout: time.Duration(o.TimeoutSeconds) * time.Second,
		OutputSchema: l.expand.Output(o), Slim: o.Slim, Example: o.Example,
	}
	for i := range o.Params {
		p := &o.Params[i]
		s, err := l.parse(l.cat.Schema(p), 0)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", p.Name, err)
		}
		t.Params = append(t.Params, proxy.Param{
			Name: p.Name, Wire: p.WireName(), In: proxy.In(p.In), Required: p.Required,
			Wildcard: p.Wildcard, Multi: p.Multi, Encode: proxy.Encoding(p.Encode), Schema: s,
		})
	}
	t.Offers = offers(o)
	t.InputSchema, t.ListSchema = l.inputs(o, t.Offers)
	return t, nil
}

// canonical returns the name with dots: gitea.issue.list_comments.
func canonical(name, domain string) string {
	return "gitea." + domain + "." + strings.TrimPrefix(name, "gitea_"+domain+"_")
}

// implied are arguments that the list leaves without words, because they mean
// the same in every tool and [CommonArguments] explains them once.
var implied = wordSet(`
owner repo org username index page limit since before author committer dates column_id run runner_id artifact_id
attachment_id secretname variablename`)

// CommonArguments explains the arguments that listed tools do not describe.
// It belongs into the server's instructions.
const CommonArguments = "Tools with admin in their name are for site administrators. " +
	"In every tool: owner is the user or organization that a repository (repo) belongs to; " +
	"org is an organization, username a login; " +
	`index is the number of an issue or pull request that people see after "#", not its id. ` +
	"column_id, runner_id, artifact_id and attachment_id are ids as the lists of these things give them; " +
	"run is the id of a workflow run, not its run_number; " +
	"secretname and variablename are letters, digits and underscores. " +
	"page counts from 1, limit is the page size, which the server bounds, usually at 50; " +
	"the result's pagination has the size used and the next page. " +
	"since and before compare with the time of the last change. " +
	"author, committer and dates of a commit default to the caller and now. " +
	"fields keeps only the named paths of the result's data, for example " +
	`["number","title","user.login","labels[].name"], and makes answers much shorter. ` +
	"cursor continues a truncated result and comes from its truncation.cursor. " +
	"Times are RFC 3339, for example 2026-01-31T12:00:00Z."

// inputs assembles the schema of the arguments, complete and as listed. The two are made
// once, at the start, so that a list is bytes to be copied and never a marshalled value.
func (l *loader) inputs(o *spec.Operation, own proxy.Offers) (full, listed json.RawMessage) {
	in := &l.in
	in.full.reset()
	in.listed.reset()
	for i := range o.Params {
		p := &o.Params[i]
		raw := l.cat.Schema(p)
		in.full.add(p.Name, raw, p.Required)
		// An argument with a schema of its own means something else than its name says.
		silent := len(p.Schema) == 0 && implied[p.Name] || p.Name == "owner" && p.In == "path" ||
			o.Deprecated || o.BasicAuthOnly
		in.listed.add(p.Name, l.compact(raw, silent), p.Required)
	}
	in.options(own)
	return in.full.done(), in.listed.done()
}

// offers returns the arguments of Aegis's own that a tool takes: fields, every reading tool that
// can work, though data without members stays whole; a cursor, where there is a result to go on
// with, as asking again is harmless for reading tools only. An argument of the operation of the
// same name goes before.
func offers(o *spec.Operation) proxy.Offers {
	may := func(name string) bool {
		return o.ReadOnly && !o.BasicAuthOnly &&
			!slices.ContainsFunc(o.Params, func(p spec.Param) bool { return p.Name == name })
	}
	return proxy.Offers{Fields: may("fields"), Cursor: may("cursor") && len(o.Output) != 0}
}

// schemaWriter writes an object schema property by property.
type schemaWriter struct {
	props    []byte
	required []string
}

// add writes a property. The schema is taken as it is: every one here was checked or
// made by Load.
func (w *schemaWriter) add(name string, schema []byte, required bool) {
	w.props = startMember(w.props, []byte(`"`+name+`"`))
	w.props = append(w.props, schema...)
	if required {
		w.required = append(w.required, name)
	}
}

// done returns the schema. Other arguments are refused, and saying so spares a model
// the try.
func (w *schemaWriter) done() json.RawMessage {
	end := `},"additionalProperties":false}`
	if len(w.required) != 0 {
		end = `},"required":["` + strings.Join(w.required, `","`) + `"],"additionalProperties":false}`
	}
	return slices.Concat([]byte(`{"type":"object","properties":{`), w.props, []byte(end))
}

// reset begins another schema.
func (w *schemaWriter) reset() { w.props, w.required = w.props[:0], w.required[:0] }

// startMember begins a member of the object that dst is or ends with. No value ends
// with "{", so that sign says that the member is the first.
func startMember(dst, name []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(dst, name...), ':')
}

// edited returns an object schema with the property first before the others, unless it is "",
// and without those that are gone.
func edited(schema json.RawMessage, first string, value []byte, gone func(string) bool) json.RawMessage {
	required := map[string]bool{}
	for _, name := range jsonscan.Elements(jsonscan.Member(schema, "required")) {
		required[jsonscan.Unquote(name)] = true
	}
	var w schemaWriter
	if first != "" {
		w.add(first, value, false)
	}
	for name, sub := range jsonscan.Members(jsonscan.Member(schema, "properties")) {
		if n := jsonscan.Unquote(name); !gone(n) {
			w.add(n, sub, required[n])
		}
	}
	return w.done()
}

// compact drops from an argument's schema what a client need not read: bounds
// that only Aegis checks, whose violation names the rule, defaults, which are the
// server's, and, when silent, the words: those of arguments that
// [CommonArguments] explains for all tools, and of tools that should not be used any more.
func (l *loader) compact(raw []byte, silent bool) []byte {
	if got, ok := l.listed[listedKey{string(raw), silent}]; ok {
		return got
	}
	out := compactor{silent}.schema(nil, raw)
	l.listed[listedKey{string(raw), silent}] = out
	return out
}

// compactor rewrites one schema.
type compactor struct{ silent bool }

// schema appends raw to dst without what a client need not read.
func (c compactor) schema(dst, raw []byte) []byte {
	dst = append(dst, '{')
	for name, value := range jsonscan.Members(raw) {
		if !c.drops(string(name)) {
			dst = c.member(startMember(dst, name), string(name), value)
		}
	}
	return append(dst, '}')
}

// drops reports whether a keyword, in its quotes, is left out. The largest number of a
// page stays: a model would ask for more otherwise.
func (c compactor) drops(keyword string) bool {
	switch keyword {
	case `"pattern"`, `"minLength"`, `"maxLength"`, `"minimum"`, `"minItems"`, `"maxItems"`, `"contentEncoding"`:
		return true
	case `"description"`, `"maximum"`:
		return c.silent
	}
	return false
}

// member appends the value of a keyword, and looks into those that are or hold schemas.
func (c compactor) member(dst []byte, keyword string, value []byte) []byte {
	switch {
	case keyword == `"items"`, keyword == `"additionalProperties"` && jsonscan.Kind(value) == '{':
		return c.schema(dst, value)
	case keyword != `"properties"`:
		return append(dst, value...)
	}
	dst = append(dst, '{')
	for name, sub := range jsonscan.Members(value) {
		dst = c.schema(startMember(dst, name), sub)
	}
	return append(dst, '}')
}
