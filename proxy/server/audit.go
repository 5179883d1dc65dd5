package server

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/audit"
	"aegis/proxy/mask"
)

// auditing is the audit log of a process, and the masking in force.
type auditing struct {
	log   *audit.Log // nil: switched off, or the process is only for looking
	masks atomic.Pointer[mask.Engine]
	names atomic.Pointer[cleanNames]
}

// cleanNames remembers what masking makes of names that calls repeat: owners,
// repositories, clients. It belongs to one set of rules.
type cleanNames struct {
	masks *mask.Engine
	mu    sync.RWMutex
	done  map[string]string
}

// What is remembered: so many texts of so many bytes.
const (
	maxCleanNames = 1024
	maxCleanName  = 128
)

// clean masks a text of a client for the audit log.
func (a *auditing) clean(text string) string {
	masks := a.masks.Load()
	n := a.names.Load()
	if n == nil || n.masks != masks {
		n = &cleanNames{masks: masks, done: map[string]string{}}
		a.names.Store(n)
	}
	n.mu.RLock()
	out, ok := n.done[text]
	n.mu.RUnlock()
	if ok {
		return out
	}
	masked, _ := masks.Bytes([]byte(text))
	out = string(masked)
	if len(text) <= maxCleanName {
		n.mu.Lock()
		if len(n.done) >= maxCleanNames {
			clear(n.done)
		}
		n.done[text] = out
		n.mu.Unlock()
	}
	return out
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
		Replica: replica, Path: path, KeyFile: key, Config: cfg.Audit, Version: p.version, Log: p.log.Logger, Stdout: os.Stdout,
		Clean: p.audit.clean,
	})
}

// bearerRefused records a request without a valid token.
func (s *Server) bearerRefused(x *proxy.RequestInfo, reason string) {
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

// auditLag returns the audit log's state for metrics.
func (s *Server) auditLag() (pending int, oldest time.Duration) {
	lag := s.process.audit.log.Lag()
	return lag.Pending, lag.Oldest
}
