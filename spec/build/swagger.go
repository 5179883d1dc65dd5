package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Bounds of a foreign description.
const (
	// MaxSwaggerBytes is the size of the largest description that is read.
	MaxSwaggerBytes = 32 << 20
	// The bounds are far beyond any real description; what is beyond them is an attack
	// on memory or a broken file.
	maxDepth      = 100  // nesting of the document
	maxNodeDepth  = 24   // nesting of one schema without references
	maxProse      = 2000 // runes of a summary or description that are kept
	maxOperations = 5000
)

// swagger is the part of a Swagger 2.0 document that is looked at. Schemas stay raw:
// descriptions in the wild disagree about their members' types. Members that no tool is
// made of are not named here and are skipped.
type swagger struct {
	Swagger  string `json:"swagger"`
	BasePath string `json:"basePath"`
	Info     struct {
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"info"`
	Consumes    []string                              `json:"consumes,omitempty"`
	Produces    []string                              `json:"produces,omitempty"`
	Paths       map[string]map[string]json.RawMessage `json:"paths"`
	Definitions map[string]json.RawMessage            `json:"definitions"`
	Responses   map[string]json.RawMessage            `json:"responses"`
	Parameters  map[string]json.RawMessage            `json:"parameters,omitempty"`
}

// swaggerOperation is an operation of a document.
type swaggerOperation struct {
	ID          string                     `json:"operationId"`
	Summary     string                     `json:"summary,omitempty"`
	Description string                     `json:"description,omitempty"`
	Deprecated  bool                       `json:"deprecated,omitempty"`
	Consumes    []string                   `json:"consumes,omitempty"`
	Produces    []string                   `json:"produces,omitempty"`
	Parameters  []json.RawMessage          `json:"parameters,omitempty"`
	Responses   map[string]json.RawMessage `json:"responses"`
}

// swaggerParam is a parameter. One that is no body has its schema among its own
// members.
type swaggerParam struct {
	Ref              string          `json:"$ref,omitempty"`
	Name             string          `json:"name"`
	In               string          `json:"in"`
	Required         bool            `json:"required,omitempty"`
	CollectionFormat string          `json:"collectionFormat,omitempty"`
	Schema           json.RawMessage `json:"schema,omitempty"`
}

// swaggerResponse is an answer of an operation.
type swaggerResponse struct {
	Ref string `json:"$ref,omitempty"`
	// Description is required by the format; the facts have none.
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// reader turns one document into facts and notes what it drops.
type reader struct {
	doc    swagger
	report *Report
	prose  bool // summaries and descriptions are kept
}

// words returns the document's own text where it is kept.
func (r *reader) words(text string) string {
	if !r.prose {
		return ""
	}
	return clean(text, maxProse)
}

// ParseSwagger reduces a Swagger 2.0 document to facts. With prose, the document's
// summaries and descriptions are kept, bounded and cleaned. The document comes from
// whatever answered at some address, so it is bounded in size, depth and number of
// operations before anything is made of it.
func ParseSwagger(data []byte, prose bool) (*Facts, *Report, error) {
	if len(data) > MaxSwaggerBytes {
		return nil, nil, fmt.Errorf("the API description has %d bytes; at most %d are read", len(data), MaxSwaggerBytes)
	}
	if err := checkDepth(data, maxDepth); err != nil {
		return nil, nil, err
	}
	r := reader{report: new(Report), prose: prose}
	if err := json.Unmarshal(data, &r.doc); err != nil {
		return nil, nil, fmt.Errorf("the API description is not a Swagger 2.0 document in JSON: %w", err)
	}
	if r.doc.Swagger != "2.0" {
		return nil, nil, errors.New("the API description is not Swagger 2.0; Gitea serves its own at /swagger.v1.json")
	}
	f := &Facts{
		Title: clean(r.doc.Info.Title, 100), Version: clean(r.doc.Info.Version, 100),
		BasePath:    clean(r.doc.BasePath, 100),
		Definitions: map[string]*Node{},
	}
	for _, name := range sortedKeys(r.doc.Definitions) {
		f.Definitions[name] = r.node(r.doc.Definitions[name], 0)
	}
	for _, path := range sortedKeys(r.doc.Paths) {
		if err := r.path(f, path); err != nil {
			return nil, nil, err
		}
	}
	if len(f.Operations) == 0 {
		return nil, nil, ErrNoOperations
	}
	return f, r.report, nil
}

// path adds the operations of one path, in the order of their methods. What cannot be read
// costs its operation alone; only too many operations end the whole, as they are no API any
// more.
func (r *reader) path(f *Facts, path string) error {
	item := r.doc.Paths[path]
	var shared []json.RawMessage
	if raw, ok := item["parameters"]; ok && json.Unmarshal(raw, &shared) != nil {
		r.report.left("", path, "its parameters cannot be read")
		return nil
	}
	for _, method := range sortedKeys(item) {
		upper := strings.ToUpper(method)
		// "parameters", "x-…" and methods that no tool is made of.
		if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, upper) {
			continue
		}
		if len(f.Operations) >= maxOperations {
			return fmt.Errorf("the API description has more than %d operations", maxOperations)
		}
		var o swaggerOperation
		if err := json.Unmarshal(item[method], &o); err != nil {
			r.report.left(upper, path, "it cannot be read")
			continue
		}
		o.Parameters = append(slices.Clone(shared), o.Parameters...)
		if op, ok := r.operation(upper, path, &o); ok {
			f.Operations = append(f.Operations, op)
		}
	}
	return nil
}

// operation reads one operation; false when it could not be called as it is described. The
// media type is decided by what the parameters need and not by the list of the document:
// Gitea lists types that single routes do not take.
func (r *reader) operation(method, path string, o *swaggerOperation) (FactOperation, bool) {
	op := FactOperation{
		ID: clean(o.ID, 100), Method: method, Path: path, Deprecated: o.Deprecated,
		Summary: r.words(o.Summary), Description: r.words(o.Description),
	}
	for _, raw := range o.Parameters {
		p, ok := r.param(raw)
		if !ok {
			r.report.left(method, path, "a parameter cannot be read")
			return op, false
		}
		// Aegis sends no header of a client's, so a tool must not seem to take one.
		if p.In == "header" {
			r.report.note(method, path, "the header parameter "+quote(clean(p.Name, 60))+" is left out")
			continue
		}
		// A later parameter of the same name and place replaces the path's.
		op.Params = slices.DeleteFunc(op.Params, func(q FactParam) bool { return q.Name == p.Name && q.In == p.In })
		op.Params = append(op.Params, p)
	}
	if len(o.Consumes) == 0 {
		o.Consumes = r.doc.Consumes
	}
	in := func(place string) bool {
		return slices.ContainsFunc(op.Params, func(p FactParam) bool { return p.In == place })
	}
	switch { // form data for file uploads, then JSON, then whatever comes first
	case in("formData"):
		op.Consumes = "multipart/form-data"
	case in("body") && slices.Contains(o.Consumes, "application/json"):
		op.Consumes = "application/json"
	case in("body"):
		op.Consumes = mediaType(o.Consumes)
	}
	r.results(&op, o)
	return op, true
}

// results picks the success that says most: the lowest 2xx code with a schema. Error codes
// are of no interest: all of them become the errors of proxy/gitea.
func (r *reader) results(op *FactOperation, o *swaggerOperation) {
	op.Empty = true
	for _, code := range sortedKeys(o.Responses) {
		if len(code) != 3 || code[0] != '2' {
			continue
		}
		var resp swaggerResponse
		if json.Unmarshal(o.Responses[code], &resp) != nil {
			continue
		}
		if resp.Ref != "" && json.Unmarshal(r.doc.Responses[refName(resp.Ref)], &resp) != nil {
			continue
		}
		if len(resp.Schema) != 0 {
			op.Result, op.Empty = r.node(resp.Schema, 0), false
			break
		}
	}
	if !op.Empty {
		if len(o.Produces) == 0 {
			o.Produces = r.doc.Produces
		}
		op.Produces = mediaType(o.Produces)
	}
}

// param reads a parameter, or the shared one that it refers to. A reference that leads
// nowhere counts as unreadable, for the same reason.
func (r *reader) param(raw json.RawMessage) (FactParam, bool) {
	var p swaggerParam
	if json.Unmarshal(raw, &p) != nil {
		return FactParam{}, false
	}
	if p.Ref != "" {
		raw = r.doc.Parameters[refName(p.Ref)]
		if json.Unmarshal(raw, &p) != nil {
			return FactParam{}, false
		}
	}
	// An operation with a parameter that is not understood may do something else
	// without it, so it is no tool.
	if p.Name == "" || !slices.Contains([]string{"path", "query", "body", "formData", "header"}, p.In) {
		return FactParam{}, false
	}
	out := FactParam{Name: p.Name, In: p.In, Required: p.Required, Multi: p.CollectionFormat == "multi"}
	if p.In == "body" {
		out.Schema = r.node(p.Schema, 0)
	} else {
		out.Schema = r.node(raw, 0)
		out.Schema.Required = nil // a parameter's "required" is a boolean and no list
	}
	return out, true
}

// mediaType returns the first of the types that is one, JSON without.
func mediaType(types []string) string {
	for _, t := range types {
		t, _, _ = strings.Cut(t, ";")
		if t = strings.TrimSpace(strings.ToLower(t)); t != "" && len(t) < 100 && !strings.ContainsAny(t, "\r\n\" ") {
			return t
		}
	}
	return "application/json"
}

// refName returns the last part of a JSON pointer.
func refName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// checkDepth refuses documents nested deeper than limit before any decoder follows them,
// and those that are no JSON. encoding/json has a bound of its own, but of ten thousand
// levels, and readers here recurse with larger frames.
func checkDepth(data []byte, limit int) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	// A number beyond float64 is no reason to refuse the document.
	dec.UseNumber()
	depth := 0
	for {
		t, err := dec.Token()
		if err != nil {
			if errors.Is(err, io.EOF) && depth == 0 {
				return nil
			}
			return fmt.Errorf("the API description is no JSON document: %w", err)
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > limit {
				return fmt.Errorf("the API description is nested deeper than %d", limit)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}
