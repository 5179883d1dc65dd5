package fakegitea

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
)

// obj is a JSON object: keys and values in turn, in the order in which the server
// writes them. Views are written in it instead of in types of their own, which
// would say every field twice.
// The order counts where a test compares a whole answer with a recorded one.
type obj []any

// nothing is the value of a key that is left out.
type nothing struct{}

// omitted leaves a key out.
var omitted = nothing{}

// opt is v, or omitted when it is the zero value of its type.
// It stands for omitempty in the server's types.
func opt[T any](v T) any {
	if reflect.ValueOf(&v).Elem().IsZero() {
		return omitted
	}
	return v
}

// set changes the value of a key that the object has; another key is ignored. Views
// fill in a key first as null or omitted, which fixes its place in the order.
// It is a linear search: no view has more than some seventy keys.
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
	var w jsonWriter
	w.value(o)
	return w.Bytes(), w.err
}

// jsonWriter writes JSON and keeps the first error.
type jsonWriter struct {
	bytes.Buffer
	err error
}

// value writes a value. Objects and lists of them go straight into the buffer: the
// encoder would look at what they wrote again at every level. HTML characters stay as
// they are.
// A nil object is null; a nil list of objects goes to the encoder, which writes null too. Lists
// that the server never leaves nil are made with filter or mapped.
func (w *jsonWriter) value(v any) {
	between := ""
	o, isObj := v.(obj)
	list, isList := v.([]obj)
	switch {
	case isObj && o == nil:
		w.WriteString("null")
	case isObj:
		w.WriteByte('{')
		for i := 0; i < len(o); i += 2 {
			// Values are often slices, which cannot be compared; Go compares the types first,
			// and no other value has this one.
			if o[i+1] == omitted {
				continue
			}
			w.WriteString(between)
			between = ","
			w.value(o[i])
			w.WriteByte(':')
			w.value(o[i+1])
		}
		w.WriteByte('}')
	case isList && list != nil:
		w.WriteByte('[')
		for _, o := range list {
			w.WriteString(between)
			between = ","
			w.value(o)
		}
		w.WriteByte(']')
	default:
		enc := json.NewEncoder(&w.Buffer)
		enc.SetEscapeHTML(false)
		w.err = cmp.Or(w.err, enc.Encode(v))
		w.Truncate(max(w.Len()-1, 0)) // the newline that the encoder ends with
	}
}
