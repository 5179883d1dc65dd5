package server

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/certmagic"

	"aegis/config"
	"aegis/proxy/edge/certs"
	"aegis/proxy/kv/certstore"
)

// secure makes the certificates' keeper. Replicas keep certificates in the store, with
// the keys in force: a reload may change those.
func (p *Process) secure(cfg *config.Config) (err error) {
	if cfg.TLS.Mode == "off" {
		return nil
	}
	o := certs.Options{TLS: cfg.TLS, Hosts: cfg.TLSHosts(), Base: cfg.Base(), Listen: cfg.Listen,
		DataDir: cfg.DataDir, Log: p.log.Logger}
	if cfg.Store.Shared() {
		o.Storage = func() certmagic.Storage {
			return certstore.New(p.storage.latest, certstore.Options{Poll: p.pace.poll, Failed: func(err error) {
				p.log.Warn().Err(err).Msg("certificates: a lock may be lost to another replica")
			}})
		}
	}
	if p.tls, err = certs.New(o); err != nil {
		return placed(err, func(e *certs.KeyError) config.Problem { return cfg.Problem(e.Key, e.What, e.Do) })
	}
	return nil
}

// placed turns complaints of a part about its settings into problems with their place in
// the configuration file. One complaint of another kind has no place there, and must not be
// lost: then all are returned as they came.
func placed[E error](err error, place func(E) config.Problem) error {
	var problems config.Problems
	for _, e := range leaves(err) {
		var complaint E
		if !errors.As(e, &complaint) {
			return err
		}
		problems = append(problems, place(complaint))
	}
	problems.Sort()
	return problems
}

// leaves returns the errors that were joined into err, at any depth.
func leaves(err error) (list []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		list = append(list, leaves(e)...)
	}
	return list
}

// Certificates returns the state of each certificate; nil when TLS is off.
func (s *Server) Certificates() []certs.CertStatus {
	if s.process.tls == nil {
		return nil
	}
	return s.process.tls.Status()
}

// CertificateWarnings returns what is wrong with the certificate of tls.mode files; nil
// when nothing is, and in other modes.
func (s *Server) CertificateWarnings() []string {
	if s.process.tls == nil {
		return nil
	}
	return s.process.tls.Warnings()
}

// PlainListen returns the address of the plain listener beside the encrypted
// one; "" when there is none.
func (s *Server) PlainListen() string {
	if s.process.tls == nil || s.cfg.TLS.HTTPListen == "off" {
		return ""
	}
	return s.cfg.TLS.HTTPListen
}

// accept serves ln, encrypted when TLS is on.
// HTTP/2 comes with TLS alone: net/http agrees on it by ALPN (RFC 7301).
func (s *Server) accept(srv *http.Server, ln net.Listener) error {
	if s.process.tls == nil {
		return srv.Serve(ln)
	}
	srv.TLSConfig = s.process.tls.Config()
	return srv.ServeTLS(ln, "", "")
}

// plainServer is the server of the plain listener. Nothing long is said there.
func (s *Server) plainServer() *http.Server {
	return &http.Server{
		Handler:        s.process.tls.Plain(),
		ReadTimeout:    plainTimeout,
		WriteTimeout:   plainTimeout,
		IdleTimeout:    plainTimeout,
		MaxHeaderBytes: 8 << 10,
		ErrorLog:       serverLog(s.log),
	}
}

// plainTimeout bounds a request to the plain listener, which has a redirect or the answer to
// a challenge to give, and no body to read.
const plainTimeout = 10 * time.Second

// certificateCheck says how the certificates are, "ok" when all is well, and
// whether clients can connect.
func (s *Server) certificateCheck() (text string, ready bool) {
	now := time.Now()
	text = "ok"
	for _, c := range s.Certificates() {
		switch {
		case c.NotAfter.IsZero():
			return "there is no certificate for " + c.Host + " yet; the log says why", false
		case !c.Valid(now):
			return "the certificate for " + c.Host + " is not valid now; the log says why it was not renewed", false
		case c.Problem != "": // clients can connect, so this is no reason to be taken out of service
			text = "valid until " + c.NotAfter.UTC().Format(time.RFC3339) +
				", but it was not renewed or read again; the log says why"
		}
	}
	return text, true
}
