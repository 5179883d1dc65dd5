package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// rawSchema is the subset of JSON Schema that arguments use. spec/build writes the same
// keywords from a type of its own: the two are on either side of a file that others may
// write.
type rawSchema struct {
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
	Items       json.RawMessage `json:"items,omitempty"`
	MinItems    int             `json:"minItems,omitempty"`
	MaxItems    int             `json:"maxItems,omitempty"`
	Properties  json.RawMessage `json:"properties,omitempty"`
	Required    []string        `json:"required,omitempty"`
	Additional  json.RawMessage `json:"additionalProperties,omitempty"`
}

// maxSchemaNesting bounds schemas of a catalog from a file. The generator ends at four
// levels.
const maxSchemaNesting = 8

// parse reads the schema of an argument; equal texts share one result, which saves
// most of the memory of a catalog: owner and repo are arguments of 400 tools.
func (l *loader) parse(raw json.RawMessage, depth int) (*proxy.Schema, error) {
	if got, ok := l.schemas[string(raw)]; ok {
		return got, nil
	}
	if depth > maxSchemaNesting {
		return nil, errors.New("the schema is nested too deep")
	}
	var r rawSchema
	dec := json.NewDecoder(bytes.NewReader(raw))
	// A keyword that is not known here would be a rule that clients read and Aegis does
	// not check.
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("the schema uses what is not checked: %w", err)
	}
	s := &proxy.Schema{
		Type: r.Type, Format: r.Format, Enum: r.Enum, Pattern: r.Pattern,
		MinLength: r.MinLength, MaxLength: r.MaxLength, MinItems: r.MinItems, MaxItems: r.MaxItems,
		Minimum: r.Minimum, Maximum: r.Maximum,
	}
	if !slices.Contains([]string{"", "string", "integer", "number", "boolean", "array", "object"}, s.Type) {
		return nil, fmt.Errorf("unknown type %q", s.Type)
	}
	// Compiled once for all arguments that have it; see Load.
	if s.Pattern != "" && !slices.Contains(l.patterns, s.Pattern) {
		l.patterns = append(l.patterns, s.Pattern)
	}
	if err := l.parts(s, &r, depth); err != nil {
		return nil, err
	}
	l.schemas[string(raw)] = s
	return s, nil
}

// parts reads what is in a schema of a list or an object.
func (l *loader) parts(s *proxy.Schema, r *rawSchema, depth int) error {
	var err error
	if len(r.Items) != 0 {
		if s.Items, err = l.parse(r.Items, depth+1); err != nil {
			return err
		}
	}
	for name, value := range jsonscan.Members(r.Properties) {
		sub, err := l.parse(value, depth+1)
		if err != nil {
			return err
		}
		key := jsonscan.Unquote(name)
		required := slices.Contains(r.Required, key)
		s.Properties = append(s.Properties, proxy.Property{Name: key, Required: required, Schema: sub})
	}
	markTwins(s, r)
	if s.Type != "object" {
		return nil
	}
	// Absent means true, as JSON Schema has it.
	switch text := strings.TrimSpace(string(r.Additional)); {
	case text == "false":
	case text == "" || text == "true":
		s.Open = true
	default:
		s.Open = true
		s.Items, err = l.parse(r.Additional, depth+1)
	}
	return err
}

// markTwins recognises in a nested object the plain-text member (content_text) beside the
// one that takes base64 (content). The catalog marks twins among arguments itself, but has
// no place for a mark inside of a schema that clients read.
func markTwins(s *proxy.Schema, r *rawSchema) {
	for i := range s.Properties {
		p := &s.Properties[i]
		base := strings.TrimSuffix(p.Name, "_text")
		if base == p.Name {
			continue
		}
		if twin := jsonscan.Member(r.Properties, base); twin != nil && jsonscan.Member(twin, "contentEncoding") != nil {
			p.Wire, p.Encode = base, proxy.EncodeBase64
		}
	}
}
