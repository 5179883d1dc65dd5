// Package fakegitea is a stateful, in-memory double of a Gitea server.
//
// It answers the REST API under /api/v1 the way a measured Gitea 1.28 does: the
// same status codes, error bodies, paging headers, path decoding and refusals,
// including the surprising ones (a filter on an unknown label returns every
// issue, a cleaned ".." writes outside the folder that was named). What is
// written can be read back. Tests use it as the upstream of everything, and
// "aegis demo" embeds it as the instance to try the gateway on.
//
// The double knows all operations of the pinned API description. What it answers
// from its state is what the demo's tasks and the tests of other packages use; the
// other operations answer 501, "not in the demo". Nothing is made up.
//
// What holds it to the real server is in testdata: recorded requests are replayed on the
// lab world and the answers compared, and request targets are sent byte for byte and must
// give the status and the message that were measured.
//
// What it never does: it contacts nobody. Webhooks are not delivered, mirrors are not
// pushed to, no mail is sent, and there is no transport for git itself: commits come from
// the seed and from the API.
package fakegitea

import (
	"net/http"
	"time"
)

// Seed names the world that a Server begins with. In every world the password of
// every user, for HTTP Basic and the login page, is "demo-password".
type Seed int

const (
	// SeedDemo is a small friendly world: alice, bob, the site administrator
	// root1, the organisation acme and three repositories.
	SeedDemo Seed = iota
	// SeedLab is the world on which the behaviour was measured: issues-lab with
	// 300 issues, paths-lab with odd names, pulls-lab, and so on.
	SeedLab
	// SeedEmpty has the users alice, bob and root1 and nothing else.
	SeedEmpty
)

// Options configures a Server. The zero value serves the demo world.
type Options struct {
	// Seed is the world to begin with.
	Seed Seed
	// MaxItems caps every page; 0 means 50, as a fresh Gitea has it.
	MaxItems int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// RootURL is the base of the absolute URLs in answers, without a trailing
	// slash. Empty derives it from the Host of each request. It need not be the
	// address at which the double is reached: links and redirects between its
	// pages use only its path.
	RootURL string
	// SubPath is the path that the double lives under, such as "/git"; everything
	// else is not found. With an empty RootURL it is part of the absolute URLs.
	SubPath string
	// DisableQueryToken passes over credentials in ?token= and ?access_token=, as
	// DISABLE_QUERY_AUTH_TOKEN does: such a request goes on by its header, or as nobody.
	DisableQueryToken bool
	// Version is what /api/v1/version answers; empty means the version that the
	// pinned description of the API names.
	Version string
	// Description is served at /swagger.v1.json, the description of the API in
	// JSON; empty means that there is none, as with ENABLE_SWAGGER = false.
	Description []byte
}

// Request is one request as it arrived.
type Request struct {
	// Method is the HTTP method.
	Method string
	// RequestURI is the target exactly as it was on the wire.
	RequestURI string
	// Host is the Host header.
	Host string
	// Header holds the request's headers.
	Header http.Header
	// Body is the whole body.
	Body []byte
}

// Route is one operation of the API.
type Route struct {
	// Method is the HTTP method.
	Method string
	// Path is the template below /api/v1, such as /repos/{owner}/{repo}.
	Path string
	// Implemented says that the double answers it from its state; the others
	// answer 501.
	Implemented bool
}
