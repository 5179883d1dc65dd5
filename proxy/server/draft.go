package server

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"reflect"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/envelope"
	"aegis/proxy/kv/open"
	"aegis/proxy/oauth"
	"aegis/proxy/telemetry"
)

// A generation is made in steps, each of which returns a value that is whole and does
// not change: the basis, what teams may do (with it, the draft), and the core, which
// has the store. What a configuration can have wrong is found by the draft, so that
// [Open] can make one before it touches a file.

// basis is what all parts of a generation are made of.
type basis struct {
	process *Process
	cfg     *config.Config
	log     zerolog.Logger
	base    *url.URL // public address, without a trailing slash
	library *library
	gitea   *upstreams
	tokens  *oauth.Static
	routes  *routes
}

// draft is a generation as far as it needs no store.
type draft struct {
	basis
	teams    []teamRules     // the default team first
	warnings config.Problems // what need not be an error
}

// core is a generation without its HTTP side.
type core struct {
	basis
	store   *open.Store // sealed with the keys of cfg
	cursors envelope.Cursors
	tracing *telemetry.Tracing // nil: none
	teams   []*team            // the default team first
	signIn  *signIn            // nil: people do not sign in
	missing *missing           // nil: tools are served whatever the live server has
}

// draftOf returns the draft of a configuration: the one that [Open] has checked, at the
// first call after it, else a new one. One that comes with an error has only warnings.
func (p *Process) draftOf(cfg *config.Config, log Log, before *Server) (*draft, error) {
	if d := p.first.Swap(nil); d != nil && d.cfg == cfg {
		return d, nil
	}
	return p.newDraft(cfg, log, before)
}

// newDraft makes a draft, with the parts of before, which may be nil, where they fit. It
// changes nothing of before.
func (p *Process) newDraft(cfg *config.Config, log Log, before *Server) (*draft, error) {
	lib, err := p.libraryOf(cfg)
	if err != nil {
		return nil, err
	}
	choices, warnings, err := lib.choose(cfg)
	d := &draft{basis: basis{cfg: cfg, log: log.Logger}, warnings: warnings}
	if err != nil {
		return d, err
	}
	if d.basis, err = p.newBasis(cfg, log, lib, before); err != nil {
		return nil, err
	}
	d.teams, err = d.newRules(choices, log)
	return d, err
}

// newBasis returns the basis, with the connections to Gitea, the identities and the
// routes of before where they fit.
func (p *Process) newBasis(cfg *config.Config, log Log, lib *library, before *Server) (basis, error) {
	b := basis{process: p, cfg: cfg, log: log.Logger, base: cfg.Base(), library: lib}
	var err error
	if before != nil && sameGitea(before.cfg, cfg) {
		b.gitea = before.gitea
	} else if b.gitea, err = p.newUpstreams(cfg, log); err != nil {
		return b, fmt.Errorf("gitea: %w", err)
	}
	// By the address alone: whose a token is does not change with, say, a timeout.
	if before != nil && sameURL(before.cfg.Gitea.URL, cfg.Gitea.URL) {
		b.tokens, b.routes = before.tokens.With(cfg.Auth.Tokens, b.gitea.client), before.routes
	} else {
		b.tokens, b.routes = oauth.NewStatic(cfg.Auth.Tokens, b.gitea.client), &routes{}
	}
	return b, nil
}

// warn logs what is odd about a configuration and no error.
func (d *draft) warn() {
	for _, w := range d.warnings {
		d.log.Warn().Msg(w.String())
	}
	for i := range d.teams { // counting encodes the lists, which is why a start does it beside the rest
		d.warnOfCost(&d.teams[i].choice)
	}
}

// complete adds what needs the store.
func (d *draft) complete(before *Server) (*core, error) {
	d.process.building("store")
	store, err := d.process.storage.sealed(d.cfg)
	if err != nil {
		return nil, err
	}
	cursors, err := d.newCursors(store, before)
	if err != nil {
		return nil, err
	}
	teams, err := d.newTeams(store)
	if err != nil {
		return nil, err
	}
	signIn, err := d.newSignIn(store, teams)
	if err != nil {
		return nil, err
	}
	return &core{
		basis: d.basis, store: store, cursors: cursors, teams: teams, signIn: signIn, missing: newMissing(d.cfg),
		tracing: d.newTracing(before), // last, as it has a goroutine, which a failure would leave behind
	}, nil
}

// newCursors returns the key of cursors that clients hold: the one of before while its
// setting is the same, so that a reload does not end their lists.
func (d *draft) newCursors(store *open.Store, before *Server) (envelope.Cursors, error) {
	switch key := d.cfg.Server.CursorKey; {
	case d.cfg.Store.Shared() && key.IsZero(): // all replicas have the store's keys
		return envelope.NewCursors(hex.EncodeToString(store.Derive("cursor")[0]))
	case before != nil && before.cfg.Server.CursorKey.Equal(key):
		return before.cursors, nil
	default:
		return envelope.NewCursors(key.Reveal())
	}
}

// newTracing returns the tracing of a configuration: that of before, when nothing of it
// changed.
func (d *draft) newTracing(before *Server) *telemetry.Tracing {
	if before != nil && before.cfg.Tracing.Same(d.cfg.Tracing) && before.cfg.Log == d.cfg.Log {
		return before.tracing
	}
	d.process.building("tracing")
	return telemetry.NewTracing(d.cfg.Tracing, telemetry.TracingOptions{Version: d.process.version, Log: d.log})
}

// sameGitea reports whether one client of Gitea does for both configurations.
// A CA file may have other content under the same name, so with one there is
// always a new client.
// The log counts because the client has the logger of its generation, with that level.
func sameGitea(a, b *config.Config) bool {
	return a.Gitea.CAFile == "" && a.Results.MaxBinaryBytes == b.Results.MaxBinaryBytes && a.Log == b.Log &&
		reflect.DeepEqual(a.Gitea, b.Gitea)
}

// sameURL reports whether both name one Gitea, so that identities and routes which were
// learned of one hold for the other.
func sameURL(a, b *config.URL) bool {
	return a != nil && b != nil && a.String() == b.String()
}
