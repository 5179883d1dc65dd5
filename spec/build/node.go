package build

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// rawNode is a schema as documents write it; members whose type varies are raw. Were they
// typed, one odd member somewhere in a document of a megabyte would make encoding/json
// refuse all of it.
type rawNode struct {
	Ref string `json:"$ref"`
	// A name, or since OpenAPI 3.1 a list of them.
	Type    json.RawMessage   `json:"type"`
	Format  string            `json:"format"`
	Enum    []json.RawMessage `json:"enum"`
	Default json.RawMessage   `json:"default"`
	// Numbers may be written 1.0 or 1e3.
	Minimum    *float64                   `json:"minimum"`
	Maximum    *float64                   `json:"maximum"`
	MaxLength  *float64                   `json:"maxLength"`
	Items      json.RawMessage            `json:"items"`
	Properties map[string]json.RawMessage `json:"properties"`
	// A list of names; in parameters a boolean, which is read elsewhere.
	Required    json.RawMessage   `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	AllOf       []json.RawMessage `json:"allOf"`
	Description string            `json:"description"`
	XDeprecated bool              `json:"x-deprecated"`
	XNullable   bool              `json:"x-nullable"`
}

// node reads a schema. What it cannot make sense of becomes the schema of any value. Any
// value is the honest answer: a tool that takes too much leaves the refusal to the server,
// one with an invented schema refuses what the server takes.
func (r *reader) node(raw json.RawMessage, depth int) *Node {
	var n rawNode
	if depth > maxNodeDepth || len(raw) == 0 || json.Unmarshal(raw, &n) != nil {
		return &Node{}
	}
	out := &Node{
		Format: clean(n.Format, 40), Default: n.Default, Minimum: integer(n.Minimum), Maximum: integer(n.Maximum),
		Deprecated: n.XDeprecated, Nullable: n.XNullable, Description: r.words(n.Description),
	}
	// Members beside a reference mean nothing in Swagger 2.0, but Gitea describes its
	// arguments there.
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

// members reads what an object has: its properties, those that are required, and what
// else may be in it.
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

// merge adds one part of an allOf. Generators write allOf to put a description beside a
// reference, and to add members to a base; both come out right. Contradictions between
// parts are not looked for.
func (n *Node) merge(part *Node) {
	if part.Ref != "" && n.Type == "" && n.Properties == nil {
		n.Ref = part.Ref
		return
	}
	n.Type = cmp.Or(n.Type, part.Type)
	if n.Properties == nil {
		n.Properties = part.Properties
	} else {
		maps.Copy(n.Properties, part.Properties)
	}
	n.Required = append(n.Required, part.Required...)
}

// typeName reads "type", which some documents write as a list with null. More than one type
// besides null is no type: providers of models refuse unions.
func typeName(raw json.RawMessage, nullable bool) (string, bool) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return knownType(one), nullable
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return "", nullable
	}
	nullable = nullable || slices.Contains(many, "null")
	many = slices.DeleteFunc(many, func(s string) bool { return s == "null" })
	if len(many) != 1 {
		return "", nullable
	}
	return knownType(many[0]), nullable
}

// knownType returns a type that Swagger 2.0 knows, "" for any other.
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

// integer returns a bound as a whole number; nil when it is none that every JSON
// decoder reads the same.
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
