package build

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Results in words of their own.
var namedOutputs = map[string]string{
	"any":                `{}`,
	"object":             `{"type":"object"}`,
	"text":               `{"type":"string"}`,
	"binary":             `{"type":"object","properties":{"content_base64":{"type":"string"},"content_type":{"type":"string"},"size":{"type":"integer"}}}`,
	"registration_token": `{"type":"object","properties":{"token":{"type":"string"}},"required":["token"]}`,
}

// result returns the schema of an operation's data; nil without a body.
func (b *builder) result(op *FactOperation, c *correction) json.RawMessage {
	switch {
	case c.Output == "none":
		return nil
	case namedOutputs[c.Output] != "":
		return json.RawMessage(namedOutputs[c.Output])
	case op.Result == nil:
		return nil
	}
	n := op.Result
	if n.Type == "file" {
		return json.RawMessage(namedOutputs["any"])
	}
	var buf bytes.Buffer
	switch {
	case c.Output == "one_or_many":
		buf.WriteString(`{"anyOf":[`)
		b.writeOutput(&buf, n, "", 0)
		buf.WriteString(`,{"type":"array","items":`)
		b.writeOutput(&buf, n, "", 1)
		buf.WriteString(`}]}`)
	case c.Output == "with_nulls" && n.Items != nil:
		buf.WriteString(`{"type":["array","null"],"items":{"anyOf":[`)
		b.writeOutput(&buf, n.Items, "", 1)
		buf.WriteString(`,{"type":"null"}]}}`)
	default:
		b.writeOutput(&buf, n, "", 0)
	}
	return buf.Bytes()
}

// definition returns the output schema of one definition.
func (b *builder) definition(name string) json.RawMessage {
	var buf bytes.Buffer
	b.writeOutput(&buf, b.facts.Definitions[name], name, 0)
	return buf.Bytes()
}

// writeOutput writes the schema of results. Gitea's answers leave out members
// and add new ones, so nothing is required and everything may have more. Lists,
// objects and times may be null: Go's nil slices, maps and pointers are.
func (b *builder) writeOutput(buf *bytes.Buffer, n *Node, def string, depth int) {
	w := objectWriter{b: buf}
	if n.Ref != "" && depth < maxNodeDepth {
		b.writeRef(buf, n.Ref)
		return
	}
	w.open()
	defer w.close()
	typ := n.Type
	if typ == "" && n.Properties != nil {
		typ = "object"
	}
	if typ == "" || typ == "file" || depth >= maxNodeDepth {
		return // any value
	}
	if nullable(n, typ, depth) {
		w.key("type")
		buf.WriteString(`[` + quote(typ) + `,"null"]`)
	} else {
		w.text("type", typ)
	}
	if typ == "array" && n.Items != nil {
		w.key("items")
		b.writeOutput(buf, n.Items, "", depth+1)
	}
	b.writeMembers(&w, n, def, depth)
}

func (b *builder) writeMembers(w *objectWriter, n *Node, def string, depth int) {
	if len(n.Properties) != 0 {
		w.key("properties")
		props := objectWriter{b: w.b}
		props.open()
		for _, name := range sortedKeys(n.Properties) {
			props.key(name)
			p := *n.Properties[name]
			if slices.Contains(b.in.corrections.Nullable[def], name) {
				p.Nullable = true
			}
			b.writeOutput(w.b, &p, "", depth+1)
		}
		props.close()
	}
	if n.Map != nil && (n.Map.Type != "" || n.Map.Ref != "") {
		w.key("additionalProperties")
		b.writeOutput(w.b, n.Map, "", depth+1)
	}
}

// writeRef writes a reference; a definition that is not an object is inlined
// once, because only objects are worth sharing.
func (b *builder) writeRef(buf *bytes.Buffer, name string) {
	if b.facts.Definitions[name] == nil || argName(name) != name {
		buf.WriteString("{}")
		return
	}
	b.used[name] = true
	buf.WriteString(`{"$ref":` + quote(name) + `}`)
}

func nullable(n *Node, typ string, depth int) bool {
	if n.Nullable {
		return true
	}
	return typ == "array" || typ == "object" || n.Format == "date-time" || n.Format == "date"
}

// definitions writes every definition that the results reach.
func (b *builder) definitions() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for {
		todo := 0
		for _, name := range sortedKeys(b.used) {
			if _, done := out[name]; !done {
				out[name] = b.definition(name)
				todo++
			}
		}
		if todo == 0 {
			return out
		}
	}
}
