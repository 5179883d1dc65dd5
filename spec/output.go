package spec

import (
	"bytes"
	"encoding/json"
)

// maxOutputDepth is how many references deep an output schema is spelled out;
// what lies deeper is any value.
const maxOutputDepth = 3

// maxOutputBytes bounds one expanded schema: beyond it the parts are any value.
const maxOutputBytes = 128 << 10

// Expander spells out output schemas. It remembers what it has expanded and is
// not safe for concurrent use.
type Expander struct {
	c    *Catalog
	memo map[expanded]json.RawMessage
}

// expanded is what the result of an expansion depends on.
type expanded struct {
	text  string
	depth int
}

// NewExpander returns an expander of c's output schemas.
func NewExpander(c *Catalog) *Expander {
	return &Expander{c: c, memo: map[expanded]json.RawMessage{}}
}

// Output returns the JSON Schema of the data that o returns, free of references
// so that it can stand inside another schema; nil when o has no result.
func (e *Expander) Output(o *Operation) json.RawMessage {
	if len(o.Output) == 0 { // nothing but a status comes back
		return json.RawMessage(`{"type":"null"}`)
	}
	return e.expand(o.Output, 0)
}

// refStart begins every reference; see plainRefs.
var refStart = []byte(`{"$ref":"`)

// expand replaces each {"$ref":"Name"} in raw. The generator writes references
// exactly so, and in any other place JSON would escape the quotes, so a plain
// search finds them all.
func (e *Expander) expand(raw json.RawMessage, depth int) json.RawMessage {
	if !bytes.Contains(raw, refStart) {
		return raw
	}
	key := expanded{string(raw), depth}
	if got, ok := e.memo[key]; ok {
		return got
	}
	var out []byte
	for rest := []byte(raw); ; {
		i := bytes.Index(rest, refStart)
		if i < 0 {
			out = append(out, rest...)
			break
		}
		out = append(out, rest[:i]...)
		rest = rest[i+len(refStart):]
		end := bytes.Index(rest, []byte(`"}`))
		if end < 0 {
			return json.RawMessage("{}") // not a reference of ours: any value
		}
		def, ok := e.c.Definitions[string(rest[:end])]
		if ok && depth < maxOutputDepth && len(out) < maxOutputBytes {
			out = append(out, e.expand(def, depth+1)...)
		} else {
			out = append(out, "{}"...)
		}
		rest = rest[end+2:]
	}
	e.memo[key] = out
	return out
}
