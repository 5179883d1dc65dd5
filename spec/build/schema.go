package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxSchemaDepth is how deep the schema of an argument goes, the arguments
// object not counted. Providers refuse deeper ones, and models fill them badly.
const maxSchemaDepth = 4

// maxSchemaNodes bounds the parts of one argument's schema, against
// descriptions whose references multiply.
const maxSchemaNodes = 2000

// maxWords bounds the description of an argument, in runes.
const maxWords = 300

// member is one property of an object schema.
type member struct {
	name     string
	required bool
	schema   *schema
}

// schema is an argument's schema on its way to JSON.
type schema struct {
	typ, description, format, pattern, encoding string
	enum                                        []string
	def                                         json.RawMessage
	minLength, maxLength                        int
	minimum, maximum                            *int64
	items, values                               *schema // of arrays; of maps
	members                                     []member
	closed                                      bool // an object without further properties
	minItems, maxItems                          int
}

// json renders s with its keywords in a fixed order.
func (s *schema) json() json.RawMessage {
	var b bytes.Buffer
	s.write(&b)
	return b.Bytes()
}

func (s *schema) write(b *bytes.Buffer) {
	w := objectWriter{b: b}
	w.open()
	if s.typ != "" {
		w.text("type", s.typ)
	}
	if s.description != "" {
		w.text("description", s.description)
	}
	if len(s.enum) != 0 {
		w.key("enum")
		text, err := marshal(s.enum)
		if err == nil { // strings always encode
			b.Write(text)
		}
	}
	if len(s.def) != 0 {
		w.key("default")
		b.Write(s.def)
	}
	for _, t := range [][2]string{{"format", s.format}, {"pattern", s.pattern}, {"contentEncoding", s.encoding}} {
		if t[1] != "" {
			w.text(t[0], t[1])
		}
	}
	w.number("minLength", s.minLength)
	w.number("maxLength", s.maxLength)
	if s.minimum != nil {
		w.key("minimum")
		b.WriteString(strconv.FormatInt(*s.minimum, 10))
	}
	if s.maximum != nil {
		w.key("maximum")
		b.WriteString(strconv.FormatInt(*s.maximum, 10))
	}
	s.writeParts(&w)
	w.close()
}

func (s *schema) writeParts(w *objectWriter) {
	if s.items != nil {
		w.key("items")
		s.items.write(w.b)
	}
	w.number("minItems", s.minItems)
	w.number("maxItems", s.maxItems)
	if len(s.members) != 0 {
		w.key("properties")
		props := objectWriter{b: w.b}
		props.open()
		var required []string
		for _, m := range s.members {
			props.key(m.name)
			m.schema.write(w.b)
			if m.required {
				required = append(required, m.name)
			}
		}
		props.close()
		if len(required) != 0 {
			w.key("required")
			if text, err := marshal(required); err == nil {
				w.b.Write(text)
			}
		}
	}
	switch {
	case s.values != nil:
		w.key("additionalProperties")
		s.values.write(w.b)
	case s.closed:
		w.key("additionalProperties")
		w.b.WriteString("false")
	}
}

// objectWriter writes a JSON object member by member.
type objectWriter struct {
	b    *bytes.Buffer
	some bool
}

func (w *objectWriter) open()  { w.b.WriteByte('{') }
func (w *objectWriter) close() { w.b.WriteByte('}') }

func (w *objectWriter) key(name string) {
	if w.some {
		w.b.WriteByte(',')
	}
	w.some = true
	w.b.WriteString(quote(name))
	w.b.WriteByte(':')
}

func (w *objectWriter) text(name, value string) {
	w.key(name)
	w.b.WriteString(quote(value))
}

func (w *objectWriter) number(name string, n int) {
	if n != 0 {
		w.key(name)
		w.b.WriteString(strconv.Itoa(n))
	}
}

// argument makes the schema of one argument: what the description says of it,
// corrected, then described, then bounded.
func (b *builder) argument(a *arg) (*schema, error) {
	b.nodes = 0
	s := b.schemaOf(a.node, 1, nil)
	if a.in == "file" {
		s = &schema{typ: "string", encoding: "base64"}
	}
	if a.base64 {
		s.encoding = "base64"
	}
	for _, path := range sortedKeys(a.twins) {
		if !s.twin(path, a.twins[path]) {
			return nil, fmt.Errorf("corrections: the argument has no part %q", path)
		}
	}
	if err := s.correct(&a.fix); err != nil {
		return nil, err
	}
	if err := s.describe(&a.doc); err != nil {
		return nil, err
	}
	for _, path := range sortedKeys(a.nested) {
		doc := a.nested[path]
		sub := s.find(path)
		if sub == nil {
			return nil, fmt.Errorf("descriptions: the argument has no part %q", path)
		}
		if err := sub.describe(&doc); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	s.bound(a.wire, a.in)
	return s, nil
}

// find returns the part of s at a dotted path, looking through arrays.
func (s *schema) find(path string) *schema {
	name, rest, deeper := strings.Cut(path, ".")
	for s.items != nil {
		s = s.items
	}
	for _, m := range s.members {
		if m.name == name && deeper {
			return m.schema.find(rest)
		}
		if m.name == name {
			return m.schema
		}
	}
	return nil
}

// twin puts a text member beside the base64 member at path.
func (s *schema) twin(path, name string) bool {
	for s.items != nil {
		s = s.items
	}
	parent, rest, deeper := strings.Cut(path, ".")
	for i := range s.members {
		m := &s.members[i]
		if m.name != parent {
			continue
		}
		if deeper {
			return m.schema.twin(rest, name)
		}
		m.schema.encoding, m.required = "base64", false
		s.members = slices.Insert(s.members, i+1, member{name: name, schema: &schema{
			typ: "string", description: "The same as plain text.", maxLength: fileText,
		}})
		return true
	}
	return false
}

// schemaOf follows a node and its references. Deeper or recursive parts become
// open objects.
func (b *builder) schemaOf(n *Node, depth int, seen []string) *schema {
	if n == nil {
		return &schema{}
	}
	if b.nodes++; b.nodes > maxSchemaNodes {
		return &schema{typ: "object"}
	}
	if n.Ref != "" {
		def := b.facts.Definitions[n.Ref]
		if def == nil || slices.Contains(seen, n.Ref) || len(seen) > 50 {
			return &schema{typ: "object", description: n.Description}
		}
		s := b.schemaOf(def, depth, append(slices.Clone(seen), n.Ref))
		if n.Description != "" {
			s.description = n.Description
		}
		return s
	}
	s := &schema{
		typ: n.Type, description: clean(n.Description, maxWords), enum: n.Enum, def: n.Default,
		minimum: n.Minimum, maximum: n.Maximum, maxLength: n.MaxLength,
	}
	if slices.Contains([]string{"date-time", "date", "email", "uri"}, n.Format) && n.Type == "string" {
		s.format = n.Format
	}
	if s.typ == "" && (n.Properties != nil || n.Map != nil) {
		s.typ = "object"
	}
	switch {
	case s.typ == "file":
		s.typ, s.encoding = "string", "base64"
	case s.typ == "array":
		b.arrayOf(s, n, depth, seen)
	case s.typ == "object":
		b.objectOf(s, n, depth, seen)
	}
	if !s.fits(s.def) {
		s.def = nil
	}
	return s
}

func (b *builder) arrayOf(s *schema, n *Node, depth int, seen []string) {
	s.items = &schema{typ: "object"}
	if depth < maxSchemaDepth {
		s.items = b.schemaOf(n.Items, depth+1, seen)
	}
	// An enumeration of a list means its items.
	s.items.enum, s.enum = append(s.items.enum, s.enum...), nil
	s.maxItems = 1000
}

func (b *builder) objectOf(s *schema, n *Node, depth int, seen []string) {
	s.enum = nil
	if depth >= maxSchemaDepth || n.Properties == nil {
		if n.Map != nil && n.Map.Ref == "" && n.Map.Type != "" && n.Map.Type != "object" && n.Map.Type != "array" {
			s.values = b.schemaOf(n.Map, depth+1, seen)
		}
		return
	}
	s.closed = n.Map == nil
	for _, name := range sortedKeys(n.Properties) {
		if argName(name) != name {
			continue
		}
		s.members = append(s.members, member{name, slices.Contains(n.Required, name), b.schemaOf(n.Properties[name], depth+1, seen)})
	}
	slices.SortStableFunc(s.members, func(x, y member) int { return boolCompare(y.required, x.required) })
}

// correct applies corrections.yaml.
func (s *schema) correct(f *argFix) error {
	if f.Type != "" {
		s.typ, s.items, s.members, s.closed = f.Type, nil, nil, false
	}
	if f.Items != "" {
		s.typ, s.items = "array", &schema{typ: f.Items}
	}
	if f.NoDefault {
		s.def = nil
	}
	s.minLength, s.minItems = f.MinLength, f.MinItems
	return s.describe(&argDoc{
		Enum: f.Enum, Default: f.Default, Minimum: f.Minimum, Maximum: f.Maximum, MaxLength: f.MaxLength, Pattern: f.Pattern,
	})
}

// describe adds words and constraints; later ones replace earlier ones.
func (s *schema) describe(d *argDoc) error {
	target := s
	if s.typ == "array" && s.items != nil {
		target = s.items // constraints on values mean the items
	}
	if d.Description != "" {
		s.description = clean(d.Description, maxWords)
		if len([]rune(d.Description)) > maxWords {
			return fmt.Errorf("its description has more than %d characters", maxWords)
		}
	}
	if len(d.Enum) != 0 {
		if target.typ != "string" {
			return fmt.Errorf("an enum on a %s; only strings have one", target.typ)
		}
		target.enum = d.Enum
	}
	if d.Minimum != nil {
		target.minimum = d.Minimum
	}
	if d.Maximum != nil {
		target.maximum = d.Maximum
	}
	if d.Pattern != "" {
		target.pattern = d.Pattern
	}
	if d.MaxLength != 0 {
		target.maxLength = d.MaxLength
	}
	if d.Format != "" {
		target.format = d.Format
	}
	if d.Default != nil {
		raw, err := marshal(d.Default)
		if err != nil || !s.fits(raw) {
			return errors.New("the default is not of the argument's type or not in its enum")
		}
		s.def = raw
	}
	return nil
}

// fits reports whether raw can be a default of s.
func (s *schema) fits(raw json.RawMessage) bool {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return len(raw) == 0
	}
	switch x := v.(type) {
	case string:
		return s.typ == "string" && (len(s.enum) == 0 || slices.Contains(s.enum, x))
	case bool:
		return s.typ == "boolean"
	case float64:
		return s.typ == "number" || s.typ == "integer" && x == float64(int64(x))
	case []any:
		return s.typ == "array"
	}
	return false
}
