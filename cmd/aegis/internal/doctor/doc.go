// Package doctor looks at a running Aegis from outside, as MCP clients see it,
// and at the Gitea behind it, and says what is wrong and how to fix it.
//
// It sends no credential to the address that it examines, so it goes on after a
// certificate that clients would refuse. What Aegis should answer it learns from
// a handler that was built of the same configuration ([Options.Reference]); any
// difference was made on the way.
package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Status is the outcome of one check.
type Status string

// The outcomes, from best to worst.
const (
	OK      Status = "ok"
	Skipped Status = "skipped" // it could not be looked at, or does not apply
	Warning Status = "warning" // it works, and something about it is odd
	Failure Status = "failure" // clients will fail
)

// Finding is what one check found.
type Finding struct {
	// Check names the check; it does not change between versions.
	Check string `json:"check"`
	// Status is the outcome.
	Status Status `json:"status"`
	// Message is what was found.
	Message string `json:"message"`
	// Fix is what to do; "" when there is nothing to do.
	Fix string `json:"fix,omitempty"`
}

// Resolver looks up the addresses of a name; [net.Resolver] is one. Tests give answers
// that no name server has.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options say what to examine.
type Options struct {
	// Base is the address that clients use, without a slash at the end. Required.
	Base *url.URL
	// Endpoints are the paths of the MCP endpoints below Base's host, the default
	// one first. Empty: Base's path and /mcp.
	Endpoints []string
	// Reference answers as the configuration says; nil: only what holds for every Aegis
	// is checked. It is called without a network, with the same requests.
	Reference http.Handler
	// Roots are the authorities that clients trust; nil: the system's.
	Roots *x509.CertPool
	// Certificates are shown to a server that asks for one; nil: none.
	Certificates []tls.Certificate
	// Dial connects; nil: as the system does.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Resolver answers for names; nil: the system's.
	Resolver Resolver
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
	// MaxBody is the largest request in bytes that must pass; 0: 1 MiB.
	MaxBody int64
	// Register makes one client registration, of which Aegis keeps nothing.
	Register bool
	// Client is a client of [Clients] whose further needs are checked; "": none.
	Client string
	// Patience bounds each request; 0: 10 s.
	Patience time.Duration

	// held is how long a request may wait for its answer while its body is not
	// whole, and quiet how long the rest of an event stream must stay away after
	// its beginning. Tests set them; 0: a quarter of Patience and of StreamGap.
	held, quiet time.Duration
}

// Run makes all checks, one after the other, and calls report with each finding. It
// ends early when nothing answers at all. The order matters: identity learns which
// proxy there is, for the fixes of all others, and metadata what the clients' needs
// are compared with.
func Run(ctx context.Context, o Options, report func(Finding)) {
	x := newExamination(o, report)
	defer x.pool.CloseIdleConnections()
	// All further checks would fail for the one reason that was just reported.
	if !x.reach(ctx) {
		x.add(Skipped, "rest", "nothing else can be looked at before Aegis can be reached", "")
		return
	}
	for _, check := range []func(context.Context){
		x.identity, x.ready, x.clock, x.hosts, x.origins, x.preflights, x.metadata, x.challenges, x.authorization,
		x.encodedSlash, x.compression, x.streaming, x.uploads, x.bodySize, x.plainHTTP, x.registration, x.client,
	} {
		// Every check left would report that it was interrupted.
		if ctx.Err() != nil {
			return
		}
		check(ctx)
	}
}
