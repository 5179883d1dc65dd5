package server

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"

	"aegis/config"
	"aegis/proxy/envelope"
	"aegis/proxy/gitea"
	"aegis/proxy/kv/open"
	"aegis/proxy/mask"
	"aegis/proxy/mask/match"
	"aegis/proxy/oauth"
	"aegis/proxy/policy/members"
	"aegis/proxy/telemetry"
)

// parts are what a generation shares with the next one where none of their settings
// changed: open connections, known identities, and the key of cursors that clients
// hold. They are safe for concurrent use, and none of them is ever replaced.
type parts struct {
	cfg     *config.Config // that they fit
	gitea   *upstreams
	tokens  *oauth.Static
	store   *open.Store // sealed with the keys of cfg; of this generation alone
	cursors envelope.Cursors
	tracing *telemetry.Tracing // nil: none
	routes  *routes
}

// upstreams are the ways to Gitea and what was learned over them.
type upstreams struct {
	client *gitea.Client
	pass   *http.Transport // for what is passed through
	signIn *http.Transport // for the OAuth application
	people *members.Directory
	ready  *readiness
}

// routes are the operations of the live server, once they are known.
type routes struct {
	known atomic.Pointer[map[string]bool]
}

// newParts returns the parts of a configuration, with those of before, which may be nil,
// where they fit. It changes nothing of before.
func (p *Process) newParts(cfg *config.Config, log Log, before *parts) (parts, error) {
	n := parts{cfg: cfg, routes: &routes{}}
	var err error
	if before != nil && sameGitea(before.cfg, cfg) {
		n.gitea = before.gitea
	} else if n.gitea, err = p.newUpstreams(cfg, log); err != nil {
		return n, fmt.Errorf("gitea: %w", err)
	}
	if before != nil && sameURL(before.cfg.Gitea.URL, cfg.Gitea.URL) {
		n.tokens, n.routes = before.tokens.With(cfg.Auth.Tokens, n.gitea.client), before.routes
	} else {
		n.tokens = oauth.NewStatic(cfg.Auth.Tokens, n.gitea.client)
	}
	p.building("store")
	if n.store, err = p.storage.sealed(cfg); err != nil {
		return n, err
	}
	switch key := cfg.Server.CursorKey; {
	case cfg.Store.Shared() && key.IsZero(): // every replica must open them
		n.cursors, err = envelope.NewCursors(hex.EncodeToString(n.store.Derive("cursor")[0]))
	case before != nil && before.cfg.Server.CursorKey.Equal(key):
		n.cursors = before.cursors
	default:
		n.cursors, err = envelope.NewCursors(key.Reveal())
	}
	return n, err
}

// newUpstreams makes the client of Gitea and what hangs on it. No connection is made
// before it is needed.
func (p *Process) newUpstreams(cfg *config.Config, log Log) (*upstreams, error) {
	p.building("gitea")
	u := &upstreams{}
	var err error
	limits := gitea.Limits{
		MaxBinaryBytes: int64(cfg.Results.MaxBinaryBytes), Version: p.version, Around: telemetry.Upstream, Scrub: match.Credentials,
	}
	if u.client, err = gitea.New(cfg.Gitea, limits, log.Logger); err != nil {
		return nil, err
	}
	if u.pass, err = gitea.PassTransport(cfg.Gitea); err != nil {
		return nil, err
	}
	if u.signIn, err = gitea.PassTransport(cfg.Gitea); err != nil {
		return nil, err
	}
	u.ready = &readiness{check: u.client.Ready, now: p.now}
	u.people = members.NewDirectory(u.client, p.now)
	if cfg.Store.Shared() {
		u.people.OnLoss(p.sharing.left)
	}
	return u, nil
}

// close closes the connections that nothing uses; those in use when they are done.
func (u *upstreams) close() {
	u.client.Close()
	u.pass.CloseIdleConnections()
	u.signIn.CloseIdleConnections()
}

// newTracing returns the tracing of a configuration: that of before, when nothing of it
// changed.
func (p *Process) newTracing(cfg *config.Config, log Log, before *parts) *telemetry.Tracing {
	if before != nil && before.cfg.Tracing.Same(cfg.Tracing) && before.cfg.Log == cfg.Log {
		return before.tracing
	}
	p.building("tracing")
	return telemetry.NewTracing(cfg.Tracing, telemetry.TracingOptions{Version: p.version, Log: log.Logger})
}

// masking returns the masking of a configuration's default team: that of its log, where
// the log has one.
func (p *Process) masking(cfg *config.Config, log Log) (*mask.Engine, error) {
	for _, masks := range []*lazyMasks{log.masks, p.log.masks} {
		if masks != nil && masks.cfg == cfg {
			return masks.get()
		}
	}
	p.building("masking")
	return newMask(cfg, cfg.Masking)
}

// sameGitea reports whether one client of Gitea does for both configurations.
// A CA file may have other content under the same name, so with one there is
// always a new client.
func sameGitea(a, b *config.Config) bool {
	return a.Gitea.CAFile == "" && a.Results.MaxBinaryBytes == b.Results.MaxBinaryBytes && a.Log == b.Log &&
		reflect.DeepEqual(a.Gitea, b.Gitea)
}

func sameURL(a, b *config.URL) bool {
	return a != nil && b != nil && a.String() == b.String()
}

// release closes what next, which has taken s's place, does not use.
func (s *Server) release(next *Server) {
	if s.gitea != next.gitea {
		s.gitea.close()
	}
	if s.tracing != next.tracing {
		go s.endTraces(context.Background()) // a collector that is gone must not hold this up
	}
	go s.closeSignIn() // a Gitea that is gone must not hold this up
	s.retired.Store(true)
}
