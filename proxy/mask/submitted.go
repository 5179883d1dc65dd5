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
	if v := secretData(tool, args); v != "" {
		any = append(any, v)
	}
	return long, any
}

func appendFields(to []string, name string, v any, depth int) []string {
	switch v := v.(type) {
	case string:
		if secretFields[strings.ToLower(name)] && len(v) >= leastSecret {
			return append(to, v)
		}
		return appendEncoded(to, v, depth)
	case json.Number:
		if secretFields[strings.ToLower(name)] && len(v) >= leastSecret {
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
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(v))
	d.UseNumber()
	if d.Decode(&m) != nil {
		return to
	}
	return appendFields(to, "", m, depth)
}

// secretData returns the value of an Actions secret that the call writes, ""
// when it writes none.
func secretData(tool *proxy.Tool, args proxy.Arguments) string {
	if tool != nil && secretWrites[tool.OperationID] {
		v, _ := args["data"].(string)
		return v
	}
	if path, _ := args["path"].(string); strings.Contains(path, "/actions/secrets/") {
		return rawData(args["body"])
	}
	return ""
}

func rawData(body any) string {
	if s, ok := body.(string); ok {
		var m map[string]any
		if json.Unmarshal([]byte(s), &m) != nil {
			return ""
		}
		body = m
	}
	m, _ := body.(map[string]any)
	v, _ := m["data"].(string)
	return v
}
