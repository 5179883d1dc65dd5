package build

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"
)

// rawNode is a schema as documents write it; members whose type varies are raw.
type rawNode struct {
	Ref         string                     `json:"$ref"`
	Type        json.RawMessage            `json:"type"`
	Format      string                     `json:"format"`
	Enum        []json.RawMessage          `json:"enum"`
	Default     json.RawMessage            `json:"default"`
	Minimum     *float64                   `json:"minimum"`
	Maximum     *float64                   `json:"maximum"`
	MaxLength   *float64                   `json:"maxLength"`
	Items       json.RawMessage            `json:"items"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    json.RawMessage            `json:"required"`
	Additional  json.RawMessage            `json:"additionalProperties"`
	AllOf       []json.RawMessage          `json:"allOf"`
	Description string                     `json:"description"`
	XDeprecated bool                       `json:"x-deprecated"`
	XNullable   bool                       `json:"x-nullable"`
}

// node reads a schema. What it cannot make sense of becomes the schema of any
// value.
func (r *reader) node(raw json.RawMessage, depth int) *Node {
	var n rawNode
	if depth > maxNodeDepth || len(raw) == 0 || json.Unmarshal(raw, &n) != nil {
		return &Node{}
	}
	out := &Node{
		Format: clean(n.Format, 40), Default: n.Default, Minimum: integer(n.Minimum), Maximum: integer(n.Maximum),
		Deprecated: n.XDeprecated, Nullable: n.XNullable, Description: clean(n.Description, maxProse),
	}
	if n.Ref != "" {
		return &Node{Ref: n.Ref, Description: out.Description}
	}
	out.Type, out.Nullable = typeName(n.Type, out.Nullable)
	if m := integer(n.MaxLength); m != nil && *m > 0 && *m < math.MaxInt32 {
		out.MaxLength = int(*m)
	}
	out.Enum = enum(n.Enum)
	if len(n.Items) != 0 {
		out.Items = r.node(n.Items, depth+1)
	}
	r.members(out, &n, depth)
	for _, part := range n.AllOf {
		out.merge(r.node(part, depth+1))
	}
	return out
}

func (r *reader) members(out *Node, n *rawNode, depth int) {
	if len(n.Properties) != 0 {
		out.Properties = make(map[string]*Node, len(n.Properties))
		for name, p := range n.Properties {
			out.Properties[name] = r.node(p, depth+1)
		}
	}
	if json.Unmarshal(n.Required, &out.Required) != nil {
		out.Required = nil
	}
	slices.Sort(out.Required)
	out.Required = slices.Compact(out.Required)
	switch text := string(n.Additional); {
	case text == "" || text == "false" || text == "null":
	case text == "true":
		out.Map = &Node{}
	default:
		out.Map = r.node(n.Additional, depth+1)
	}
}

// merge adds one part of an allOf.
func (n *Node) merge(part *Node) {
	if part.Ref != "" && n.Type == "" && n.Properties == nil {
		n.Ref = part.Ref
		return
	}
	if n.Type == "" {
		n.Type = part.Type
	}
	if part.Properties != nil && n.Properties == nil {
		n.Properties = map[string]*Node{}
	}
	for name, p := range part.Properties {
		n.Properties[name] = p
	}
	n.Required = append(n.Required, part.Required...)
}

// typeName reads "type", which some documents write as a list with null.
func typeName(raw json.RawMessage, nullable bool) (string, bool) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return knownType(one), nullable
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return "", nullable
	}
	if slices.Contains(many, "null") {
		nullable = true
		many = slices.DeleteFunc(many, func(s string) bool { return s == "null" })
	}
	if len(many) != 1 {
		return "", nullable
	}
	return knownType(many[0]), nullable
}

func knownType(t string) string {
	if slices.Contains([]string{"string", "integer", "number", "boolean", "array", "object", "file"}, t) {
		return t
	}
	return ""
}

// enum keeps an enumeration of strings; any other is dropped, because providers
// of language models refuse it.
func enum(raw []json.RawMessage) []string {
	var out []string
	for _, r := range raw {
		var s string
		if json.Unmarshal(r, &s) != nil {
			return nil
		}
		if s = clean(s, 100); s != "" && !slices.Contains(out, s) && len(out) < 200 {
			out = append(out, s)
		}
	}
	return out
}

func integer(f *float64) *int64 {
	if f == nil || *f != math.Trunc(*f) || math.Abs(*f) > 1<<53 {
		return nil
	}
	i := int64(*f)
	return &i
}

// clean makes foreign text one line without control or invisible characters,
// of at most limit runes. Descriptions go to models: text that a person cannot
// see must not reach them either.
func clean(s string, limit int) string {
	var b strings.Builder
	space, n := false, 0
	for _, c := range s {
		if unicode.IsSpace(c) {
			space = b.Len() > 0
			continue
		}
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			continue
		}
		if n++; n > limit {
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(c)
	}
	return b.String()
}

// dropProse removes the document's own text.
func (f *Facts) dropProse() {
	for i := range f.Operations {
		o := &f.Operations[i]
		o.Summary, o.Description = "", ""
		for j := range o.Params {
			o.Params[j].Schema.dropProse()
		}
		if o.Result != nil {
			o.Result.dropProse()
		}
	}
	for _, n := range f.Definitions {
		n.dropProse()
	}
}

func (n *Node) dropProse() {
	n.Description = ""
	for _, sub := range []*Node{n.Items, n.Map} {
		if sub != nil {
			sub.dropProse()
		}
	}
	for _, p := range n.Properties {
		p.dropProse()
	}
}
