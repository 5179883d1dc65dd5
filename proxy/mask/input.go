package mask

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"aegis/proxy"
)

// inputDepth bounds the nesting of arguments that are followed; the schema of
// every tool is flatter.
const inputDepth = 64

// arguments masks the values of a writing call as masking.input says: the strings
// at any depth but in the fields that are meant for secrets. Base64 contents are
// masked decoded. Of the call only Wire changes, by copies. In block mode a match is
// a [*BlockedError].
func (p *inputPass) arguments(c *proxy.Call) error {
	for _, list := range []*[]proxy.Field{&c.Wire.Values, &c.Wire.Query, &c.Wire.Body} {
		masked, err := p.fields(*list)
		if err != nil {
			return err
		}
		*list = masked
	}
	if c.Op != nil {
		// The path that is sent, recorded and shown is always that of the masked values.
		c.Wire.Path = c.Op.Fill(c.Wire.Values)
	}
	// A client that writes a path itself can spread a secret over several of its parts.
	path, err := p.text("path", c.Wire.Path, "path")
	switch {
	case err != nil:
		return err
	// Only such a path is sent as it is written; others are filled in from the values.
	case c.Op == nil:
		c.Wire.Path = path
	case path != c.Wire.Path:
		p.where = "path"
		return errSpread
	}
	return nil
}

var errSpread = errors.New("withheld: a secret is in several parts of it at once")

// inputPass goes through the arguments of one call.
type inputPass struct {
	e    *Engine
	ctx  context.Context
	r    *Redactor
	hits Hits
	// where names the argument that an error is about.
	where string
	// writesSecret says that the data of the call is the value of a secret.
	writesSecret bool
}

// fields returns a copy of list with its values masked.
func (p *inputPass) fields(list []proxy.Field) (out []proxy.Field, err error) {
	out = slices.Clone(list)
	for i := range out {
		f := &out[i]
		where := "" // as typed tools have their arguments, and where secrets are written
		if f.Param == nil && f.In != proxy.InBody {
			where = string(f.In)
		}
		if p.exempt(f.Argument(), where) {
			continue
		}
		if f.Value, err = p.value(f.Argument(), f.Value, given(f), 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// given is where the caller gave a value.
func given(f *proxy.Field) string {
	if f.Param == nil && f.In != proxy.InPath {
		return string(f.In) + "." + f.Name
	}
	return f.Argument()
}

// exempt reports whether the member k of the object at path is meant for a
// secret.
func (p *inputPass) exempt(k, path string) bool {
	k = foldKey(k)
	return secretFields[k] || k == "data" && p.writesSecret && (path == "" || foldKey(path) == "body")
}

// value returns what to send instead of v: the same, or a copy in which strings are masked.
// Elements of a list have the list's name. Numbers, booleans and null hold no secret that is
// more than a guess.
func (p *inputPass) value(name string, v any, path string, depth int) (_ any, err error) {
	switch v.(type) {
	case map[string]any, []any:
		if depth >= inputDepth {
			p.where = path
			return nil, ErrDepth
		}
	}
	switch v := v.(type) {
	case string:
		return p.text(name, v, path)
	case map[string]any:
		out := maps.Clone(v) // what the caller gave stays as it is: the audit log has it, too
		for k := range v {
			if p.exempt(k, path) {
				continue
			}
			at := k
			if path != "" { // only then: a name may begin with a dot
				at = path + "." + k
			}
			if out[k], err = p.value(k, v[k], at, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := slices.Clone(v)
		for i := range v {
			if out[i], err = p.value(name, v[i], path+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// fileFields are the arguments that hold files in base64.
var fileFields = set("content", "content_base64", "attachment", "image", "sidebar", "footer")

// leastEncoded is how long a string must be to be tried as base64 whatever its
// name is.
const leastEncoded = 16

// text masks one string. It may be base64 of the text that is meant; whether that
// is UTF-8 does not matter.
func (p *inputPass) text(name, v, path string) (string, error) {
	if file := fileFields[foldKey(name)]; file || len(v) >= leastEncoded {
		if plain, ok := decodeContent(nil, []byte(v)); ok {
			// Random bytes of some other encoding look like base64 as well: of what is no text, and whose name
			// says nothing of a file, only known secrets are looked for.
			masked, err := p.run(plain, path, file || mostlyText(plain))
			if err != nil {
				return "", err
			}
			if !bytes.Equal(masked, plain) {
				return base64.StdEncoding.EncodeToString(masked), nil
			}
			if file && utf8.Valid(plain) && mostlyText(plain) {
				// A file that can be read. Of its encoded form only known
				// secrets could be more than chance.
				masked, err := p.run([]byte(v), path, false)
				return string(masked), err
			}
		}
	}
	masked, err := p.run([]byte(v), path, true)
	return string(masked), err
}

// run masks one text. A secret that Aegis knows is blocked in block mode, too: the
// exact layer itself only replaces, and the text would be written with a mark in it.
func (p *inputPass) run(b []byte, path string, patterns bool) ([]byte, error) {
	out, hits, err := p.e.Text(p.ctx, nil, b, p.r, Options{Input: true, ExactOnly: !patterns})
	p.hits = p.hits.Add(hits)
	if err == nil && p.e.mode[forInput] == actBlock && hits[ExactRule] > 0 {
		err = &BlockedError{Rule: ExactRule}
	}
	if err != nil {
		p.where = path
		return nil, err
	}
	return out, nil
}
