package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"aegis/spec"
)

// ToolsVersion is the semantic version of the tools' interface. A removed or renamed tool
// or argument raises the first number, a new one the second. Clients may pin it, so it is
// raised by hand and not taken from the version of Gitea, which changes without any tool
// changing.
const ToolsVersion = "1.0.0"

// Options steer a build.
type Options struct {
	// Inputs are the hand-made files; see [spec.Inputs].
	Inputs fs.FS
	// Strict refuses what is only noted otherwise: operations that the inputs do
	// not know, words without an operation. The pinned version is built so.
	Strict bool
	// Baseline is the catalog that the report compares with, and that says which
	// known operation a route without a known id is; may be nil.
	Baseline *spec.Catalog
}

// FromSwagger makes a catalog of any Gitea or Forgejo server from its Swagger 2.0
// description. Operations that the inputs know get our names and words, the others a
// derived name, the strictest sensible risk and their own prose. Prose is kept here, as
// there are no words of ours for operations that only another server has, and dropped for the
// pinned version, whose tools all have words of ours.
func FromSwagger(data []byte, opt Options) (*spec.Catalog, *Report, error) {
	facts, report, err := ParseSwagger(data, true)
	if err != nil {
		return nil, nil, err
	}
	cat, built, err := Build(facts, opt)
	if err != nil {
		return nil, nil, err
	}
	built.Left = append(report.Left, built.Left...)
	built.Notes = append(report.Notes, built.Notes...)
	return cat, built, nil
}

// ErrNoOperations says that nothing in a description can be a tool.
var ErrNoOperations = errors.New("the API description has no operation that a tool could be made of")

// builder turns facts into one catalog.
type builder struct {
	in       *inputs
	facts    *Facts
	report   *Report
	strict   bool
	problems findings
	// Taken names are kept by what they belong to, since a foreign description may have
	// two operations of one id, or derive a name that is taken.
	names map[string]bool // canonical names in use
	ids   map[string]bool // operation ids in use
	used  map[string]bool // definitions that results refer to
	nodes int             // of the schema in the making
}

// Build makes a catalog of facts. It goes on after mistakes of either kind: those of a
// foreign description go into the report, those of our own files come back together as one
// error.
func Build(facts *Facts, opt Options) (*spec.Catalog, *Report, error) {
	in, err := loadInputs(opt.Inputs)
	if err != nil {
		return nil, nil, err
	}
	b := &builder{
		in: in, facts: facts, report: new(Report), strict: opt.Strict,
		names: map[string]bool{}, ids: map[string]bool{}, used: map[string]bool{},
	}
	// The names of names.yaml are taken even where the description lacks their
	// operation: no other tool may ever get one of them.
	for _, n := range in.names {
		b.names[n.Name] = true
	}
	cat := &spec.Catalog{
		Version: ToolsVersion, Source: cmp.Or(facts.Title, "API") + " " + facts.Version, GiteaVersion: facts.Version,
	}
	for i := range facts.Operations {
		f := facts.Operations[i]
		b.recognise(&f, opt.Baseline)
		op, err := b.operation(&f)
		if err != nil {
			// One operation that cannot be a tool is no reason to have none of the
			// others.
			b.report.left(f.Method, f.Path, err.Error())
			continue
		}
		cat.Operations = append(cat.Operations, op)
	}
	if len(cat.Operations) == 0 {
		return nil, nil, ErrNoOperations
	}
	slices.SortFunc(cat.Operations, func(x, y spec.Operation) int { return strings.Compare(x.Name, y.Name) })
	b.finish(cat)
	b.report.Built = len(cat.Operations)
	if opt.Strict {
		b.complete(cat)
	}
	if len(b.problems) != 0 {
		return nil, nil, errors.Join(b.problems...)
	}
	b.report.compare(opt.Baseline, cat)
	return cat, b.report, check(cat)
}

// recognise corrects an operation's id by its route: some descriptions leave
// ids out or use them twice, and an id that means another method elsewhere must
// not bring that one's risk along.
func (b *builder) recognise(f *FactOperation, base *spec.Catalog) {
	if base == nil {
		return
	}
	for i := range base.Operations {
		o := &base.Operations[i]
		switch {
		case o.Method == f.Method && o.Path == f.Path:
			f.ID = o.ID
			return
		// Without this an id would bring the risk class of a reading operation to a
		// writing one.
		case o.ID == f.ID && o.Method != f.Method:
			f.ID = strings.ToLower(f.Method) + "_" + f.ID
		}
	}
}

// check sends the catalog through the parser that will read it. So nothing is built that a
// server would refuse to start with.
func check(cat *spec.Catalog) error {
	data, err := Encode(cat)
	if err != nil {
		return err
	}
	_, err = spec.Parse(data)
	return err
}

// complete adds the problems of a build in which nothing may be missing. A missing alias or
// an entry of another version would not break a build, only make its tools worse without a
// sign.
func (b *builder) complete(cat *spec.Catalog) {
	for _, id := range sortedKeys(b.in.names) {
		if !b.ids[id] {
			b.problems.add("names.yaml: %s is not in the API description", id)
		}
	}
	for i := range cat.Operations {
		if o := &cat.Operations[i]; len(o.Aliases) == 0 {
			b.problems.add("aliases.yaml: %s has no aliases", o.ID)
		}
	}
	for _, l := range b.report.Left {
		b.problems.add("%s", l)
	}
}

// routePattern are the path templates that a request can be made of: no empty segments,
// no percent signs, no characters that a proxy might take for something else.
var routePattern = regexp.MustCompile(`^(/([A-Za-z0-9_.-]|\{[A-Za-z0-9_-]+\})+)+$`)

// operation makes a tool of an operation. The error says why it cannot be one. What
// names.yaml leaves open follows from the method: HTTP says that GET reads and that all but
// POST can be repeated, and Gitea keeps to it with the exceptions that names.yaml lists.
func (b *builder) operation(f *FactOperation) (spec.Operation, error) {
	if !routePattern.MatchString(f.Path) || strings.Contains(f.Path, "..") || len(f.Path) > 500 {
		return spec.Operation{}, errors.New("its path cannot be called safely")
	}
	entry, known := b.entry(f)
	args, err := b.args(f)
	if err != nil {
		return spec.Operation{}, err
	}
	domain, _, _ := strings.Cut(entry.Name, "_")
	c := b.in.corrections.Operations[f.ID]
	// Its id may be one of ours by chance; then our corrections are not about it.
	if !known {
		c = correction{}
	}
	op := spec.Operation{
		ID: b.id(f), Name: "gitea_" + entry.Name, Version: ToolsVersion, Domain: domain,
		Method: f.Method, Path: f.Path, Consumes: f.Consumes,
		Risk: entry.Risk, Scopes: scopesOf(b.in.scopes, f.Method, f.Path),
		ReadOnly: or(entry.ReadOnly, f.Method == "GET"), Destructive: or(entry.Destructive, f.Method == "DELETE"),
		Idempotent: or(entry.Idempotent, f.Method != "POST"), OpenWorld: entry.OpenWorld,
		CredentialIssuing: entry.CredentialIssuing, BasicAuthOnly: entry.BasicAuthOnly, Deprecated: f.Deprecated,
		TimeoutSeconds: int(entry.Timeout / time.Second),
		Output:         b.result(f, &c),
		Slim:           b.in.docs[f.ID].Slim,
	}
	if known {
		op.Aliases = b.in.aliases[f.ID]
	}
	if entry.ReplacedBy != "" {
		op.ReplacedBy = "gitea_" + b.in.names[entry.ReplacedBy].Name
	}
	if op.ReadOnly && entry.ReadOnly != nil {
		op.Idempotent = true // it only computes
	}
	op.Produces = cmp.Or(c.Produces, f.Produces)
	if op.Output == nil {
		op.Produces = ""
	}
	if op.Consumes == "" && slices.ContainsFunc(c.Add, func(a addition) bool { return a.In == "body" }) {
		op.Consumes = "application/json"
	}
	op.Paging = b.paging(f, &c)
	b.words(&op, f, known)
	return op, b.params(&op, args)
}

// entry finds the operation's line in names.yaml, or derives one. An id that was used
// before counts as unknown: the second operation of that id is another one, and must not
// inherit a risk class that somebody gave to the first.
func (b *builder) entry(f *FactOperation) (nameEntry, bool) {
	n, ok := b.in.names[f.ID]
	if ok && !b.ids[f.ID] {
		return n, true
	}
	if b.strict {
		b.problems.add("names.yaml: %s %s (%s) has no entry", f.Method, f.Path, f.ID)
	}
	n = b.derive(f)
	b.names[n.Name] = true
	b.report.note(f.Method, f.Path, "unknown operation; called gitea_"+n.Name+" with risk "+n.Risk)
	return n, false
}

// id returns the operation's id, or the route where it has none of its own.
func (b *builder) id(f *FactOperation) string {
	id := f.ID
	if id == "" || b.ids[id] {
		id = strings.ToLower(f.Method) + f.Path
	}
	b.ids[id] = true
	return id
}

// paging returns how the operation divides its answer. Gitea has three ways, and its
// description shows only by the parameters which one a route has; corrections.yaml decides
// where they mislead.
func (b *builder) paging(f *FactOperation, c *correction) string {
	has := func(name string) bool {
		return slices.ContainsFunc(f.Params, func(p FactParam) bool { return p.In == "query" && p.Name == name }) ||
			slices.ContainsFunc(c.Add, func(a addition) bool { return a.In == "query" && a.Name == name })
	}
	switch {
	case c.Paging == "none", c.Paging == "" && f.Method != "GET":
		return ""
	case c.Paging != "":
		return c.Paging
	case has("page") && has("per_page"):
		return "per_page"
	case has("page"):
		return "page"
	// The server takes no page here, so the whole list comes.
	case f.Result != nil && b.resolve(f.Result).Type == "array":
		return "ignored"
	}
	return ""
}

// words sets title and description: ours, else the description's own, else derived ones.
// Foreign prose is cleaned and cut like any other text of a stranger: it is read by models,
// and a server can write into it what it likes.
func (b *builder) words(op *spec.Operation, f *FactOperation, known bool) {
	doc := b.in.docs[f.ID]
	if !known {
		doc = opDoc{}
	}
	op.Title, op.Description = clean(doc.Title, 60), clean(doc.Description, 2000)
	if op.Description != "" {
		text, err := b.in.reference(op.Description)
		if err != nil {
			b.problems.add("%s: descriptions: %w", f.ID, err)
		}
		// Counted after the references are filled in: that is what a model pays for.
		if n := utf8.RuneCountInString(text); n > 400 {
			b.problems.add("%s: descriptions: the description has %d characters; at most 400", f.ID, n)
		}
		op.Description = text
	}
	// Words of the name stand in where a foreign description has none.
	action := strings.ReplaceAll(strings.TrimPrefix(op.Name, "gitea_"+op.Domain+"_"), "_", " ")
	if op.Title == "" {
		op.Title = clean(cmp.Or(f.Summary, strings.ToUpper(action[:1])+action[1:]), 60)
	}
	if op.Description == "" {
		route := "Calls " + f.Method + " " + f.Path + " (" + op.Domain + ": " + action + ")."
		op.Description = clean(cmp.Or(f.Summary, f.Description, route), 400)
	}
	if len(doc.Example) != 0 {
		if raw, err := marshal(doc.Example); err == nil {
			op.Example = raw
		} else {
			b.problems.add("%s: descriptions: the example is no JSON: %w", f.ID, err)
		}
	}
}

// params makes the schemas of the arguments. Problems of ours are gathered, so that one
// run of the generator reports all of them.
func (b *builder) params(op *spec.Operation, args []arg) error {
	if len(args) > spec.MaxParams {
		return fmt.Errorf("it has %d parameters, more than %d", len(args), spec.MaxParams)
	}
	for i := range args {
		a := &args[i]
		s, err := b.argument(a)
		if err != nil {
			b.problems.add("%s: %s: %w", op.ID, a.name, err)
			continue
		}
		p := spec.Param{
			Name: a.name, In: a.in, Required: a.required, Wildcard: a.wildcard, Multi: a.multi,
			Encode: a.encode, Schema: s.json(),
		}
		if a.wire != a.name {
			p.Wire = a.wire
		}
		op.Params = append(op.Params, p)
	}
	return nil
}

// finish shares the schemas that many arguments of one name have, and adds the definitions.
// Owner and repo alone are arguments of some four hundred operations; sharing takes a
// fifth off the catalog, which every start reads.
func (b *builder) finish(cat *spec.Catalog) {
	type use struct{ name, schema string }
	counts := map[use]int{}
	for i := range cat.Operations {
		for _, p := range cat.Operations[i].Params {
			counts[use{p.Name, string(p.Schema)}]++
		}
	}
	cat.Arguments = map[string]json.RawMessage{}
	// A schema that three operations or more share is worth a place of its own.
	// Ties go to the first in sorted order, so that two builds agree.
	most := map[string]int{}
	bySchema := func(x, y use) int { return strings.Compare(x.schema, y.schema) }
	for _, u := range slices.SortedFunc(maps.Keys(counts), bySchema) {
		if n := counts[u]; n > max(2, most[u.name]) {
			cat.Arguments[u.name], most[u.name] = json.RawMessage(u.schema), n
		}
	}
	for i := range cat.Operations {
		params := cat.Operations[i].Params
		for j := range params {
			if string(cat.Arguments[params[j].Name]) == string(params[j].Schema) {
				params[j].Schema = nil
			}
		}
	}
	cat.Definitions = b.definitions()
}

// or returns *p, or otherwise when nothing is said. A pointer, as cmp.Or would take a false
// that was written for nothing said.
func or(p *bool, otherwise bool) bool {
	if p != nil {
		return *p
	}
	return otherwise
}
