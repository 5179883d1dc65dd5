package build

import (
	"encoding/json"
	"strings"
)

// document is a description of an API as Gitea serves it at /swagger.v1.json.
type document struct {
	Swagger     string                           `json:"swagger"`
	Info        map[string]string                `json:"info"`
	BasePath    string                           `json:"basePath"`
	Paths       map[string]map[string]*described `json:"paths"`
	Definitions map[string]*describedSchema      `json:"definitions"`
}

// described is an operation of a document.
type described struct {
	ID          string                     `json:"operationId"`
	Summary     string                     `json:"summary,omitempty"`
	Description string                     `json:"description,omitempty"`
	Deprecated  bool                       `json:"deprecated,omitempty"`
	Consumes    []string                   `json:"consumes,omitempty"`
	Produces    []string                   `json:"produces,omitempty"`
	Parameters  []any                      `json:"parameters,omitempty"`
	Responses   map[string]describedAnswer `json:"responses"`
}

// describedAnswer is one answer of an operation; its description is required by the
// format, and the facts have none.
type describedAnswer struct {
	Description string           `json:"description"`
	Schema      *describedSchema `json:"schema,omitempty"`
}

// describedSchema is a [Node] in the words of Swagger 2.0.
type describedSchema struct {
	Ref         string                      `json:"$ref,omitempty"`
	Type        string                      `json:"type,omitempty"`
	Format      string                      `json:"format,omitempty"`
	Enum        []string                    `json:"enum,omitempty"`
	Default     json.RawMessage             `json:"default,omitempty"`
	Minimum     *int64                      `json:"minimum,omitempty"`
	Maximum     *int64                      `json:"maximum,omitempty"`
	MaxLength   int                         `json:"maxLength,omitempty"`
	Items       *describedSchema            `json:"items,omitempty"`
	Properties  map[string]*describedSchema `json:"properties,omitempty"`
	Required    []string                    `json:"required,omitempty"`
	Map         *describedSchema            `json:"additionalProperties,omitempty"`
	Deprecated  bool                        `json:"x-deprecated,omitempty"`
	Nullable    bool                        `json:"x-nullable,omitempty"`
	Description string                      `json:"description,omitempty"`
}

// parameter is a parameter outside of a body. Its schema is part of itself, with
// a flag where a schema has the list of its required properties.
type parameter struct {
	*describedSchema
	Name             string `json:"name"`
	In               string `json:"in"`
	Required         bool   `json:"required,omitempty"`
	CollectionFormat string `json:"collectionFormat,omitempty"`
}

// bodyParameter is a parameter that is the body.
type bodyParameter struct {
	Name     string           `json:"name"`
	In       string           `json:"in"`
	Required bool             `json:"required,omitempty"`
	Schema   *describedSchema `json:"schema"`
}

// Swagger writes the facts as a Swagger 2.0 document in JSON, from which
// [ParseSwagger] makes the same facts again.
func (f *Facts) Swagger() ([]byte, error) {
	doc := document{
		Swagger: "2.0", Info: map[string]string{"title": f.Title, "version": f.Version}, BasePath: f.BasePath,
		Paths: map[string]map[string]*described{}, Definitions: map[string]*describedSchema{},
	}
	for name, n := range f.Definitions {
		doc.Definitions[name] = n.swagger()
	}
	for i := range f.Operations {
		o := &f.Operations[i]
		if doc.Paths[o.Path] == nil {
			doc.Paths[o.Path] = map[string]*described{}
		}
		doc.Paths[o.Path][strings.ToLower(o.Method)] = o.swagger()
	}
	return marshal(doc)
}

// swagger returns the operation as a document has it.
func (o *FactOperation) swagger() *described {
	out := &described{
		ID: o.ID, Summary: o.Summary, Description: o.Description, Deprecated: o.Deprecated,
		Responses: map[string]describedAnswer{"200": {Schema: o.Result.swagger()}},
	}
	if o.Consumes != "" {
		out.Consumes = []string{o.Consumes}
	}
	if o.Produces != "" {
		out.Produces = []string{o.Produces}
	}
	if o.Empty {
		out.Responses = map[string]describedAnswer{"204": {}}
	}
	for i := range o.Params {
		out.Parameters = append(out.Parameters, o.Params[i].swagger())
	}
	return out
}

// swagger returns the parameter as a document has it.
func (p *FactParam) swagger() any {
	if p.In == "body" {
		return bodyParameter{Name: p.Name, In: p.In, Required: p.Required, Schema: p.Schema.swagger()}
	}
	out := parameter{describedSchema: p.Schema.swagger(), Name: p.Name, In: p.In, Required: p.Required}
	if p.Multi {
		out.CollectionFormat = "multi"
	}
	return out
}

// swagger returns the schema as a document has it; nil stays nil.
func (n *Node) swagger() *describedSchema {
	if n == nil {
		return nil
	}
	out := &describedSchema{
		Type: n.Type, Format: n.Format, Enum: n.Enum, Default: n.Default, Minimum: n.Minimum, Maximum: n.Maximum,
		MaxLength: n.MaxLength, Items: n.Items.swagger(), Required: n.Required, Map: n.Map.swagger(),
		Deprecated: n.Deprecated, Nullable: n.Nullable, Description: n.Description,
	}
	if n.Ref != "" {
		out.Ref = "#/definitions/" + n.Ref
	}
	if n.Properties != nil {
		out.Properties = make(map[string]*describedSchema, len(n.Properties))
		for name, p := range n.Properties {
			out.Properties[name] = p.swagger()
		}
	}
	return out
}
