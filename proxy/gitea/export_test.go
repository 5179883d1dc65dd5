package gitea

import (
	"context"
	"strings"
	"time"

	"aegis/proxy"
	"aegis/proxy/mask/match"
)

// Hooks for the black-box tests.
var (
	ParseLink      = parseLink
	CheckPathValue = checkPathValue
	CheckRepoPath  = checkRepoPath
	ShowsInternals = showsInternals
)

// Instead makes a call that would wait before its second attempt tell how long,
// and go on at once.
func (c *Client) Instead(tell func(time.Duration)) *Client {
	c.sleep = func(ctx context.Context, d time.Duration) bool {
		tell(d)
		return ctx.Err() == nil
	}
	return c
}

// Scrub scrubs text as for a server at host and a caller with this secret.
func Scrub(text, host, secret string) string {
	return scrubber{host: host, secret: secret, credentials: match.Credentials}.scrub(text)
}

// BuildPath fills the path of an operation from its arguments.
func BuildPath(op *proxy.Tool, args proxy.Arguments) (string, error) {
	call := &proxy.Call{Args: args}
	call.Resolve(op)
	return buildPath(op, call.Wire.Values)
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
