package server

import (
	"context"
	"fmt"
	"reflect"

	"aegis/config"
	"aegis/proxy/envelope"
	"aegis/proxy/gitea"
	"aegis/proxy/oauth"
	"aegis/proxy/policy/members"
	"aegis/proxy/telemetry"
)

// connect makes the client of Gitea and what hangs on it, or takes over old's
// where nothing of it changed: open connections, known identities, the last
// readiness, and the key of cursors that clients hold.
func (s *Server) connect(old *Server) error {
	if old != nil && sameGitea(old.cfg, s.cfg) {
		s.gitea, s.ready = old.gitea, old.ready
	} else {
		var err error
		s.gitea, err = gitea.New(s.cfg.Gitea, gitea.Limits{MaxBinaryBytes: int64(s.cfg.Results.MaxBinaryBytes), Version: s.version, Around: telemetry.Upstream}, s.log)
		if err != nil {
			return fmt.Errorf("gitea: %w", err)
		}
		s.ready = &readiness{check: s.gitea.Ready, now: s.now}
	}
	if s.people = members.NewDirectory(s.gitea, s.now); old != nil && s.gitea == old.gitea {
		s.people = old.people
	}
	if s.cfg.Store.Shared() {
		s.people.OnLoss(func(key string) { s.state.sharing.left(key) })
	}
	s.tokens = oauth.NewStatic(s.cfg.Auth.Tokens, s.gitea)
	if old != nil && sameURL(old.cfg.Gitea.URL, s.cfg.Gitea.URL) {
		s.tokens.Adopt(old.tokens)
	}
	if old != nil && old.cfg.Server.CursorKey.Equal(s.cfg.Server.CursorKey) {
		s.cursors = old.cursors
		return nil
	}
	var err error
	s.cursors, err = envelope.NewCursors(s.cfg.Server.CursorKey.Reveal())
	return err
}

// sameGitea reports whether one client of Gitea does for both configurations.
// A CA file may have other content under the same name, so with one there is
// always a new client.
func sameGitea(a, b *config.Config) bool {
	return a.Gitea.CAFile == "" && a.Results.MaxBinaryBytes == b.Results.MaxBinaryBytes && a.Log == b.Log && reflect.DeepEqual(a.Gitea, b.Gitea)
}

func sameURL(a, b *config.URL) bool {
	return a != nil && b != nil && a.String() == b.String()
}

// release closes what next, which has taken s's place, does not use.
func (s *Server) release(next *Server) {
	if s.gitea != next.gitea {
		s.gitea.Close()
	}
	if s.tracing != next.tracing {
		go s.endTraces(context.Background()) // a collector that is gone must not hold this up
	}
	s.closePassthrough()
	go s.closeSignIn() // a Gitea that is gone must not hold this up
	if s.missing != nil {
		s.missing.retired.Store(true)
	}
}
