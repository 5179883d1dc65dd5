package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"aegis/spec"
)

// Facts are what an API description says, reduced to what tools need.
type Facts struct {
	// Title and Version are the description's own; BasePath is /api/v1 for Gitea.
	Title    string `json:"title"`
	Version  string `json:"version"`
	BasePath string `json:"base_path"`
	// Operations are sorted by path, then method.
	Operations []FactOperation `json:"operations"`
	// Definitions are the named schemas.
	Definitions map[string]*Node `json:"definitions"`
}

// FactOperation is one operation of a description.
type FactOperation struct {
	ID     string `json:"id"`
	Method string `json:"method"`
	Path   string `json:"path"`
	// Summary and Description are the description's own prose; the pinned facts
	// have none.
	Summary     string      `json:"summary,omitempty"`
	Description string      `json:"description,omitempty"`
	Params      []FactParam `json:"params,omitempty"`
	Consumes    string      `json:"consumes,omitempty"`
	Produces    string      `json:"produces,omitempty"`
	Deprecated  bool        `json:"deprecated,omitempty"`
	// Result is the schema of the first successful answer with one.
	Result *Node `json:"result,omitempty"`
	// Empty says that the first successful answer has no schema.
	Empty bool `json:"empty,omitempty"`
}

// FactParam is one parameter of a description.
type FactParam struct {
	Name     string `json:"name"`
	In       string `json:"in"`
	Required bool   `json:"required,omitempty"`
	// Multi is collectionFormat multi.
	Multi  bool  `json:"multi,omitempty"`
	Schema *Node `json:"schema"`
}

// Node is a schema in the form that facts keep: what a tool needs of Swagger 2.0, in
// its words, so that the pinned facts need no form of their own and
// [Facts.Swagger] can write them as they are.
type Node struct {
	// Ref is a pointer to a definition; everything else is then empty but
	// Description. See refName.
	Ref         string           `json:"$ref,omitempty"`
	Type        string           `json:"type,omitempty"`
	Format      string           `json:"format,omitempty"`
	Enum        []string         `json:"enum,omitempty"`
	Default     json.RawMessage  `json:"default,omitempty"`
	Minimum     *int64           `json:"minimum,omitempty"`
	Maximum     *int64           `json:"maximum,omitempty"`
	MaxLength   int              `json:"maxLength,omitempty"`
	Items       *Node            `json:"items,omitempty"`
	Properties  map[string]*Node `json:"properties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Map         *Node            `json:"additionalProperties,omitempty"`
	Deprecated  bool             `json:"x-deprecated,omitempty"`
	Nullable    bool             `json:"x-nullable,omitempty"`
	Description string           `json:"description,omitempty"`
}

// DecodeFacts reads what [Facts.Encode] wrote.
func DecodeFacts(data []byte) (*Facts, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	// The file is ours, so an unknown key is a mistake and no newer version.
	dec.DisallowUnknownFields()
	f := new(Facts)
	if err := dec.Decode(f); err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	if len(f.Operations) == 0 {
		return nil, errors.New("facts: no operations")
	}
	return f, nil
}

// Encode writes the facts with one operation and one definition a line, so that
// a new version shows as a readable difference.
func (f *Facts) Encode() ([]byte, error) {
	var b bytes.Buffer
	head, err := json.Marshal(map[string]string{"title": f.Title, "version": f.Version, "base_path": f.BasePath})
	if err != nil {
		return nil, err
	}
	b.Write(bytes.TrimSuffix(head, []byte("}")))
	b.WriteString(",\n\"operations\": [\n")
	if err := writeList(&b, f.Operations); err != nil {
		return nil, err
	}
	b.WriteString("],\n")
	if err := writeMap(&b, "definitions", f.Definitions); err != nil {
		return nil, err
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// Encode writes a catalog with one operation, definition and shared argument a
// line. The same catalog gives the same bytes.
func Encode(cat *spec.Catalog) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"version\": %s, \"source\": %s, \"gitea_version\": %s,\n",
		quote(cat.Version), quote(cat.Source), quote(cat.GiteaVersion))
	if err := writeMap(&b, "arguments", cat.Arguments); err != nil {
		return nil, err
	}
	b.WriteString(",\n")
	if err := writeMap(&b, "definitions", cat.Definitions); err != nil {
		return nil, err
	}
	b.WriteString(",\n\"operations\": [\n")
	if err := writeList(&b, cat.Operations); err != nil {
		return nil, err
	}
	b.WriteString("]}\n")
	return b.Bytes(), nil
}

// writeList writes the items of a list, one a line.
func writeList[T any](b *bytes.Buffer, list []T) error {
	for i := range list {
		if err := writeLine(b, "", &list[i], i == len(list)-1); err != nil {
			return err
		}
	}
	return nil
}

// writeMap writes a member that holds an object, in sorted order and one member a line.
func writeMap[V any](b *bytes.Buffer, name string, m map[string]V) error {
	fmt.Fprintf(b, "%s: {\n", quote(name))
	keys := sortedKeys(m)
	for i, k := range keys {
		if err := writeLine(b, k, m[k], i == len(keys)-1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// writeLine writes value, with a member name unless key is empty, as one line.
func writeLine(b *bytes.Buffer, key string, value any, last bool) error {
	text, err := marshal(value)
	if err != nil {
		return err
	}
	if key != "" {
		fmt.Fprintf(b, "%s: ", quote(key))
	}
	b.Write(text)
	if !last {
		b.WriteByte(',')
	}
	b.WriteByte('\n')
	return nil
}

// marshal is json.Marshal without the escapes for HTML, which would only cost
// tokens and legibility.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// quote returns s as a JSON string.
func quote(s string) string { return string(raw(s)) }

// sortedKeys returns the names of a map in an order that does not depend on the run:
// the same inputs must give the same bytes.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
