// Package oauth decides who is calling. [Guard] verifies the bearer tokens of MCP
// requests (RFC 6750), answers everybody else with a challenge that says where to
// learn more (RFC 9728), and asks for more scopes when a call needs them.
//
// [Server] is the HTTP side of an OAuth 2.1 authorization server for MCP clients:
// metadata (RFC 8414, RFC 9728), authorization with PKCE (RFC 7636), resource
// indicators (RFC 8707) and the issuer in every answer (RFC 9207), tokens,
// registration (RFC 7591), revocation (RFC 7009), and a page where people see what
// they have allowed. What clients are, what people allowed and what Gitea knows
// are the matters of the packages client, grant and upstream below it.
//
// Three habits shape it.
//
// Gitea lets an application that was allowed once through without a question, so
// Aegis asks before it sends anybody there: each time, with the client's name,
// where the answer goes, and what it permits. Until the person has said yes the
// request travels in the form, signed, and nothing is stored. The yes is bound to
// the browser that gave it, and works once.
//
// Clients give up easily. What is the client's fault is said in the codes that
// make it start anew; what is ours or Gitea's never is: it is 503, and ends
// no sign-in.
//
// A request without exactly one well-formed, known bearer token has no identity
// and goes no further: there is no shared or anonymous identity to fall back to.
package oauth
