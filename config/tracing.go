package config

import (
	"reflect"
	"slices"
	"strings"
)

// Tracing sends OpenTelemetry spans of MCP requests, calls and requests to Gitea
// to a collector, by OTLP over HTTP with protobuf. Spans hold names of tools and
// teams, outcomes and times, never an argument.
type Tracing struct {
	// Endpoint is the collector's address; /v1/traces is added unless it ends
	// with it. Empty: no tracing.
	Endpoint *URL `yaml:"endpoint" example:"http://127.0.0.1:4318"`
	// Sample is the share of traces to record, among those for which the client
	// has not decided. A client's own decision, in traceparent, holds. 0 to 1,
	// default 1.
	Sample float64 `yaml:"sample" range:"0 1"`
	// Logins adds the Gitea login to the spans of calls. Default false.
	Logins bool `yaml:"logins"`
	// Headers are sent to the collector with every request.
	Headers []TracingHeader `yaml:"headers"`
}

// TracingHeader is one header for the collector.
type TracingHeader struct {
	// Name is the header's name. Required.
	Name string `yaml:"name" required:"true" pattern:"^[A-Za-z0-9_-]{1,64}$" says:"a header name of letters, digits, - and _" example:"X-Api-Key"`
	// Value is the header's value. Required.
	Value Secret `yaml:"value" required:"true" length:"1 4096" header:"true" example:"${COLLECTOR_KEY}"`
}

// Same reports whether both settings mean the same.
func (t Tracing) Same(u Tracing) bool {
	return reflect.DeepEqual(t.Endpoint, u.Endpoint) && t.Sample == u.Sample && t.Logins == u.Logins &&
		slices.EqualFunc(t.Headers, u.Headers, func(a, b TracingHeader) bool {
			return a.Name == b.Name && a.Value.Equal(b.Value)
		})
}

// ownHeaders are those that the exporter writes.
var ownHeaders = []string{
	"content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "host", "user-agent",
}

func (v *validator) tracing() {
	t := v.c.Tracing
	v.addIf(insecure(t.Endpoint) && len(t.Headers) > 0, "tracing.endpoint",
		"is plain http while there are headers, which would cross the network readable", "use https")
	name := func(h TracingHeader) string { return strings.ToLower(h.Name) }
	for i, h := range t.Headers {
		v.addIf(slices.Contains(ownHeaders, name(h)), item("tracing.headers", i)+".name",
			"is a header that Aegis writes itself", "remove it")
	}
	unique(v, "tracing.headers", "name", t.Headers, name, "give each header once")
}
