package mask

import (
	"encoding/json"
	"strings"

	"aegis/proxy"
)

// secretFields are the arguments that are meant for secrets.
var secretFields = map[string]bool{
	"password": true, "secret": true, "client_secret": true, "token": true, "access_token": true, "auth_password": true, "auth_token": true,
	"private_key": true, "authorization_header": true, "remote_password": true, "mirror_password": true, "mirror_token": true,
	"aws_secret_access_key": true, "aws_access_key_id": true,
}

// secretWrites are the operations whose argument data is the value of an
// Actions secret.
var secretWrites = map[string]bool{"updateOrgSecret": true, "updateRepoSecret": true, "updateUserSecret": true}

// fieldDepth is how deep arguments are searched for secret fields.
const fieldDepth = 8

// SubmittedSecrets returns the values of args that are secrets by their name,
// as passwords, tokens and keys are: nested up to eight deep and at least four
// bytes long. The data of an Actions secret is one at any length, which
// [Engine.ForCall] heeds.
func SubmittedSecrets(tool *proxy.Tool, args proxy.Arguments) []string {
	long, short := submitted(tool, args)
	return append(long, short...)
}

// submitted returns the values of at least four bytes, and those that count
// whatever their length.
func submitted(tool *proxy.Tool, args proxy.Arguments) (long, any []string) {
	for name, v := range args {
		long = appendFields(long, name, v, 1)
	}
	return long, secretData(tool, args)
}

func appendFields(to []string, name string, v any, depth int) []string {
	switch v := v.(type) {
	case string:
		if secretFields[foldKey(name)] && len(v) >= leastSecret {
			return append(to, v)
		}
		return appendEncoded(to, v, depth)
	case json.Number:
		if secretFields[foldKey(name)] && len(v) >= leastSecret {
			return append(to, string(v))
		}
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

// appendEncoded looks into a string that is itself a JSON object, as the raw
// tool may be given its body.
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

// secretData returns the values of Actions secrets that the call writes: the
// argument data, or the member data of the body that the raw tool is given.
func secretData(tool *proxy.Tool, args proxy.Arguments) []string {
	if !writesSecret(tool, args) {
		return nil
	}
	values := appendData(nil, args)
	for name, v := range args {
		if foldKey(name) == "body" {
			values = appendData(values, object(v))
		}
	}
	return values
}

// writesSecret reports whether the call writes an Actions secret.
func writesSecret(tool *proxy.Tool, args proxy.Arguments) bool {
	if tool != nil && secretWrites[tool.OperationID] {
		return true
	}
	path, _ := args["path"].(string)
	return strings.Contains(strings.ToLower(path), "/actions/secrets/")
}

// appendData appends the values of the members data, however that is spelled:
// which of several counts is the server's affair.
func appendData(to []string, m map[string]any) []string {
	for name, v := range m {
		if foldKey(name) != "data" {
			continue
		}
		switch v := v.(type) {
		case string:
			to = append(to, v)
		case json.Number:
			to = append(to, string(v))
		}
	}
	return to
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
