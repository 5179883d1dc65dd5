package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Swagger writes the facts as a Swagger 2.0 document in JSON, as Gitea serves it at
// /swagger.v1.json. [ParseSwagger] makes the same facts of it again. Each path and each
// definition has a line, so that a new version of the pinned facts is a readable difference.
func (f *Facts) Swagger() ([]byte, error) {
	paths := map[string]map[string]*swaggerOperation{}
	for i := range f.Operations {
		o := &f.Operations[i]
		if paths[o.Path] == nil {
			paths[o.Path] = map[string]*swaggerOperation{}
		}
		paths[o.Path][strings.ToLower(o.Method)] = o.swagger()
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"swagger\": \"2.0\", \"info\": {\"title\": %s, \"version\": %s}, \"basePath\": %s,\n",
		quote(f.Title), quote(f.Version), quote(f.BasePath))
	if err := writeMap(&b, "paths", paths); err != nil {
		return nil, err
	}
	b.WriteString(",\n")
	err := writeMap(&b, "definitions", f.Definitions)
	b.WriteString("}\n")
	return b.Bytes(), err
}

// raw returns a part of the facts as JSON. These are plain values, which always encode.
func raw(v any) json.RawMessage {
	text, _ := marshal(v)
	return text
}

// swagger returns the operation as a document has it. Of all answers only the one that
// results read is left, under the code that such an answer usually has: facts do not keep
// the code.
func (o *FactOperation) swagger() *swaggerOperation {
	out := &swaggerOperation{
		ID: o.ID, Summary: o.Summary, Description: o.Description, Deprecated: o.Deprecated,
		Responses: map[string]json.RawMessage{},
	}
	if o.Consumes != "" {
		out.Consumes = []string{o.Consumes}
	}
	if o.Produces != "" {
		out.Produces = []string{o.Produces}
	}
	if o.Empty {
		out.Responses["204"] = raw(swaggerResponse{})
	} else {
		out.Responses["200"] = raw(swaggerResponse{Schema: raw(o.Result)})
	}
	for i := range o.Params {
		out.Parameters = append(out.Parameters, o.Params[i].swagger())
	}
	return out
}

// swagger returns the parameter as a document has it. A body has a schema; any other
// parameter is one, with a flag where a schema has the list of its required properties.
func (p *FactParam) swagger() json.RawMessage {
	out := swaggerParam{Name: p.Name, In: p.In, Required: p.Required}
	if p.In == "body" {
		out.Schema = raw(p.Schema)
		return raw(out)
	}
	if p.Multi {
		out.CollectionFormat = "multi"
	}
	return raw(struct {
		*Node
		Required bool `json:"required,omitempty"` // hides those of the two others
		swaggerParam
	}{p.Schema, p.Required, out})
}
