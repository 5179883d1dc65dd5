package gitea

import (
	"strings"

	"aegis/proxy"
)

// Hooks for the black-box tests.
var (
	ParseLink      = parseLink
	CheckPathValue = checkPathValue
	CheckRepoPath  = checkRepoPath
	BuildPath      = buildPath
	TellsInternals = tellsInternals
)

// Scrub scrubs text as for a server at host and a caller with this secret.
func Scrub(text, host, secret string) string {
	return scrubber{host: host, secret: secret}.scrub(text)
}

// Escape escapes one path value.
func Escape(v string, keepSlash bool) string {
	var b strings.Builder
	escapeInto(&b, v, keepSlash)
	return b.String()
}

// Prepare builds the request of a call and returns what would be sent.
func (c *Client) Prepare(call *proxy.Call) (method, path, query string, body []byte, err error) {
	r, err := c.prepare(call)
	if err != nil {
		return "", "", "", nil, err
	}
	return r.method, r.path, r.query, r.body, nil
}
