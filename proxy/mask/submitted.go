package mask

import (
	"encoding/json"
	"strings"

	"aegis/proxy"
)

// secretFields are the arguments that are meant for secrets.
var secretFields = set("password", "secret", "client_secret", "token", "access_token", "auth_password", "auth_token",
	"private_key", "authorization_header", "remote_password", "mirror_password", "mirror_token",
	"aws_secret_access_key", "aws_access_key_id")

// secretWrites are the operations whose argument data is the value of an
// Actions secret.
var secretWrites = set("updateOrgSecret", "updateRepoSecret", "updateUserSecret")

// fieldDepth is how deep arguments are searched for secret fields.
const fieldDepth = 8

// submitted returns the values of at least four bytes, and those that count
// whatever their length.
func submitted(c *proxy.Call) (long, any []string) {
	for _, list := range [][]proxy.Field{c.Wire.Values, c.Wire.Query, c.Wire.Body} {
		for i := range list {
			long = appendFields(long, list[i].Argument(), list[i].Value, 1)
		}
	}
	return long, secretData(c)
}

// appendFields looks for secret fields in v, the value of name. Elements of a list have
// the list's name.
func appendFields(to []string, name string, v any, depth int) []string {
	switch v := v.(type) {
	case string:
		if secretFields[foldKey(name)] && len(v) >= leastSecret {
			return append(to, v)
		}
		return appendEncoded(to, v, depth)
	case json.Number:
		return appendFields(to, name, string(v), depth)
	case map[string]any:
		if depth < fieldDepth {
			for k, x := range v {
				to = appendFields(to, k, x, depth+1)
			}
		}
	case []any:
		if depth < fieldDepth {
			for _, x := range v {
				to = appendFields(to, name, x, depth+1)
			}
		}
	}
	return to
}

// appendEncoded looks into a string that is itself a JSON object: some server may
// read it as one.
func appendEncoded(to []string, v string, depth int) []string {
	if depth >= fieldDepth || !strings.HasPrefix(strings.TrimSpace(v), "{") {
		return to
	}
	m := object(v)
	if m == nil {
		return to
	}
	return appendFields(to, "", m, depth)
}

// secretData returns the values of Actions secrets that the call writes: the members
// data of its body, in any case of letters. With several, only the server knows which
// it takes.
func secretData(c *proxy.Call) (values []string) {
	if !writesSecret(c) {
		return nil
	}
	for i := range c.Wire.Body {
		f := &c.Wire.Body[i]
		members := map[string]any{f.Name: f.Value}
		if f.In == proxy.InWhole {
			members = object(f.Value)
		}
		for name, v := range members {
			if foldKey(name) != "data" {
				continue
			}
			switch v := v.(type) {
			case string:
				values = append(values, v)
			case json.Number:
				values = append(values, string(v))
			}
		}
	}
	return values
}

// writesSecret reports whether the call writes an Actions secret. Of an operation
// that the catalog lacks, or calls by another name, only the path is known.
func writesSecret(c *proxy.Call) bool {
	return c.Op != nil && secretWrites[c.Op.OperationID] ||
		strings.Contains(strings.ToLower(c.Wire.Path), "/actions/secrets/")
}

// object returns v, or the object that v is the text of; nil when it is none.
func object(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case string:
		var m map[string]any
		d := json.NewDecoder(strings.NewReader(v))
		d.UseNumber()
		if d.Decode(&m) == nil { // as the server: what follows the object is not looked at
			return m
		}
	}
	return nil
}

// foldKey returns a name as Go's decoder of JSON compares names: without case,
// by Unicode's simple folding, where the long s is an s and the Kelvin sign a k.
func foldKey(name string) string { return strings.ToLower(strings.ToUpper(name)) }
