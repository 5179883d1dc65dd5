package fakegitea_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// shape is what a JSON value looks like: the kinds it may have, and the shapes
// inside. The text form is s, n, b, z (null), {key:shape,key?:shape}, [shape].
type shape struct {
	kinds string
	keys  []string
	opt   map[string]bool
	in    map[string]*shape
	item  *shape // nil: nothing is known about the items
}

// shapeParser reads the text form; @1 and so on are defined elsewhere.
type shapeParser struct {
	s    string
	defs map[string]*shape
}

// parse reads one shape.
func (p *shapeParser) parse() *shape {
	out := &shape{}
	for p.s != "" {
		switch c := p.s[0]; c {
		case '@':
			n := 1
			for n < len(p.s) && p.s[n] >= '0' && p.s[n] <= '9' {
				n++
			}
			def := *p.defs[p.s[:n]]
			def.kinds = out.kinds + def.kinds
			out, p.s = &def, p.s[n:]
		case '{':
			out.kinds += "o"
			p.object(out)
		case '[':
			out.kinds += "a"
			p.s = p.s[1:]
			if p.s[0] != ']' {
				out.item = p.parse()
			}
			p.s = p.s[1:]
		case 's', 'n', 'b', 'z':
			out.kinds += string(c)
			p.s = p.s[1:]
		default:
			return out
		}
	}
	return out
}

// object reads the keys of an object.
func (p *shapeParser) object(out *shape) {
	out.in, out.opt = map[string]*shape{}, map[string]bool{}
	p.s = p.s[1:]
	for p.s[0] != '}' {
		key, rest, _ := strings.Cut(p.s, ":")
		p.s = rest
		key, optional := strings.CutSuffix(key, "?")
		out.keys = append(out.keys, key)
		out.opt[key] = optional
		out.in[key] = p.parse()
		p.s = strings.TrimPrefix(p.s, ",")
	}
	p.s = p.s[1:]
}

// unordered are objects that are maps on the server, so that their order says
// nothing.
var unordered = []string{"units_map", "config"}

// check compares a JSON text with the shape and returns the differences.
func (s *shape) check(body []byte) []string {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var out []string
	s.value(dec, "", &out)
	return out
}

// value checks the next value of the decoder; a nil shape accepts anything.
func (s *shape) value(dec *json.Decoder, at string, out *[]string) {
	tok, err := dec.Token()
	if err != nil {
		*out = append(*out, fmt.Sprintf("%s: %v", at, err))
		return
	}
	kind := ""
	switch v := tok.(type) {
	case string:
		kind = "s"
	case json.Number:
		kind = "n"
	case bool:
		kind = "b"
	case nil:
		kind = "z"
	case json.Delim:
		kind = map[json.Delim]string{'{': "o", '[': "a"}[v]
	}
	if s != nil && !strings.Contains(s.kinds, kind) {
		*out = append(*out, fmt.Sprintf("%s: is %q, was recorded as %q", at, kind, s.kinds))
		s = nil
	}
	switch kind {
	case "o":
		s.members(dec, at, out)
	case "a":
		var item *shape
		if s != nil {
			item = s.item
		}
		for dec.More() {
			item.value(dec, at+"[]", out)
		}
		dec.Token()
	}
}

// members checks the members of an object, their presence and order.
func (s *shape) members(dec *json.Decoder, at string, out *[]string) {
	var have []string
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			*out = append(*out, fmt.Sprintf("%s: %v", at, err))
			return
		}
		key := tok.(string)
		have = append(have, key)
		var inner *shape
		if s != nil {
			inner = s.in[key]
			if inner == nil {
				*out = append(*out, fmt.Sprintf("%s.%s: was not recorded", at, key))
			}
		}
		inner.value(dec, at+"."+key, out)
	}
	dec.Token()
	if s == nil {
		return
	}
	want := slices.DeleteFunc(slices.Clone(s.keys), func(k string) bool { return s.opt[k] && !slices.Contains(have, k) })
	for _, k := range want {
		if !slices.Contains(have, k) {
			*out = append(*out, fmt.Sprintf("%s.%s: is missing", at, k))
		}
	}
	name := at[strings.LastIndexByte(at, '.')+1:]
	if len(have) == len(want) && !slices.Equal(have, want) && !slices.Contains(unordered, name) {
		*out = append(*out, fmt.Sprintf("%s: keys are in another order: %v, recorded %v", at, have, want))
	}
}
