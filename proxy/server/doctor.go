package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/gitea"
	"aegis/proxy/internal/http1"
)

// StreamGap is the time between the two events of /healthz/stream.
const StreamGap = time.Second

// stream sends two events, StreamGap apart, so that "aegis doctor" can tell
// whether a proxy holds answers back. It says nothing and is held to the limits
// of addresses.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	for i := range 2 { // one alone would not show whether it was held back until the end
		if i > 0 {
			select {
			case <-s.process.pace.after(StreamGap):
			case <-r.Context().Done():
				return
			case <-s.process.stopping.Done():
				return
			}
		}
		if _, err := fmt.Fprintf(w, "data: %d\n\n", i+1); err != nil || flush.Flush() != nil {
			return // the client has gone, or nothing that "aegis doctor" could learn would arrive
		}
	}
}

// Examined is what "aegis doctor" compares a running Aegis with: the same
// configuration, built anew. It listens nowhere, writes no audit records and
// opens no store.
type Examined struct {
	// Handler answers as the configuration says.
	Handler http.Handler
	// Base is the public address, and Endpoints the paths of all MCP endpoints, the
	// default one first.
	Base      string
	Endpoints []string
	// Needs are the Gitea scopes by the tools that need them; the number of tools.
	Needs map[string]int

	server *Server
}

// Examine builds a configuration for comparison. Call Close when done.
func Examine(cfg *config.Config, version string) (*Examined, error) {
	// What another process has in use, or would have effects, is left out.
	quiet := *cfg
	quiet.Metrics.Listen, quiet.Tracing.Endpoint = "", nil
	quiet.Gitea.HideMissing = false // Gitea is not asked for this
	log := Log{Logger: zerolog.Nop()}
	p, err := Dry(&quiet, version, log)
	if err != nil {
		return nil, err
	}
	s, err := New(p, &quiet, log)
	if err != nil {
		p.Close()
		return nil, err
	}
	e := &Examined{Handler: s.Handler(), Base: s.base.String(), Needs: map[string]int{}, server: s}
	for _, t := range s.teams {
		e.Endpoints = append(e.Endpoints, s.base.EscapedPath()+t.path())
	}
	// Of the default team alone, since scopes belong to tokens, which teams share.
	for _, t := range s.Tools() {
		for _, scope := range t.Scopes {
			e.Needs[scope]++
		}
	}
	return e, nil
}

// CheckSignIn asks Gitea whether its OAuth application is as it must be; nothing
// when people do not sign in. With problems people cannot sign in, with warnings they perhaps can.
func (e *Examined) CheckSignIn(ctx context.Context) (problems, warnings []error) {
	if e.server.signIn == nil {
		return nil, nil
	}
	return e.server.signIn.gitea.Check(ctx)
}

// Close releases connections.
func (e *Examined) Close() { e.server.Close() }

// GiteaHTTP returns a client for the Gitea of a configuration, with its proxy and
// authorities. It follows no redirects.
func GiteaHTTP(cfg config.Gitea) (*http.Client, error) {
	t, err := gitea.PassTransport(cfg)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     http1.NoUpgrade{Next: t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
