package envelope

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// outputs checks data against the output schemas of tools. A schema is compiled when it is
// first needed, as most tools are never called, and once. The zero value is ready.
type outputs struct {
	// compiled is of the schema's first byte to func() *jsonschema.Resolved: tools never change,
	// and a schema may have 100 000 bytes, which would be hashed for each call.
	compiled sync.Map
}

// mismatch returns where data breaks schema, in words that hold nothing of data: the place in
// the schema. It is "" when data fits, and where nothing is promised.
func (o *outputs) mismatch(schema json.RawMessage, data []byte) string {
	if len(schema) == 0 || string(schema) == "{}" {
		return ""
	}
	resolve, ok := o.compiled.Load(&schema[0])
	if !ok {
		resolve, _ = o.compiled.LoadOrStore(&schema[0], sync.OnceValue(func() *jsonschema.Resolved {
			return compile(schema)
		}))
	}
	resolved := resolve.(func() *jsonschema.Resolved)()
	if resolved == nil {
		return "the schema cannot be read"
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return "the data cannot be decoded" // such as a number that no float holds
	}
	if err := resolved.Validate(value); err != nil {
		return placeOf(err)
	}
	return ""
}

// compile returns nil for a schema that cannot be read, which a catalog from a file may have.
func compile(schema json.RawMessage) *jsonschema.Resolved {
	s := new(jsonschema.Schema)
	if json.Unmarshal(schema, s) != nil {
		return nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil
	}
	return resolved
}

// placeOf returns the innermost part of the schema that a validation error names. The error's
// own text quotes the data; what it wraps itself in does not.
func placeOf(err error) string {
	at := "root"
	for inner := errors.Unwrap(err); inner != nil; err, inner = inner, errors.Unwrap(inner) {
		at = strings.TrimSuffix(strings.TrimSuffix(err.Error(), inner.Error()), ": ")
	}
	return strings.TrimPrefix(at, "validating ")
}
