package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"aegis/config"

	"gopkg.in/yaml.v3"
)

// object is a JSON object that keeps its members in order.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := plainJSON(m.key)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON encodes without the HTML escapes that make patterns unreadable.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern     = `^[0-9]+(KiB|MiB|GiB)?$`
	ratePattern     = `^(off|[0-9]+/[smh])$`
	networkPattern  = `^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`
	urlPattern      = `[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#@]+[^\s?#@]*`
	secretNote      = " Write ${NAME} for an environment variable, file:/path for a file's content, or the value itself."
)

// schema returns the JSON Schema of the file, indented.
func (e entry) schema() ([]byte, error) {
	o := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Aegis configuration"},
	}
	compact, err := plainJSON(append(o, e.section()...))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "  "); err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// section returns the schema of a mapping with the keys below e. An empty
// section is null in YAML, and means its defaults.
func (e entry) section() object {
	properties, required := object{}, []string{}
	for _, b := range e.below {
		properties = append(properties, member{b.key, b.property()})
		if b.needed() {
			required = append(required, b.key)
		}
	}
	var o object
	if len(required) > 0 {
		o = object{{"type", "object"}, {"required", required}}
	} else {
		o = object{{"type", []string{"object", "null"}}}
	}
	return append(o, member{"additionalProperties", false}, member{"properties", properties})
}

// needed reports whether the key must be in the file.
func (e entry) needed() bool {
	if e.tag.Get("required") != "" {
		return true
	}
	if e.kind == kindSection {
		for _, b := range e.below {
			if b.needed() {
				return true
			}
		}
	}
	return false
}

// property returns the schema of one key.
func (e entry) property() object {
	o := object{{"description", e.description()}}
	switch e.kind {
	case kindSection:
		return append(o, e.section()...)
	case kindList:
		items := append(object{}, e.section()...)
		if e.needed() {
			o = append(o, member{"type", "array"}, member{"minItems", 1})
		} else {
			o = append(o, member{"type", []string{"array", "null"}})
		}
		return append(o, member{"items", items})
	case kindSections:
		return append(o, member{"type", []string{"object", "null"}}, member{"additionalProperties", append(object{}, e.section()...)}, member{"default", object{}})
	case kindTexts, kindSecrets, kindNetworks:
		o = append(o, member{"type", []string{"array", "null"}}, member{"items", e.text()})
	case kindTable:
		list := object{{"type", "array"}, {"minItems", 1}, {"maxItems", 100}, {"items", e.text()}}
		o = append(o, member{"type", []string{"object", "null"}}, member{"additionalProperties", list})
	case kindChoices:
		o = append(o, member{"type", []string{"object", "null"}}, member{"additionalProperties", e.text()})
	case kindInt, kindFloat, kindDuration, kindSize:
		o = append(o, e.number()...)
	case kindBool:
		o = append(o, member{"type", "boolean"})
	default:
		o = append(o, e.text()...)
	}
	if v := e.value(); v != nil {
		o = append(o, member{"default", v})
	}
	if ex := e.tag.Get("example"); ex != "" && (e.kind == kindText || e.kind == kindURL || e.kind == kindSecret || e.kind == kindPattern) {
		o = append(o, member{"examples", []string{ex}})
	}
	return o
}

func (e entry) description() string {
	if e.kind == kindSecret || e.kind == kindSecrets {
		return e.doc + secretNote
	}
	return e.doc
}

// text returns the schema of one text, of list items too.
func (e entry) text() object {
	o := object{{"type", "string"}}
	required := e.tag.Get("required") != ""
	if enum := e.tag.Get("enum"); enum != "" {
		choices := strings.Fields(enum)
		if e.tag.Get("empty") != "" {
			choices = append(choices, "")
		}
		return append(o, member{"enum", choices})
	}
	switch {
	case e.kind == kindURL && required:
		o = append(o, member{"pattern", "^" + urlPattern + "$"})
	case e.kind == kindURL:
		o = append(o, member{"pattern", "^(" + urlPattern + ")?$"})
	case e.kind == kindRate:
		o = append(o, member{"pattern", ratePattern})
	case e.kind == kindNetworks:
		o = append(o, member{"pattern", networkPattern})
	case e.tag.Get("pattern") != "":
		o = append(o, member{"pattern", e.tag.Get("pattern")})
	case e.kind == kindSecret || e.kind == kindSecrets || e.kind == kindPattern:
		// A secret's length is that of the variable or file it names.
		if required || e.kind == kindSecrets {
			o = append(o, member{"minLength", 1})
		}
	case e.tag.Get("length") != "":
		least, greatest, _ := strings.Cut(e.tag.Get("length"), " ")
		o = append(o, member{"minLength", json.Number(least)}, member{"maxLength", json.Number(greatest)})
	}
	return o
}

// number returns the schema of numbers, durations and sizes.
func (e entry) number() object {
	least, greatest, _ := strings.Cut(e.tag.Get("range"), " ")
	switch e.kind {
	case kindInt:
		return object{{"type", "integer"}, {"minimum", json.Number(least)}, {"maximum", json.Number(greatest)}}
	case kindFloat:
		return object{{"type", "number"}, {"minimum", json.Number(least)}, {"maximum", json.Number(greatest)}}
	case kindDuration:
		return object{{"type", "string"}, {"pattern", durationPattern}}
	}
	return object{{"type", []string{"string", "integer"}}, {"pattern", sizePattern}, {"minimum", bytesOf(least)}, {"maximum", bytesOf(greatest)}}
}

func bytesOf(s string) int64 {
	var b config.ByteSize
	var _ encoding.TextUnmarshaler = &b
	_ = b.UnmarshalText([]byte(s)) // a test of package config reads every range
	return int64(b)
}

// value returns the default for JSON, nil when there is none to show.
func (e entry) value() any {
	n := e.fallback
	if n == nil || e.tag.Get("required") != "" {
		return nil
	}
	switch {
	case n.Kind == yaml.SequenceNode:
		return texts(n)
	case n.Kind == yaml.MappingNode:
		return object{}
	case n.Tag == "!!int" || n.Tag == "!!float":
		return json.Number(n.Value)
	case n.Tag == "!!bool":
		b, _ := strconv.ParseBool(n.Value)
		return b
	}
	return n.Value
}
