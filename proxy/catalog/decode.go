package catalog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"aegis/proxy/internal/jsonscan"
)

// maxArgumentDepth bounds the nesting of a call's arguments.
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
	s := unquote(raw)
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
		i++
		if i+4 >= len(raw) || raw[i] != 'u' {
			continue
		}
		switch c, _ := jsonscan.Hex4(raw[i+1:]); {
		case c >= 0xDC00 && c <= 0xDFFF:
			return true
		case c >= 0xD800 && c <= 0xDBFF:
			if i+10 >= len(raw) || raw[i+5] != '\\' || raw[i+6] != 'u' {
				return true
			}
			if low, _ := jsonscan.Hex4(raw[i+7:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 10
		default:
			i += 4
		}
	}
	return false
}

// join appends a member's name to a path.
func join(path, name string) string {
	name = show(name)
	if path == "" {
		return name
	}
	return path + "." + name
}
