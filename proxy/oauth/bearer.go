package oauth

import (
	"errors"
	"net/http"
	"strings"
)

// maxBearer bounds the length of a bearer token; longer ones are not hashed.
const maxBearer = 4096

// Reasons for having no bearer token. They are for the log; the challenge tells
// only whether a token was shown at all.
var (
	errNoToken   = errors.New("no Authorization header")
	errTwoTokens = errors.New("more than one Authorization header")
	errScheme    = errors.New("the Authorization scheme is not Bearer")
	errMalformed = errors.New("the bearer token is malformed")
	errUnknown   = errors.New("the bearer token is unknown")
)

// bearer returns the token of a request's Authorization header (RFC 6750
// section 2.1). Tokens in the query or the body are not looked at.
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	switch {
	case len(values) == 0:
		return "", errNoToken
	case len(values) > 1:
		return "", errTwoTokens
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", errScheme
	}
	if !found || !isToken68(token) {
		return "", errMalformed
	}
	return token, nil
}

// isToken68 reports whether s is a b64token of RFC 6750: 1 to maxBearer
// characters of ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/", then "=".
func isToken68(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" || len(s) > maxBearer {
		return false
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/"
	return strings.Trim(body, alphabet) == ""
}
