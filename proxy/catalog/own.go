package catalog

import (
	"cmp"
	"encoding/json"
	"strings"

	"aegis/proxy"
)

// argument is an argument that Aegis reads itself: of the search tools, of the raw
// tool, and the options of all tools. What is checked and what clients read are made
// from one value.
type argument struct {
	proxy.Param
	full, listed []byte // its schema, complete and as tools/list shows it
}

// wording is what clients read of an argument besides its constraints.
type wording struct {
	text   string // the description
	preset string // the default, as JSON
	// pattern is for clients only: what checks the value says better what is wrong.
	pattern string
	// common marks what [CommonArguments] explains: the list only has its type.
	common bool
}

// own makes an argument. Lower bounds stay out of its schema: they forbid no more
// than an empty value, the error says so, and clients pay for every word.
func own(p proxy.Param, w wording) argument {
	s := p.Schema
	listed := rawSchema{
		Type: cmp.Or(s.Type, "object"), Description: w.text, Enum: s.Enum, Default: json.RawMessage(w.preset),
		Minimum: s.Minimum, Maximum: s.Maximum,
	}
	if s.Open {
		listed.Additional = json.RawMessage("true")
	}
	full := listed
	full.Pattern, full.MaxLength, full.MaxItems = w.pattern, s.MaxLength, s.MaxItems
	if s.Items != nil {
		items := own(proxy.Param{Schema: s.Items}, wording{})
		full.Items, listed.Items = items.full, items.listed
	}
	if w.common {
		listed.Description = ""
	}
	p.Wire = p.Name
	return argument{Param: p, full: full.text(), listed: listed.text()}
}

// text returns a schema as JSON.
func (r *rawSchema) text() []byte {
	out, _ := json.Marshal(r) // nothing in it can fail but a default, and those are ours
	return out
}

// text returns the constraints of a text that must not be empty.
func text(most int) *proxy.Schema {
	return &proxy.Schema{Type: "string", MinLength: 1, MaxLength: most}
}

// The options that steer Aegis. No schema lists the code that confirms a call: the
// error that asks for it says how to use it.
var (
	fieldsOption = own(proxy.Param{
		Name: "fields", Schema: &proxy.Schema{Type: "array", MinItems: 1, MaxItems: 100, Items: text(200)},
	}, wording{
		text:   "Paths of the result's data to keep, for example number, user.login or labels[].name. Default all.",
		common: true,
	})
	cursorOption = own(proxy.Param{Name: "cursor", Schema: text(8192)},
		wording{text: "The cursor of a truncated result, to go on where it stopped.", common: true})
	sudoOption = own(proxy.Param{
		Name: "sudo", Schema: &proxy.Schema{Type: "string", MinLength: 1, MaxLength: 100, Pattern: loginPattern},
	}, wording{text: "Login of the user to act as."})
	codeOption = own(proxy.Param{Name: "confirmation_code", Schema: text(64)}, wording{})
)

// ownTool completes a tool that is no operation of Gitea. Its class follows from whether it
// reads: what it reaches is only known for a call, and the call gets the class of that.
func ownTool(t proxy.Tool, args ...argument) *proxy.Tool {
	var in inputs
	for _, a := range args {
		t.Params = append(t.Params, a.Param)
		in.own(&a)
	}
	in.options(t.Offers)
	t.CanonicalName, t.Version, t.Domain = strings.ReplaceAll(t.Name, "_", "."), "1.0.0", "miscellaneous"
	t.Destructive, t.Idempotent = !t.ReadOnly, t.ReadOnly
	t.InputSchema, t.ListSchema = in.full.done(), in.listed.done()
	return &t
}

// inputs writes the schema of a tool's arguments, complete and as tools/list shows it.
type inputs struct{ full, listed schemaWriter }

// own adds an argument of Aegis's own.
func (in *inputs) own(a *argument) {
	in.full.add(a.Name, a.full, a.Required)
	in.listed.add(a.Name, a.listed, a.Required)
}

// options adds the options that a tool offers.
func (in *inputs) options(o proxy.Offers) {
	if o.Fields {
		in.own(&fieldsOption)
	}
	if o.Cursor {
		in.own(&cursorOption)
	}
}
