// Package tracing writes spans of MCP requests, calls and the requests to Gitea
// that they cause, and sends them to a collector by OTLP over HTTP.
//
// Trace context (W3C Trace Context) is taken from the HTTP request and, before
// that, from the _meta of a call. Spans name tools, teams and outcomes, never an
// argument. Nothing here ever makes a call wait: what the queue cannot hold is
// dropped.
package tracing
