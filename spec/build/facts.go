package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"aegis/spec"
)

// Facts are what an API description says, reduced to what tools need.
type Facts struct {
	// Title and Version are the description's own; BasePath is /api/v1 for Gitea.
	Title    string
	Version  string
	BasePath string
	// Operations are sorted by path, then method.
	Operations []FactOperation
	// Definitions are the named schemas.
	Definitions map[string]*Node
}

// FactOperation is one operation of a description. Its fields are plain values without
// references to other operations, so that corrections of one cannot change another.
type FactOperation struct {
	ID     string
	Method string
	Path   string
	// Summary and Description are the description's own prose; the pinned facts
	// have none.
	Summary     string
	Description string
	Params      []FactParam
	Consumes    string
	Produces    string
	Deprecated  bool
	// Result is the schema of the first successful answer with one.
	Result *Node
	// Empty says that the first successful answer has no schema.
	Empty bool
}

// FactParam is one parameter of a description.
type FactParam struct {
	Name     string
	In       string
	Required bool
	// Multi is collectionFormat multi.
	Multi  bool
	Schema *Node
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

// DecodeFacts reads what [Facts.Swagger] wrote.
func DecodeFacts(data []byte) (*Facts, error) {
	f, _, err := ParseSwagger(data, false)
	return f, err
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
// Written by hand, as encoding/json has no layout between one line for all and one line for
// each value.
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
