package server

import (
	"context"
	"net/http"
	"path/filepath"

	"aegis/config"
	"aegis/proxy/kv/open"
	"aegis/proxy/oauth/grant"
)

// The control socket, by which commands on the same machine reach a running Aegis,
// is in data_dir, where file permissions decide who may use it.
const (
	controlName = "control.sock"
	// maxSocket is the least that a system allows for a socket's path (macOS: 104 bytes with
	// the final zero).
	maxSocket = 103
)

// controlSocket returns the socket's path, "" when it would be too long.
func controlSocket(cfg *config.Config) string {
	path := filepath.Join(cfg.DataDir, controlName)
	if len(path) > maxSocket {
		return ""
	}
	return path
}

// Operator returns what lists and ends the grants of a configuration's Aegis,
// whether it runs or not.
func Operator(cfg *config.Config) grant.Operator {
	return grant.Operator{Socket: controlSocket(cfg), Open: func(ctx context.Context) (*grant.Grants, func(), error) {
		store, err := open.Existing(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		done := func() { _ = store.Close() } // nothing was written that is not on disk
		g, err := grant.New(grant.Options{Store: store, Keys: store.Derive, Config: cfg.Auth.OAuth})
		if err != nil {
			done()
			return nil, nil, err
		}
		return g, done, nil
	}}
}

// control serves the socket until ctx ends. Without it only the commands that
// need it fail, so trouble is logged and no more.
func (l *Live) control(ctx context.Context) {
	s := l.Server()
	path := controlSocket(s.cfg)
	if path == "" {
		s.log.Warn().Msg(`data_dir has too long a path for a socket in it, so "aegis oauth" cannot reach this server`)
		return
	}
	ln, err := grant.ListenControl(path)
	if err != nil {
		s.log.Warn().Err(err).Msg(`no control socket, so "aegis oauth" cannot reach this server`)
		return
	}
	srv := &http.Server{
		Handler: grant.Control(l.grants), ErrorLog: serverLog(s.log),
		ReadTimeout: grant.ControlTimeout, WriteTimeout: grant.ControlTimeout,
	}
	// Closed without waiting for requests: the store that they would use is about to close.
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	_ = srv.Serve(ln) // its error is ErrServerClosed
}

// grants returns the grants in force; nil when people do not sign in.
func (l *Live) grants() *grant.Grants {
	if in := l.Server().signIn; in != nil {
		return in.grants
	}
	return nil
}
