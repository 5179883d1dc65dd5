package gitea

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// maxNesting bounds how deep Aegis looks into an argument.
const maxNesting = 32

// fillBody builds the request's body from the values that belong there. A body with GET is
// dropped by some proxies and refused by others, so none is sent.
func (c *Client) fillBody(r *request, call *proxy.Call) error {
	w := &call.Wire
	if call.Op == nil && w.Sends != "" && (r.method == http.MethodGet || r.method == http.MethodHead) {
		return invalid("body", "must be absent with GET and HEAD")
	}
	switch w.Sends {
	case proxy.InForm:
		return c.fillForm(r, call)
	case proxy.InBody:
		return c.fillObject(r, call)
	case proxy.InWhole:
		return r.setWhole(call.Tool, w.Body[0].Value)
	}
	return nil
}

// setWhole makes v the whole body: text where the tool consumes text, JSON otherwise.
// Markdown to be rendered is sent as text, for example.
func (r *request) setWhole(tool *proxy.Tool, v any) error {
	if text, ok := v.(string); ok && strings.HasPrefix(tool.Consumes, "text/") {
		r.body, r.contentType = []byte(text), tool.Consumes
		return nil
	}
	body, err := proxy.Encode(v)
	if err != nil {
		return invalid("body", "cannot be written as JSON")
	}
	r.body, r.contentType = body, mediaJSON
	return nil
}

// fillObject builds a JSON object of the body's members in their order. In the order of the
// operation's parameters, so that the same call is the same bytes whichever way it was
// spelled.
func (c *Client) fillObject(r *request, call *proxy.Call) error {
	path := call.Wire.Path
	if call.Op != nil {
		path = call.Op.Path
	}
	// Only the routes of contents take paths and files in their bodies; elsewhere
	// "path" and "content" are words like any other.
	files := strings.Contains(path, "contents")
	body := []byte{'{'}
	for i := range call.Wire.Body {
		f := &call.Wire.Body[i]
		v, err := c.wireValue(f, files)
		if err != nil {
			return err
		}
		text, err := proxy.Encode(v)
		if err != nil {
			return invalid(argument(f), "cannot be written as JSON")
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(jsonscan.AppendQuote(body, f.Name), ':'), text...)
	}
	if err := checkPairs(call.Tool, call.Wire.Body); err != nil {
		return err
	}
	r.body, r.contentType = append(body, '}'), mediaJSON
	return nil
}

// wireValue turns a value of the body into what Gitea wants, and checks the parts of
// it that name or carry files. What a client spelled itself is what Gitea wants.
func (c *Client) wireValue(f *proxy.Field, files bool) (any, error) {
	// The content of a file may be megabytes, and holds no path.
	if files && (f.Param == nil || f.Name != "content") {
		if err := walkPaths(map[string]any{f.Name: f.Value}, 0); err != nil {
			return nil, err
		}
	}
	p := f.Param
	if p == nil {
		return f.Value, nil
	}
	if text, ok := f.Value.(string); ok {
		return c.fileText(p.Name, p.Encode, files && p.Wire == "content", text)
	}
	if p.Schema == nil {
		return f.Value, nil
	}
	return c.nested(p.Schema, f.Value, p.Name, files)
}

// fileText encodes text that is due as base64, and bounds file contents. Bounded here and
// not by the schema, which counts characters and does not know results.max_binary_bytes.
func (c *Client) fileText(name string, enc proxy.Encoding, isFile bool, text string) (any, error) {
	if enc == proxy.EncodeBase64 {
		// Before it grows by a third.
		if size := int64(len(text)); size > c.maxBinary {
			return nil, tooLarge(name, size, c.maxBinary)
		}
		return base64.StdEncoding.EncodeToString([]byte(text)), nil
	}
	if isFile {
		return text, c.checkBase64(name, text)
	}
	return text, nil
}

// nested applies wireValue's rules to the members of objects and lists. The
// arguments are copied where they change: other stages read them too.
func (c *Client) nested(s *proxy.Schema, v any, name string, files bool) (any, error) {
	switch v := v.(type) {
	case []any:
		if s.Items == nil || !encodes(s.Items) {
			return v, nil
		}
		out := make([]any, len(v))
		for i, item := range v {
			var err error
			if out[i], err = c.nested(s.Items, item, fmt.Sprintf("%s[%d]", name, i), files); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		if !encodes(s) {
			return v, nil
		}
		return c.nestedObject(s, v, name, files)
	}
	return v, nil
}

// nestedObject is nested for one object.
func (c *Client) nestedObject(s *proxy.Schema, v map[string]any, name string, files bool) (any, error) {
	out := maps.Clone(v)
	for i := range s.Properties {
		p := &s.Properties[i]
		member, given := v[p.Name]
		if !given {
			continue
		}
		wire, where := cmp.Or(p.Wire, p.Name), name+"."+p.Name
		if wire != p.Name {
			// Which of the two Gitea would get would depend on the order of a map.
			if _, both := v[wire]; both {
				return nil, invalid(where, "and "+wire+" exclude each other; give one of them")
			}
			delete(out, p.Name)
		}
		var err error
		if text, ok := member.(string); ok {
			out[wire], err = c.fileText(where, p.Encode, files && wire == "content", text)
		} else if p.Schema != nil {
			out[wire], err = c.nested(p.Schema, member, where, files)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// encodes reports whether a schema has members that change on the way out or that carry
// files. Most arguments have none, and copying them would cost memory for nothing.
func encodes(s *proxy.Schema) bool {
	if s == nil {
		return false
	}
	return encodes(s.Items) || slices.ContainsFunc(s.Properties, func(p proxy.Property) bool {
		return p.Encode != proxy.EncodeNone || p.Wire != "" || p.Name == "content" || encodes(p.Schema)
	})
}

// checkPairs demands exactly one of a tool's arguments that share a wire name. A list of
// required names cannot say it, so the catalog leaves both optional.
func checkPairs(tool *proxy.Tool, body []proxy.Field) error {
	// A value that the client spelled itself is what Gitea wants, and has no twin.
	given := func(p *proxy.Param) bool {
		return slices.ContainsFunc(body, func(f proxy.Field) bool { return f.Param != nil && f.Param.Name == p.Name })
	}
	for i := range tool.Params {
		enc := &tool.Params[i]
		if enc.Encode == proxy.EncodeNone {
			continue
		}
		for j := range tool.Params {
			raw := &tool.Params[j]
			if i != j && raw.Wire == enc.Wire && raw.In == enc.In && given(raw) == given(enc) {
				return invalid(raw.Name, "give either "+raw.Name+" or "+enc.Name+", one of the two")
			}
		}
	}
	return nil
}

// walkPaths refuses paths in the body of a contents request that Gitea would clean into
// other paths. It also looks into members that the schema does not name, as Gitea's decoder
// may know them.
func walkPaths(v any, depth int) error {
	if depth > maxNesting {
		return invalid("body", "is nested too deep")
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := walkPaths(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, member := range v {
			if err := checkMember(key, member); err != nil {
				return err
			}
			if err := walkPaths(member, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMember checks a member that names a file, or files in a list. Gitea's
// decoder does not care about the case of names, so neither does this.
func checkMember(key string, v any) error {
	list, _ := v.([]any)
	switch {
	case strings.EqualFold(key, "path"), strings.EqualFold(key, "from_path"):
		list = []any{v}
	case strings.EqualFold(key, "files"):
	default:
		return nil
	}
	for _, item := range list {
		if text, ok := item.(string); ok && text != "" {
			if rule := checkPathValue("filepath", text); rule != "" {
				return invalid(key, rule)
			}
		}
	}
	return nil
}
