package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"aegis/config"
)

// object is a JSON object that keeps its members in order. A map would sort them, and
// the keys of the file have an order in which people read them.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in order. HTML escapes would make patterns unreadable, and
// an encoder cannot be told to leave them out in what a Marshaler returns.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		err := enc.Encode(m.key)
		b.WriteByte(':')
		if err = errors.Join(err, enc.Encode(m.value)); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

const (
	// The patterns say a little less than the program does: an editor should help while
	// something is written, and "aegis check" has the last word.
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern     = `^[0-9]+(KiB|MiB|GiB)?$`
	ratePattern     = `^(off|[0-9]+/[smh])$`
	networkPattern  = `^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`
	urlPattern      = `[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#@]+[^\s?#@]*`
	secretNote      = " Write ${NAME} for an environment variable, file:/path for a file's content, " +
		"or the value itself."
)

// schema returns the JSON Schema of the file, indented.
func (e entry) schema() ([]byte, error) {
	o := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Aegis configuration"},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(append(o, e.section()...))
	return out.Bytes(), err
}

// section returns the schema of a mapping with the keys below e. An empty section is
// null in YAML, and means its defaults. Additional properties are refused, as the
// program refuses unknown keys.
func (e entry) section() object {
	properties, required := object{}, []string{}
	for _, b := range e.below {
		properties = append(properties, member{b.key, b.property()})
		if b.needed() {
			required = append(required, b.key)
		}
	}
	o := object{nullable("object")}
	if len(required) > 0 {
		o = object{{"type", "object"}, {"required", required}}
	}
	return append(o, member{"additionalProperties", false}, member{"properties", properties})
}

// nullable is the type of what may be left out after its key. Only sections and lists
// may be so: a scalar without a value is an error when the file is loaded.
func nullable(kind string) member { return member{"type", []string{kind, "null"}} }

// needed reports whether the key must be in the file.
func (e entry) needed() bool {
	return e.tag.Get("required") != "" || e.kind == kindSection && slices.ContainsFunc(e.below, entry.needed)
}

// property returns the schema of one key.
func (e entry) property() object {
	o := object{{"description", e.description()}}
	switch e.kind {
	case kindSection:
		return append(o, e.section()...)
	case kindList:
		if e.needed() {
			o = append(o, member{"type", "array"}, member{"minItems", 1})
		} else {
			o = append(o, nullable("array"))
		}
		return append(o, member{"items", e.section()})
	case kindSections:
		o = append(o, nullable("object"), member{"additionalProperties", e.section()})
		return append(o, member{"default", object{}})
	case kindTexts, kindSecrets, kindNetworks:
		o = append(o, nullable("array"), member{"items", e.text()})
	case kindTable:
		list := object{{"type", "array"}, {"minItems", 1}, {"maxItems", 100}, {"items", e.text()}}
		o = append(o, nullable("object"), member{"additionalProperties", list})
	case kindChoices:
		o = append(o, nullable("object"), member{"additionalProperties", e.text()})
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
	// Examples of lists are those of their items, which editors would offer for the
	// whole.
	alone := []kind{kindText, kindURL, kindSecret, kindPattern}
	if ex := e.tag.Get("example"); ex != "" && slices.Contains(alone, e.kind) {
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

// text returns the schema of one text, of list items too. A choice needs no pattern,
// and a pattern no lengths, since each says all that the other could.
func (e entry) text() object {
	o := object{{"type", "string"}}
	if enum := e.tag.Get("enum"); enum != "" {
		choices := strings.Fields(enum)
		if e.tag.Get("empty") != "" {
			choices = append(choices, "")
		}
		return append(o, member{"enum", choices})
	}
	required, pattern := e.tag.Get("required") != "", e.tag.Get("pattern")
	switch {
	case e.kind == kindURL && required:
		pattern = "^" + urlPattern + "$"
	case e.kind == kindURL:
		// An empty text means that the key is not set.
		pattern = "^(" + urlPattern + ")?$"
	case e.kind == kindRate:
		pattern = ratePattern
	case e.kind == kindNetworks:
		pattern = networkPattern
	}
	least, greatest, bounded := strings.Cut(e.tag.Get("length"), " ")
	switch {
	case pattern != "":
		o = append(o, member{"pattern", pattern})
	case e.kind == kindSecret || e.kind == kindSecrets || e.kind == kindPattern:
		// A secret's length is that of the variable or file it names.
		if required || e.kind == kindSecrets {
			o = append(o, member{"minLength", 1})
		}
	case bounded:
		o = append(o, member{"minLength", json.Number(least)}, member{"maxLength", json.Number(greatest)})
	}
	return o
}

// number returns the schema of numbers, durations and sizes. The range of a duration
// cannot be said in a schema; that of a size can, for bare numbers.
func (e entry) number() object {
	least, greatest, _ := strings.Cut(e.tag.Get("range"), " ")
	plain := map[kind]string{kindInt: "integer", kindFloat: "number"}[e.kind]
	switch {
	case plain != "":
		return object{{"type", plain}, {"minimum", json.Number(least)}, {"maximum", json.Number(greatest)}}
	case e.kind == kindDuration:
		return object{{"type", "string"}, {"pattern", durationPattern}}
	}
	return object{
		{"type", []string{"string", "integer"}}, {"pattern", sizePattern},
		{"minimum", int64(bytesOf(least))}, {"maximum", int64(bytesOf(greatest))},
	}
}

func bytesOf(s string) (b config.ByteSize) {
	_ = b.UnmarshalText([]byte(s)) // a test of package config reads every range
	return b
}

// value returns the default for JSON, nil when there is none to show.
func (e entry) value() (v any) {
	if e.fallback != nil && e.tag.Get("required") == "" {
		_ = e.fallback.Decode(&v)
	}
	return v
}
