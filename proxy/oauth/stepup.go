package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
	"aegis/proxy/oauth/scope"
)

// Needs returns the Gitea scopes of a tools/call of this name with these arguments,
// as the client spelled both; args may be nil. All of them are needed. A name
// that is no tool needs none: the call is refused for that. Tools that stand
// for others (gitea_call_tool, gitea_api_request) need what the call that
// they mean needs. It does no I/O, and is called for every call of an OAuth
// identity.
type Needs func(tool string, args json.RawMessage) []string

// maxMessages bounds a batch.
const maxMessages = 100

var (
	errTwice = errors.New("a member comes more than once; send each once")
	errBatch = fmt.Errorf("a batch may hold at most %d messages", maxMessages)
)

// calls returns the scopes that the calls in a body need, none for everything
// that is no call. The body has passed a check of its syntax.
//
// Decoders differ in which of two equal members they take, and some ignore case.
// A message that leaves room for that is refused, so that what is judged here is
// what runs.
func calls(body []byte, needs Needs) (scopes []string, err error) {
	if jsonscan.Kind(body) != '[' {
		return callOf(body, needs)
	}
	n := 0
	for _, message := range jsonscan.Elements(body) {
		if n++; n > maxMessages {
			return nil, errBatch
		}
		more, err := callOf(message, needs)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, more...)
	}
	return scopes, nil
}

// callOf returns what one message needs.
func callOf(message []byte, needs Needs) ([]string, error) {
	method, params, err := pick(message, "method", "params")
	if err != nil {
		return nil, err
	}
	if jsonscan.Kind(method) != '"' || jsonscan.Unquote(method) != "tools/call" {
		return nil, nil
	}
	name, args, err := pick(params, "name", "arguments")
	if err != nil {
		return nil, err
	}
	if jsonscan.Kind(name) != '"' {
		return nil, nil // the MCP layer refuses it
	}
	return needs(jsonscan.Unquote(name), args), nil
}

// pick returns two members of an object, nil for those that are absent. It fails
// when a name like theirs, whatever its case, comes twice or in another case.
func pick(object []byte, first, second string) (a, b []byte, err error) {
	for name, value := range jsonscan.Members(object) {
		plain := jsonscan.Unquote(name)
		for _, want := range []struct {
			name string
			at   *[]byte
		}{{first, &a}, {second, &b}} {
			switch {
			case !strings.EqualFold(plain, want.name):
			case *want.at != nil || plain != want.name:
				return nil, nil, errTwice
			default:
				*want.at = value
			}
		}
	}
	return a, b, nil
}

// Permits reports whether the caller's token covers all calls in the body of a POST, which
// must have been found to be one JSON text; if not, it has answered the request. A message
// is judged as a whole, before any call of it runs.
func (g *Guard) Permits(w http.ResponseWriter, x *proxy.RequestInfo, body []byte) bool {
	if g.Needs == nil || x.Identity.Grant == nil {
		return true
	}
	need, err := calls(body, g.Needs)
	if err != nil {
		writeError(w, x, http.StatusBadRequest,
			proxy.NewError(proxy.KindBadRequest, "the message is ambiguous: "+err.Error(), err))
		return false
	}
	have := x.Identity.Grant.Scopes
	if scope.Covers(have, need) {
		return true
	}
	g.askMore(w, x, scope.Union(have, need), scope.Missing(have, need))
	return false
}

// askMore answers 403 with a challenge that names all that the token should have
// (RFC 6750 section 3.1): what it has and what is missing, so that clients that
// replace one by the other lose nothing. When no sign-in can bring what is
// missing, the answer has no challenge: clients would ask people in circles.
func (g *Guard) askMore(w http.ResponseWriter, x *proxy.RequestInfo, all, lacks []string) {
	g.Log.Info().Str("request_id", x.RequestID).Strs("missing", lacks).Msg("scopes are missing")
	says := "this needs the Gitea scope " + strings.Join(lacks, " ")
	if g.Offered != nil && !scope.Covers(g.Offered, lacks) {
		says += ", which this server hands to no client; whoever runs it can add it to auth.oauth.scopes"
	} else {
		says += ", which you did not allow this client; allow it by signing in again"
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", resource_metadata="`+g.MetadataURL+
			`", scope="`+strings.Join(all, " ")+`", error_description="the call needs more than the token allows"`)
	}
	writeError(w, x, http.StatusForbidden, proxy.NewError("insufficient_scope", says, nil))
}
