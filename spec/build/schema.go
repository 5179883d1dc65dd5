package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// schema is an argument's schema. Its fields are in the order in which it is written.
type schema struct {
	Type        string          `json:"type,omitempty"`
	Description string          `json:"description,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Format      string          `json:"format,omitempty"`
	Pattern     string          `json:"pattern,omitempty"`
	Encoding    string          `json:"contentEncoding,omitempty"`
	MinLength   int             `json:"minLength,omitempty"`
	MaxLength   int             `json:"maxLength,omitempty"`
	Minimum     *int64          `json:"minimum,omitempty"`
	Maximum     *int64          `json:"maximum,omitempty"`
	Items       *schema         `json:"items,omitempty"`
	MinItems    int             `json:"minItems,omitempty"`
	MaxItems    int             `json:"maxItems,omitempty"`
	Members     members         `json:"properties,omitempty"`
	// Required are the names of the members that must be there; [schema.json] sets it.
	Required []string `json:"required,omitempty"`
	// Rest are the members that an object may have besides: a *schema, false for
	// none, nil for any.
	Rest any `json:"additionalProperties,omitempty"`
}

// members are the properties of an object schema in their order: required ones first,
// which models then fill first.
type members []member

// member is one property. Whether it is required decides its place, so it is kept here
// and not with the object.
type member struct {
	name     string
	required bool
	schema   *schema
}

// MarshalJSON writes an object in the order of its members.
func (list members) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for i, m := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, quote(m.name)+":"...), m.schema.json()...)
	}
	return append(out, '}'), nil
}

// json renders s with its keywords in a fixed order.
func (s *schema) json() json.RawMessage {
	s.require()
	return raw(s)
}

// require sets Required, in everything that is in s. Late, since twins and corrections
// still change what is required.
func (s *schema) require() {
	s.Required = nil
	for _, m := range s.Members {
		if m.required {
			s.Required = append(s.Required, m.name)
		}
	}
	if s.Items != nil {
		s.Items.require()
	}
}

// argument makes the schema of one argument: what the description says of it, corrected,
// then described, then bounded. The order of the steps is their rank: a bound is only given
// where neither the description nor a hand-made file has one.
func (b *builder) argument(a *arg) (*schema, error) {
	b.nodes = 0
	s := b.schemaOf(a.node, 1, nil)
	if a.in == "file" {
		s = &schema{Type: "string", Encoding: "base64"}
	}
	if a.base64 {
		s.Encoding = "base64"
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
		in, i := s.find(path)
		if i < 0 {
			return nil, fmt.Errorf("descriptions: the argument has no part %q", path)
		}
		if err := in.Members[i].schema.describe(&doc); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	s.bound(a.wire, a.in)
	return s, nil
}

// find returns the object that has the part of s at a dotted path, looking through arrays,
// and the part's place in it; -1 for none.
func (s *schema) find(path string) (in *schema, i int) {
	for s.Items != nil {
		s = s.Items
	}
	name, rest, deeper := strings.Cut(path, ".")
	i = slices.IndexFunc(s.Members, func(m member) bool { return m.name == name })
	if i >= 0 && deeper {
		return s.Members[i].schema.find(rest)
	}
	return s, i
}

// twin puts a text member beside the base64 member at path.
func (s *schema) twin(path, name string) bool {
	in, i := s.find(path)
	if i < 0 {
		return false
	}
	in.Members[i].schema.Encoding, in.Members[i].required = "base64", false // either of the two will do
	in.Members = slices.Insert(in.Members, i+1, member{name: name, schema: &schema{
		Type: "string", Description: "The same as plain text.", MaxLength: fileText,
	}})
	return true
}

// schemaOf follows a node and its references. Deeper or recursive parts become open
// objects. Spelled out, as clients and providers of models know no references in the
// schemas of arguments.
func (b *builder) schemaOf(n *Node, depth int, seen []string) *schema {
	if n == nil {
		return &schema{}
	}
	// Definitions that refer to each other twice double with each level.
	if b.nodes++; b.nodes > maxSchemaNodes {
		return &schema{Type: "object"}
	}
	if n.Ref != "" {
		def := b.facts.Definitions[refName(n.Ref)]
		// A recursive definition ends as an object of any members.
		if def == nil || slices.Contains(seen, n.Ref) || len(seen) > 50 {
			return &schema{Type: "object", Description: n.Description}
		}
		s := b.schemaOf(def, depth, append(slices.Clone(seen), n.Ref))
		s.Description = cmp.Or(n.Description, s.Description)
		return s
	}
	s := &schema{
		Type: n.Type, Description: clean(n.Description, maxWords), Enum: n.Enum, Default: n.Default,
		Minimum: n.Minimum, Maximum: n.Maximum, MaxLength: n.MaxLength,
	}
	// Other formats (int64, password …) say nothing that is checked.
	if slices.Contains([]string{"date-time", "date", "email", "uri"}, n.Format) && n.Type == "string" {
		s.Format = n.Format
	}
	if s.Type == "" && (n.Properties != nil || n.Map != nil) {
		s.Type = "object"
	}
	switch {
	case s.Type == "file":
		s.Type, s.Encoding = "string", "base64"
	case s.Type == "array":
		b.arrayOf(s, n, depth, seen)
	case s.Type == "object":
		b.objectOf(s, n, depth, seen)
	}
	// Descriptions in the wild have defaults of the wrong type; a client would show
	// them.
	if !s.fits(s.Default) {
		s.Default = nil
	}
	return s
}

// arrayOf completes the schema of a list.
func (b *builder) arrayOf(s *schema, n *Node, depth int, seen []string) {
	s.Items = &schema{Type: "object"}
	if depth < maxSchemaDepth {
		s.Items = b.schemaOf(n.Items, depth+1, seen)
	}
	// An enumeration of a list means its items.
	s.Items.Enum, s.Enum = append(s.Items.Enum, s.Enum...), nil
	// Far more than any operation is good for; without a bound a model may fill a list
	// for ever.
	s.MaxItems = 1000
}

// objectOf completes the schema of an object: its members, or the values of a map. Objects
// without described members stay open: Gitea has some whose members only its source names.
// Those with members are closed, so that a misspelled one is an error and not ignored.
func (b *builder) objectOf(s *schema, n *Node, depth int, seen []string) {
	s.Enum = nil
	if depth >= maxSchemaDepth || n.Properties == nil {
		if n.Map != nil && n.Map.Ref == "" && n.Map.Type != "" && n.Map.Type != "object" && n.Map.Type != "array" {
			s.Rest = b.schemaOf(n.Map, depth+1, seen)
		}
		return
	}
	if n.Map == nil {
		s.Rest = false
	}
	for _, name := range sortedKeys(n.Properties) {
		// A name that providers of models refuse cannot be offered; the member is left
		// out.
		if argName(name) != name {
			continue
		}
		required, sub := slices.Contains(n.Required, name), b.schemaOf(n.Properties[name], depth+1, seen)
		s.Members = append(s.Members, member{name, required, sub})
	}
	slices.SortStableFunc(s.Members, func(x, y member) int { return rankMember(x) - rankMember(y) })
}

// rankMember orders the members of an object: required ones first.
func rankMember(m member) int {
	if m.required {
		return 0
	}
	return 1
}

// correct applies corrections.yaml. A corrected type drops what belonged to the wrong one.
// Limits go the way of descriptions, so that both files have the same words for them.
func (s *schema) correct(f *argFix) error {
	if f.Type != "" {
		s.Type, s.Items, s.Members, s.Rest = f.Type, nil, nil, nil
	}
	if f.Items != "" {
		s.Type, s.Items = "array", &schema{Type: f.Items}
	}
	if f.NoDefault {
		s.Default = nil
	}
	s.MinLength, s.MinItems = f.MinLength, f.MinItems
	return s.describe(&argDoc{limits: f.limits})
}

// describe adds words and constraints; later ones replace earlier ones.
func (s *schema) describe(d *argDoc) error {
	target := s
	if s.Type == "array" && s.Items != nil {
		target = s.Items // constraints on values mean the items
	}
	if d.Description != "" {
		s.Description = clean(d.Description, maxWords)
		if len([]rune(d.Description)) > maxWords {
			return fmt.Errorf("its description has more than %d characters", maxWords)
		}
	}
	// Providers of models refuse enumerations of anything but strings.
	if len(d.Enum) != 0 {
		if target.Type != "string" {
			return fmt.Errorf("an enum on a %s; only strings have one", target.Type)
		}
		target.Enum = d.Enum
	}
	target.Minimum, target.Maximum = cmp.Or(d.Minimum, target.Minimum), cmp.Or(d.Maximum, target.Maximum)
	target.Pattern, target.Format = cmp.Or(d.Pattern, target.Pattern), cmp.Or(d.Format, target.Format)
	target.MaxLength = cmp.Or(d.MaxLength, target.MaxLength)
	if d.Default != nil {
		raw, err := marshal(d.Default)
		if err != nil || !s.fits(raw) {
			return errors.New("the default is not of the argument's type or not in its enum")
		}
		s.Default = raw
	}
	return nil
}

// fits reports whether raw can be a default of s. Absent fits: most arguments have no
// default.
func (s *schema) fits(raw json.RawMessage) bool {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return len(raw) == 0
	}
	switch x := v.(type) {
	case string:
		return s.Type == "string" && (len(s.Enum) == 0 || slices.Contains(s.Enum, x))
	case bool:
		return s.Type == "boolean"
	case float64:
		return s.Type == "number" || s.Type == "integer" && x == float64(int64(x))
	case []any:
		return s.Type == "array"
	}
	return false
}
