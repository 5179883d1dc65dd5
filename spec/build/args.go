package build

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"aegis/spec"
)

// arg is an argument on its way to a [spec.Param]. It is kept apart from spec.Param because
// naming, correcting and describing need to know what the description said after each other
// step has run.
type arg struct {
	// The argument's name, its name in the request, and the place it goes to; see
	// [spec.Param].
	name, wire, in            string
	required, multi, wildcard bool
	// What the API description says, then what the hand-made files say: corrections,
	// words, words for its parts by dotted path.
	node   *Node
	fix    argFix
	doc    argDoc
	nested map[string]argDoc
	encode string            // "base64" for the plain-text twin
	base64 bool              // has such a twin
	twins  map[string]string // nested ones
}

// placeholder is a parameter in a path template.
var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// args lists an operation's arguments: path parameters in template order, then the required
// ones, then the rest with paging last. The error says why the operation cannot be a tool.
// The order is an interface: clients show arguments in it, and models fill the first ones
// best.
func (b *builder) args(op *FactOperation) ([]arg, error) {
	list, err := b.pathArgs(op)
	if err != nil {
		return nil, err
	}
	var rest []arg
	for i := range op.Params {
		p := &op.Params[i]
		switch p.In {
		case "query":
			// Gitea honours these in every query, described or not: with one of them a
			// call would run as somebody else.
			if spec.Steers(p.Name) {
				b.report.note(op.Method, op.Path,
					"the query parameter "+quote(p.Name)+" is left out: it steers authentication")
				continue
			}
			rest = append(rest, arg{wire: p.Name, in: "query", required: p.Required, multi: p.Multi, node: p.Schema})
		case "formData":
			rest = append(rest, formArg(p))
		case "body":
			rest = append(rest, b.bodyArgs(p)...)
		}
	}
	// Older descriptions lack arguments that the server takes; a description that has
	// caught up must not get them twice.
	for _, extra := range b.in.corrections.Operations[op.ID].Add {
		if !slices.ContainsFunc(rest, func(a arg) bool { return a.wire == extra.Name && a.in == extra.In }) {
			node := &Node{Type: extra.Type}
			rest = append(rest, arg{wire: extra.Name, in: extra.In, required: extra.Required, node: node})
		}
	}
	rest = b.addTwins(op, rest)
	list = append(list, rest...)
	if err := b.nameArgs(op, list); err != nil {
		return nil, err
	}
	// Stable, so that two builds of one description give the same bytes. Path
	// parameters stay in the order of the template, which is how people read a route.
	slices.SortStableFunc(list[len(list)-len(rest):], func(x, y arg) int { return rankArg(&x) - rankArg(&y) })
	return list, nil
}

// rankArg orders arguments behind the path: required, optional, paging. Paging comes last,
// as few calls give it and a model that reads a list of arguments from its start should
// meet the subject of the call first.
func rankArg(a *arg) int {
	switch {
	case a.required:
		return 0
	case a.in == "query" && (a.wire == "page" || a.wire == "limit" || a.wire == "per_page"):
		return 2
	}
	return 1
}

// pathArgs lists the parameters of the path template. The template is what counts: it
// decides about the request, and descriptions in the wild forget its parameters. An
// operation whose path cannot be filled in one way only is left out as a whole: half of a
// path would reach another operation.
func (b *builder) pathArgs(op *FactOperation) ([]arg, error) {
	var list []arg
	for _, m := range placeholder.FindAllStringSubmatch(op.Path, -1) {
		name := m[1]
		if slices.ContainsFunc(list, func(a arg) bool { return a.wire == name }) {
			return nil, fmt.Errorf("its path has {%s} twice", clean(name, 60))
		}
		a := arg{wire: name, in: "path", required: true, node: &Node{Type: "string"}}
		i := slices.IndexFunc(op.Params, func(p FactParam) bool { return p.In == "path" && p.Name == name })
		if i >= 0 {
			a.node = op.Params[i].Schema
		} else {
			b.report.note(op.Method, op.Path, "{"+clean(name, 60)+"} has no parameter; taken as a string")
		}
		a.wildcard = b.wildcard(op.Path, name)
		// Descriptions call the numbers of issues and the like strings in places. A
		// model that may send "#12" does.
		c := b.in.corrections.Numbers
		if slices.Contains(c.Params, name) && !slices.Contains(c.Except, op.ID) {
			a.node = &Node{Type: "integer", Description: a.node.Description}
		}
		// A path segment can be nothing else, whatever the description says.
		if a.node.Type != "integer" && a.node.Type != "string" {
			a.node = &Node{Type: "string", Description: a.node.Description}
		}
		list = append(list, a)
	}
	for _, p := range op.Params {
		if p.In == "path" && !strings.Contains(op.Path, "{"+p.Name+"}") {
			b.report.note(op.Method, op.Path,
				"the path parameter "+quote(clean(p.Name, 60))+" is not in the path; left out")
		}
	}
	return list, nil
}

// wildcard reports whether a path parameter keeps its slashes. No description says so:
// it is known from Gitea's router.
func (b *builder) wildcard(path, param string) bool {
	return slices.ContainsFunc(b.in.corrections.Wildcards, func(w wildcard) bool {
		return w.Path == path && slices.Contains(w.Params, param)
	})
}

// formArg makes an argument of a form field. Fields and files become one multipart body;
// which of them is a file only the type says, since Swagger 2.0 gives both the same place.
func formArg(p *FactParam) arg {
	a := arg{wire: p.Name, in: "form", required: p.Required, node: p.Schema}
	if p.Schema.Type == "file" {
		// A tool that uploads a file without one makes no sense, whatever the
		// description says.
		a.in, a.required = "file", true
	}
	return a
}

// bodyArgs flattens an object body; any other body is one argument. Models fill a flat list
// of arguments better than one argument that is an object, and errors can name what is
// wrong; the names come sorted, as the members of an object have no order in JSON.
func (b *builder) bodyArgs(p *FactParam) []arg {
	n := b.resolve(p.Schema)
	// A map, a list or any value cannot be spread over arguments.
	if len(n.Properties) == 0 || n.Map != nil || n.Type != "" && n.Type != "object" {
		return []arg{{name: "body", wire: p.Name, in: "whole", required: p.Required, node: p.Schema}}
	}
	var list []arg
	for _, name := range sortedKeys(n.Properties) {
		required := slices.Contains(n.Required, name)
		list = append(list, arg{wire: name, in: "body", required: required, node: n.Properties[name]})
	}
	return list
}

// addTwins puts beside each argument that takes base64 one that takes text: models write
// text well and base64 badly. Which members take base64 no description says, so
// corrections.yaml lists them; the note keeps an entry from going stale unseen when a
// server renames the member.
func (b *builder) addTwins(op *FactOperation, list []arg) []arg {
	c := b.in.corrections.Operations[op.ID]
	for _, key := range sortedKeys(c.Text) {
		parent, rest, nested := strings.Cut(key, ".")
		i := slices.IndexFunc(list, func(a arg) bool { return a.wire == parent && a.in == "body" })
		switch {
		case i < 0:
			b.report.note(op.Method, op.Path, "it has no "+key+" to send as text")
		case nested:
			if list[i].twins == nil {
				list[i].twins = map[string]string{}
			}
			list[i].twins[rest] = c.Text[key]
		default:
			// One of the two must be given, which a list of required names cannot say.
			list[i].base64, list[i].required = true, false
			twin := arg{name: c.Text[key], wire: parent, in: "body", node: list[i].node, encode: "base64"}
			list = slices.Insert(list, i+1, twin)
		}
	}
	return list
}

// resolve follows references at the top of a schema.
func (b *builder) resolve(n *Node) *Node {
	// Bounded, as definitions of foreign descriptions may refer to each other in a
	// circle.
	for i := 0; n != nil && n.Ref != "" && i < 50; i++ {
		n = b.facts.Definitions[refName(n.Ref)]
	}
	if n == nil || n.Ref != "" {
		return &Node{}
	}
	return n
}

// nameArgs gives every argument its name, its correction and its words. Names must be
// unique in an operation although the server only wants them unique in each place of the
// request; the words are looked up afterwards, by the final name.
func (b *builder) nameArgs(op *FactOperation, list []arg) error {
	c, doc := b.in.corrections.Operations[op.ID], b.in.docs[op.ID]
	taken := map[string]bool{}
	for i := range list {
		a := &list[i]
		name := cmp.Or(c.Rename[a.in+"."+a.wire], a.name, argName(a.wire))
		if name == "" {
			return fmt.Errorf("its parameter %s has no usable name", quote(clean(a.wire, 60)))
		}
		// Two places of one operation may use one wire name; and "sudo", "fields" and
		// the like are arguments of Aegis's own.
		if taken[name] || spec.Reserved(name) {
			name = a.in + "_" + name
		}
		if taken[name] || len(name) > 64 {
			return fmt.Errorf("two of its parameters would be called %q", name)
		}
		taken[name], a.name = true, name
		a.fix = c.Args[name]
		if a.fix.Required != nil {
			a.required = *a.fix.Required
		}
		b.document(a, &doc)
	}
	b.unusedWords(op, list, &doc)
	return nil
}

// document finds the words for an argument: the operation's own by argument name or wire
// name, then the common ones. Common words save the same sentence some hundred times in the
// YAML files and keep them alike; an operation in which a name means something else says so
// itself.
func (b *builder) document(a *arg, doc *opDoc) {
	own, ok := doc.Args[a.name]
	if !ok && a.encode == "" && !strings.HasPrefix(a.name, "body_") {
		// So the words need not be moved when a name has to be made unique.
		own, ok = doc.Args[a.wire]
	}
	common, shared := b.in.common[a.name]
	switch {
	// An entry with constraints alone keeps the common words.
	case ok && own.Description == "" && shared:
		own.Description = common.Description
	case !ok && shared && a.node.Description == "":
		own = common
	}
	a.doc = own
	for key, d := range doc.Args {
		if parent, rest, deeper := strings.Cut(key, "."); deeper && parent == a.name {
			if a.nested == nil {
				a.nested = map[string]argDoc{}
			}
			a.nested[rest] = d
		}
	}
}

// unusedWords refuses descriptions of arguments that do not exist, for the
// pinned version: a misspelled name would leave its argument without words.
func (b *builder) unusedWords(op *FactOperation, list []arg, doc *opDoc) {
	if !b.strict {
		return
	}
	for _, key := range sortedKeys(doc.Args) {
		parent, _, _ := strings.Cut(key, ".")
		if !slices.ContainsFunc(list, func(a arg) bool { return a.name == parent || a.wire == parent }) {
			b.problems.add("%s: descriptions: no argument %q", op.ID, key)
		}
	}
}

// argChars are the characters that no argument's name may have: providers of models
// refuse them.
var argChars = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// argName makes a parameter's name one that every provider accepts. The bound leaves room
// for the place that nameArgs may put before the name, below the 64 characters that
// providers accept.
func argName(wire string) string {
	s := strings.Trim(argChars.ReplaceAllString(wire, "_"), "_")
	return s[:min(len(s), 60)]
}
