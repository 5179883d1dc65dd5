package server

import (
	"os"
	"sync/atomic"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/audit"
	"aegis/proxy/mask"
)

// auditing is the audit log of a process, and the masking in force, by which it writes what
// clients have named.
type auditing struct {
	log *audit.Log // nil: switched off, or the process is only for looking
	// names is replaced by reloads while records are written.
	names atomic.Pointer[func(string) string]
}

// use masks by other rules from now on.
func (a *auditing) use(masks *mask.Engine) {
	names := masks.Names()
	a.names.Store(&names)
}

// newAuditLog returns the log that a configuration describes, not yet open; nil when it
// is switched off.
func newAuditLog(cfg *config.Config, p *Process) *audit.Log {
	if cfg.AuditOff() {
		return nil
	}
	path, key := audit.Paths(cfg.Audit, cfg.DataDir)
	replica := ""
	if cfg.Store.Shared() {
		replica = replicaName(cfg)
	}
	return audit.New(audit.Options{
		Replica: replica, Path: path, KeyFile: key, Config: cfg.Audit, Version: p.version, Log: p.log.Logger,
		Stdout: os.Stdout, Clean: func(text string) string { return (*p.audit.names.Load())(text) },
	})
}

// bearerRefused records a request without a valid token.
func (s *core) bearerRefused(x *proxy.RequestInfo, reason string) {
	s.process.audit.log.Event(audit.BearerRefused, x, audit.Detail{Reason: reason})
}

// auditCheck returns why calls would be refused, "ok" when they would not.
func (s *Server) auditCheck() string {
	switch {
	case s.process.audit.log == nil:
		return "off"
	case s.process.audit.log.Ready() != nil:
		return "the audit log cannot be written, so calls are refused; the operational log says why"
	}
	return "ok"
}
