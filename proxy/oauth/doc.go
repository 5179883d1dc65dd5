// Package oauth decides who is calling. It verifies the bearer tokens of MCP
// requests (RFC 6750) and answers everybody else with a challenge that says
// where to learn more (RFC 9728).
//
// A request without exactly one well-formed, known bearer token has no identity
// and goes no further: there is no shared or anonymous identity to fall back to.
package oauth
