package build

import (
	"encoding/json"
	"slices"
)

// output is the schema of results. Gitea's answers leave out members and add new ones, so
// nothing is required and everything may have more. A client that validates results, as MCP
// allows, would otherwise refuse what a newer Gitea answers.
type output struct {
	Ref        string             `json:"$ref,omitempty"`
	Type       any                `json:"type,omitempty"` // a name, or a list of it and null
	Items      *output            `json:"items,omitempty"`
	Properties map[string]*output `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Map        *output            `json:"additionalProperties,omitempty"`
	AnyOf      []*output          `json:"anyOf,omitempty"`
}

// content is the result of an operation that returns a file, a log or a diff: text as a string,
// and an object where the bytes are none. Which of them it is depends on the bytes, such as those
// of a diff of files in another encoding.
var content = &output{Type: []string{"string", "object"}, Properties: map[string]*output{
	"content_base64": {Type: "string"}, "content_type": {Type: "string"}, "size": {Type: "integer"},
	"sha256": {Type: "string"}, "offset": {Type: "integer"},
}}

// namedOutputs are the results that corrections.yaml names.
var namedOutputs = map[string]*output{
	"any":    {},
	"object": {Type: "object"},
	"text":   content,
	"binary": content,
	"registration_token": {
		Type: "object", Properties: map[string]*output{"token": {Type: "string"}}, Required: []string{"token"},
	},
}

// result returns the schema of an operation's data; nil without a body. A correction wins
// over the description, as it was made from real answers.
func (b *builder) result(op *FactOperation, c *correction) json.RawMessage {
	n := op.Result
	switch {
	case c.Output == "none":
		return nil
	case namedOutputs[c.Output] != nil:
		return raw(namedOutputs[c.Output])
	case n == nil:
		return nil
	case n.Type == "file":
		return raw(namedOutputs["any"])
	case c.Output == "one_or_many":
		one := b.output(n, "", 0)
		return raw(output{AnyOf: []*output{one, {Type: "array", Items: one}}})
	case c.Output == "with_nulls" && n.Items != nil:
		items := &output{AnyOf: []*output{b.output(n.Items, "", 1), {Type: "null"}}}
		return raw(output{Type: []string{"array", "null"}, Items: items})
	}
	return raw(b.output(n, "", 0))
}

// output makes the schema of results of a node; def is the name of the definition that it
// is. References stay references, since a repository holds its owner, its parent and that
// one's owner: spelled out here, the catalog would be many times as long. spec.Expander
// spells them out on demand.
func (b *builder) output(n *Node, def string, depth int) *output {
	if n.Ref != "" && depth < maxNodeDepth {
		return b.refer(refName(n.Ref))
	}
	typ := n.Type
	if typ == "" && n.Properties != nil {
		typ = "object"
	}
	if typ == "" || typ == "file" || depth >= maxNodeDepth {
		return &output{} // any value
	}
	out := &output{Type: typ}
	if nullable(n, typ) {
		out.Type = []string{typ, "null"}
	}
	if typ == "array" && n.Items != nil {
		out.Items = b.output(n.Items, "", depth+1)
	}
	if len(n.Properties) != 0 {
		out.Properties = map[string]*output{}
	}
	for name, p := range n.Properties {
		member := *p
		member.Nullable = p.Nullable || slices.Contains(b.in.corrections.Nullable[def], name)
		out.Properties[name] = b.output(&member, "", depth+1)
	}
	if n.Map != nil && (n.Map.Type != "" || n.Map.Ref != "") {
		out.Map = b.output(n.Map, "", depth+1)
	}
	return out
}

// refer returns a reference to a definition, which the catalog then has to hold. A name
// that could not stand in a reference as [spec.Expander] reads it is any value.
func (b *builder) refer(name string) *output {
	if b.facts.Definitions[name] == nil || argName(name) != name {
		return &output{}
	}
	b.used[name] = true
	return &output{Ref: name}
}

// nullable reports whether a value may be null: what the facts or corrections.yaml
// say, and Go's nil slices, maps and pointers to times.
func nullable(n *Node, typ string) bool {
	return n.Nullable || typ == "array" || typ == "object" || n.Format == "date-time" || n.Format == "date"
}

// definitions writes every definition that the results reach. In rounds until nothing new
// is reached, as each definition that is written may refer to further ones.
func (b *builder) definitions() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for {
		todo := 0
		for _, name := range sortedKeys(b.used) {
			if _, done := out[name]; !done {
				out[name] = raw(b.output(b.facts.Definitions[name], name, 0))
				todo++
			}
		}
		if todo == 0 {
			return out
		}
	}
}
