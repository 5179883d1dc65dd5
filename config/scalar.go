package config

import (
	"encoding"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// text decodes a scalar into a type that reads itself. An empty text leaves a
// pointer nil: the key is there and says nothing.
func (d *decoder) text(n *yaml.Node, v reflect.Value, f field) {
	// Duration and ByteSize may look like numbers, and a rate without its unit does.
	number := v.Kind() == reflect.Int64 || v.Type() == reflect.TypeFor[Rate]()
	if !d.isString(n, f, number) {
		return
	}
	target := v.Addr()
	if v.Kind() == reflect.Pointer {
		if n.Value == "" {
			v.SetZero()
			return
		}
		target = reflect.New(v.Type().Elem())
	}
	if err := target.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
		what, do := split(err)
		if number && !f.quiet {
			what = quote(n.Value) + " " + what
		}
		d.add(at(n), f.key, what, do)
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(target)
	}
}

// split returns the parts of a *valueError.
func split(err error) (what, do string) {
	var e *valueError
	if errors.As(err, &e) {
		return e.what, e.do
	}
	return "is not valid", "see docs/config.md"
}

// isString reports whether n is text, or a number where that will do.
func (d *decoder) isString(n *yaml.Node, f field, number bool) bool {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.wrongType(n, f, "text", "write it on the line of the key")
	case n.Tag == "!!null":
		d.null(f, `give it one, write "" for empty, or remove the line`)
	case n.Tag == "!!str", number && (n.Tag == "!!int" || n.Tag == "!!float"):
		return true
	default:
		d.wrongType(n, f, "text", `put it in quotes ("…")`)
	}
	return false
}

func (d *decoder) null(f field, do string) {
	d.add(d.source.at[f.key], f.key, "has no value", do)
}

// wrongType reports a node of another kind than the key wants.
func (d *decoder) wrongType(n *yaml.Node, f field, want, do string) {
	is := map[string]string{
		"!!map": "a section of keys", "!!seq": "a list", "!!bool": "true or false", "!!int": "a number",
		"!!float": "a number", "!!null": "empty", "!!timestamp": "a date",
	}[n.Tag]
	if is == "" {
		is = "text"
	}
	if n.Kind == yaml.ScalarNode && !f.quiet && n.Tag != "!!str" && n.Tag != "!!null" {
		is += " (" + quote(n.Value) + ")"
	}
	d.add(at(n), f.key, "must be "+want+", not "+is, do)
}

// scalar decodes text, a number or a truth value.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, f field) {
	switch v.Kind() {
	case reflect.Bool:
		if n.Tag != "!!bool" {
			d.notA(n, f, "true or false", "write true or false, without quotes")
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int:
		i, err := strconv.Atoi(n.Value)
		if n.Tag != "!!int" || err != nil || strings.HasPrefix(n.Value, "0") && n.Value != "0" {
			d.notA(n, f, "a whole number", "write digits only, such as 100")
			return
		}
		v.SetInt(int64(i))
	case reflect.Float64:
		x, err := strconv.ParseFloat(n.Value, 64)
		if n.Tag != "!!int" && n.Tag != "!!float" || err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			d.notA(n, f, "a number", "write it like 3.5")
			return
		}
		v.SetFloat(x)
	case reflect.Pointer: // *string: absent and empty differ
		s := reflect.New(v.Type().Elem())
		if d.plainText(n, s.Elem(), f) {
			v.Set(s)
		}
	default:
		d.plainText(n, v, f)
	}
}

// notA reports a scalar, or something else, that is not what the key wants.
func (d *decoder) notA(n *yaml.Node, f field, want, do string) {
	switch {
	case n.Tag == "!!null":
		d.null(f, "give it one, or remove the line")
	case n.Kind == yaml.ScalarNode && n.Tag != "!!bool" && !f.quiet:
		d.add(at(n), f.key, "must be "+want+", not "+quote(n.Value), do)
	default:
		d.wrongType(n, f, want, do)
	}
}

func (d *decoder) plainText(n *yaml.Node, v reflect.Value, f field) bool {
	switch {
	case !d.isString(n, f, false):
		return false
	case !f.literal && strings.Contains(n.Value, "${"):
		d.add(at(n), f.key, "holds ${…}, which only secrets may", "write the value itself")
		return false
	case !f.literal && strings.ContainsFunc(n.Value, unicode.IsControl):
		d.add(at(n), f.key, "holds a line break or another control character", "write it on one line")
		return false
	}
	v.SetString(n.Value)
	return true
}

// secret decodes a secret. No message repeats what the file says.
func (d *decoder) secret(n *yaml.Node, v reflect.Value, f field) {
	f.quiet = true
	if !d.isString(n, f, false) {
		return
	}
	r, err := d.env.resolve(n.Value)
	if err != nil {
		what, do := split(err)
		d.add(at(n), f.key, what, do)
		return
	}
	if r.literal && r.value != "" {
		d.source.literals = append(d.source.literals, f.key)
	}
	if r.open {
		d.source.warnings = append(d.source.warnings, d.source.problem(at(n), f.key,
			"everyone on this machine may read the secret's file", "take the right from others: chmod o-r"))
	}
	v.Set(reflect.ValueOf(NewSecret(r.value)))
}
