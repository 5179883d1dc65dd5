package policy

import (
	"encoding/json"
	"strings"
	"unicode"

	"aegis/proxy"
)

// reader reads the arguments of one call by their place in the request, whether
// the call is of the operation's own tool or of the raw tool.
type reader struct {
	op   *operation
	args proxy.Arguments
	raw  bool
	path map[string]string // of the raw tool: the values in its path
	self string            // the account that acts, as Gitea spells it; "" unknown
}

// newReader returns a reader, or false when the call cannot be read for certain.
func newReader(c *proxy.Call, op *operation, self string) (*reader, bool) {
	r := &reader{op: op, args: c.Args, raw: c.Tool.Path == "", self: self}
	if !r.raw {
		return r, true
	}
	path, _ := c.Args["path"].(string)
	var ok bool
	if r.path, ok = matchPath(op, path); !ok {
		return nil, false
	}
	return r, r.spelled()
}

// matchPath returns the values that the parameters of an operation's path have in
// a path of the raw tool.
func matchPath(op *operation, path string) (map[string]string, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	values := map[string]string{}
	for i, seg := range op.segments {
		if len(parts) == 0 {
			return nil, false
		}
		name, isParam := param(seg)
		switch {
		case isParam && wildcard(op.tool, name):
			n := len(parts) - (len(op.segments) - i - 1)
			if n < 1 {
				return nil, false
			}
			values[name] = strings.Join(parts[:n], "/")
			parts = parts[n:]
			continue
		case isParam:
			values[name] = parts[0]
		case !strings.Contains(seg, "{") && !strings.EqualFold(seg, parts[0]):
			return nil, false
		}
		parts = parts[1:]
	}
	return values, len(parts) == 0
}

func wildcard(t *proxy.Tool, name string) bool {
	for i := range t.Params {
		if p := &t.Params[i]; p.In == proxy.InPath && p.Wire == name {
			return p.Wildcard
		}
	}
	return false
}

// spelled reports whether the raw tool's query and body hold only what the
// operation is known to take, in its exact spelling. Servers differ in which
// spellings they take for the same (letters' case, underscores and dashes, the
// first or the last of two), so any other one could be read in two ways.
func (r *reader) spelled() bool {
	query, _ := r.args["query"].(map[string]any)
	for name := range query {
		if name != "page" && name != "limit" && !r.takes(name, proxy.InQuery) {
			return false
		}
	}
	body, given := r.args["body"]
	if !given || body == nil {
		return true
	}
	object, ok := body.(map[string]any)
	if !ok {
		return false
	}
	for name, member := range object {
		if !r.takes(name, proxy.InBody) && !r.takes(name, proxy.InForm) && !r.takes(name, proxy.InFile) || !r.op.spells(member, 0) {
			return false
		}
	}
	return true
}

// takes reports whether the operation has an argument of exactly this name.
func (r *reader) takes(wire string, in proxy.In) bool {
	for i := range r.op.tool.Params {
		if p := &r.op.tool.Params[i]; p.Wire == wire && p.In == in {
			return true
		}
	}
	return false
}

// spells reports whether no member inside a value is called nearly, but not
// exactly, like one that is judged.
func (op *operation) spells(v any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if !op.spells(item, depth+1) {
				return false
			}
		}
	case map[string]any:
		for name, member := range v {
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

// values returns the values at a place such as "body.files[].path". Ok is false
// when something else stands where the place should be.
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
			inner = append(inner, member(object, nested)...)
		}
	}
	return inner, true
}

// top returns the values of one argument.
func (r *reader) top(in, wire string) (out []any) {
	if r.raw {
		switch in {
		case "path":
			if v, ok := r.path[wire]; ok {
				return []any{v}
			}
		case "query":
			object, _ := r.args["query"].(map[string]any)
			return member(object, wire)
		case "body", "file":
			object, _ := r.args["body"].(map[string]any)
			return member(object, wire)
		}
		return nil
	}
	for i := range r.op.tool.Params {
		p := &r.op.tool.Params[i]
		if p.Wire != wire || string(p.In) != in {
			continue
		}
		if v, given := r.args[p.Name]; given && v != nil {
			out = append(out, v)
		}
	}
	return out
}

// member returns the member of an object, if it has one.
func member(object map[string]any, name string) []any {
	if v := object[name]; v != nil {
		return []any{v}
	}
	return nil
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
		case json.Number:
			out = append(out, v.String())
		case []any: // a query of the raw tool may repeat a key
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

// pathText returns the text of a path parameter.
func (r *reader) pathText(wire string) (string, bool) {
	if r.raw {
		text, ok := r.path[wire]
		return text, ok
	}
	for i := range r.op.tool.Params {
		if p := &r.op.tool.Params[i]; p.In == proxy.InPath && p.Wire == wire {
			text, ok := r.args[p.Name].(string)
			return text, ok
		}
	}
	return "", false
}

// first returns the texts of the first place that has any, and that place.
func (r *reader) first(places []string) (texts []string, place string, ok bool) {
	for _, place := range places {
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
