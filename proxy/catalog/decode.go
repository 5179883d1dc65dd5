package catalog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"aegis/proxy/internal/jsonscan"
)

// maxArgumentDepth bounds the nesting of a call's arguments. No schema of the catalog goes
// deeper than eight levels; the rest is room for open objects.
const maxArgumentDepth = 100

// maxArgumentValues bounds the values of one call: decoded they take far more
// memory than their text.
const maxArgumentValues = 200_000

// decoder turns a JSON value that [jsonscan.CheckValues] has accepted into string,
// bool, json.Number, nil, []any and map[string]any. It refuses what Go's decoder
// would quietly decide: duplicate keys and escapes that are no character.
type decoder struct{ report *problems }

// value decodes a value; path names it in what is reported.
func (d *decoder) value(path string, raw []byte) any {
	switch jsonscan.Kind(raw) {
	case '"':
		return d.text(path, raw)
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	case '[':
		list := []any{}
		for _, e := range jsonscan.Elements(raw) {
			list = append(list, d.value(path+"["+strconv.Itoa(len(list))+"]", e))
		}
		return list
	case '{':
		object := map[string]any{}
		for name, value := range jsonscan.Members(raw) {
			key := d.text(path, name)
			at := join(path, key)
			// Servers differ in which of the two counts, so a rule could judge one and
			// Gitea take the other.
			if _, twice := object[key]; twice {
				d.report.add(at, "is given twice")
			}
			object[key] = d.value(at, value)
		}
		return object
	}
	// Never float64: ids and hashes of digits must come through unchanged.
	return json.Number(jsonscan.Trim(raw))
}

// text decodes a string. A lone surrogate would become a replacement character:
// something else than the client sent.
func (d *decoder) text(path string, raw []byte) string {
	raw = jsonscan.Trim(raw)
	s := jsonscan.Unquote(raw)
	// The cheap test first: most texts hold no replacement character.
	if strings.ContainsRune(s, utf8.RuneError) && bytes.Contains(raw, []byte(`\u`)) && loneSurrogate(raw) {
		d.report.add(path, "has an escape that is half a character")
	}
	return s
}

// loneSurrogate reports whether a JSON string has a \uD800 to \uDFFF escape
// without its other half.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; i >= len(raw) || raw[i] != 'u' {
			continue
		}
		c, _ := jsonscan.Hex4(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(c) {
			continue
		}
		if !bytes.HasPrefix(raw[i+1:], []byte(`\u`)) {
			return true
		}
		if low, _ := jsonscan.Hex4(raw[i+3:]); utf16.DecodeRune(c, low) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// join appends a member's name to a path. The name is the client's, so it is shown as such.
func join(path, name string) string {
	name = show(name)
	if path == "" {
		return name
	}
	return path + "." + name
}
