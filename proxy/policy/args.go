package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"aegis/proxy"
)

// reader reads the values of one call by their place in the request. It reads by the names
// of Gitea's API and never by those of arguments, so a rule sees the same call however the
// client spelled it.
type reader struct {
	op   *operation
	wire *proxy.Wire
	self string // the account that acts, as Gitea spells it; "" unknown
}

// newReader returns a reader, or false when the call cannot be read for certain. A call
// that could be read in two ways is refused before any rule looks at it; a rule that met it
// would have to know which way Gitea takes.
func newReader(c *proxy.Call, op *operation, self string) (*reader, bool) {
	r := &reader{op: op, wire: &c.Wire, self: self}
	return r, r.spelled()
}

// spelled reports whether what a client wrote into query and body itself is only
// what the operation is known to take, in its exact spelling. Servers differ in
// which spellings they take for the same (letters' case, underscores and dashes,
// the first or the last of two), so any other one could be read in two ways.
func (r *reader) spelled() bool {
	for i := range r.wire.Query {
		f := &r.wire.Query[i]
		// Paging is known of every list, and no rule is about it.
		if f.Param == nil && f.Name != "page" && f.Name != "limit" && r.op.tool.Param(proxy.InQuery, f.Name) == nil {
			return false
		}
	}
	for i := range r.wire.Body {
		f := &r.wire.Body[i]
		if f.Param != nil { // of the operation's own tool, which has checked it
			continue
		}
		// Forms and files reach Gitea as members of the body when a client spells the
		// request itself.
		places := []proxy.In{proxy.InBody, proxy.InForm, proxy.InFile}
		takes := func(in proxy.In) bool { return r.op.tool.Param(in, f.Name) != nil }
		if !slices.ContainsFunc(places, takes) || !r.op.spells(f.Value, 0) {
			return false
		}
	}
	return true
}

// spells reports whether no member inside a value is called nearly, but not
// exactly, like one that is judged.
func (op *operation) spells(v any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !op.spells(item, depth+1) })
	case map[string]any:
		for name, member := range v {
			// Members that no rule is about may be called as they like: Gitea ignores
			// what it does not know.
			if exact, judged := op.nested[folded(name)]; judged && exact != name || !op.spells(member, depth+1) {
				return false
			}
		}
	}
	return true
}

// folded is a name in the form in which the most forgiving decoder compares it.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		least := r // of all that fold to the same
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

// maxDepth bounds how deep arguments are looked into.
const maxDepth = 64

// values returns the values at a place such as "body.files[].path". Ok is false when the
// place holds something else. Something else is not skipped: a list with one item of
// another kind may still be read by Gitea for the rest of its items.
func (r *reader) values(place string) (out []any, ok bool) {
	in, rest, _ := strings.Cut(place, ".")
	top, nested, isList := strings.Cut(rest, "[].")
	out = r.top(in, top)
	if !isList {
		return out, true
	}
	var inner []any
	for _, v := range out {
		list, ok := v.([]any)
		if !ok {
			return nil, false
		}
		for _, item := range list {
			object, ok := item.(map[string]any)
			if !ok {
				return nil, false
			}
			if v := object[nested]; v != nil {
				inner = append(inner, v)
			}
		}
	}
	return inner, true
}

// top returns the values of one name in one place. A file is a member of the body
// where the client spelled the request itself.
func (r *reader) top(in, wire string) (out []any) {
	// Form fields, files and whole bodies are all in Body; the field's own place
	// distinguishes them.
	list := r.wire.Body
	switch proxy.In(in) {
	case proxy.InPath:
		list = r.wire.Values
	case proxy.InQuery:
		list = r.wire.Query
	}
	for i := range list {
		f := &list[i]
		// Every value of the name, not the first: a server that takes the last one must
		// be judged too.
		if f.Name == wire && f.Value != nil && (string(f.In) == in || f.Param == nil && in == string(proxy.InFile)) {
			out = append(out, f.Value)
		}
	}
	return out
}

// texts returns the texts at a place. Ok is false when there is something that is
// no text; an empty text counts as absent, as it does for Gitea.
func (r *reader) texts(place string) (out []string, ok bool) {
	if place == placeSelf {
		return []string{r.self}, r.self != ""
	}
	values, ok := r.values(place)
	if !ok {
		return nil, false
	}
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if v != "" {
				out = append(out, v)
			}
		// Where Gitea takes a name or an id, a client may send digits as a number.
		case json.Number:
			out = append(out, v.String())
		case []any: // a key of the query may be repeated
			for _, item := range v {
				text, isText := item.(string)
				if !isText {
					return nil, false
				}
				if text != "" {
					out = append(out, text)
				}
			}
		default:
			return nil, false
		}
	}
	return out, true
}

// fields returns every value of the call.
func (r *reader) fields() (out []*proxy.Field) {
	for _, list := range [][]proxy.Field{r.wire.Values, r.wire.Query, r.wire.Body} {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	return out
}

// pathText returns the text of a path parameter. Numbers and missing values are refused
// alike: no name of an account or repository is one.
func (r *reader) pathText(wire string) (string, bool) {
	f := proxy.Find(r.wire.Values, wire)
	if f == nil {
		return "", false
	}
	text, ok := f.Value.(string)
	return text, ok
}

// first returns the texts of the first place that has any, and that place. The order is
// that in which Gitea looks, so a value further back that Gitea would not read decides
// nothing.
func (r *reader) first(places []string) (texts []string, place string, ok bool) {
	for _, place := range places {
		// What comes behind the default cannot be reached.
		if place == placeDefault {
			return nil, placeDefault, true
		}
		texts, ok := r.texts(place)
		if !ok {
			return nil, place, false
		}
		if len(texts) > 0 {
			return texts, place, true
		}
	}
	return nil, "", true
}
