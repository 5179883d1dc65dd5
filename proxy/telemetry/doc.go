// Package telemetry tells operators what Aegis does: a log line for every call, counts
// for Prometheus, and spans for an OpenTelemetry collector.
//
// Every label of a metric has few values, all of them Aegis's own or the
// configuration's: classes of tools, kinds of failure, teams, masking rules, buckets.
// Nothing that a client writes becomes a label, and no name of a person does.
//
// Spans are those of MCP requests, calls and the requests to Gitea that they cause, and
// go to a collector by OTLP over HTTP. Trace context (W3C Trace Context) is taken from
// the HTTP request and, before that, from the _meta of a call. Spans and log lines
// name tools, teams and outcomes, never an argument. Nothing here ever makes a call
// wait: what a queue cannot hold is dropped.
package telemetry
