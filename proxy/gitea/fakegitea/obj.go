package fakegitea

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// obj is a JSON object: keys and values in turn, in the order in which the server
// writes them. Views are written in it instead of in types of their own, which
// would say every field twice.
type obj []any

// nothing is the value of a key that is left out.
type nothing struct{}

// omitted leaves a key out.
var omitted = nothing{}

// opt is v, or omitted when it is the zero value of its type.
func opt[T any](v T) any {
	if reflect.ValueOf(&v).Elem().IsZero() {
		return omitted
	}
	return v
}

// set changes the value of a key that the object has; another key is ignored. Views
// fill in a key first as null or omitted, which fixes its place in the order.
func (o obj) set(key string, v any) {
	for i := 0; i < len(o); i += 2 {
		if o[i] == key {
			o[i+1] = v
			return
		}
	}
}

// MarshalJSON implements json.Marshaler.
func (o obj) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := o.write(&b)
	return b.Bytes(), err
}

// write writes the object; nil is null.
func (o obj) write(b *bytes.Buffer) error {
	if o == nil {
		b.WriteString("null")
		return nil
	}
	between := byte('{')
	for i := 0; i < len(o); i += 2 {
		if o[i+1] == omitted {
			continue
		}
		b.WriteByte(between)
		between = ','
		if err := writeJSON(b, o[i]); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := writeJSON(b, o[i+1]); err != nil {
			return err
		}
	}
	if between == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return nil
}

// writeJSON writes a value. Objects and lists of them go straight into the buffer:
// the encoder would look at what they wrote again at every level. HTML characters
// stay as they are.
func writeJSON(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case obj:
		return v.write(b)
	case []obj:
		if v == nil {
			break
		}
		b.WriteByte('[')
		for i, o := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := o.write(b); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline that the encoder ends with
	return nil
}
