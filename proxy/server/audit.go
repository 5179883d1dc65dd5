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

// auditing is the audit log, which all servers of a process share, and the
// masking that was built last.
type auditing struct {
	log   *audit.Log // nil: switched off
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

// newAuditing builds the log that a configuration describes and touches no file.
func newAuditing(cfg *config.Config, s *Server) *auditing {
	a := &auditing{}
	if cfg.AuditOff() {
		return a
	}
	path, key := audit.Paths(cfg.Audit, cfg.DataDir)
	replica := ""
	if cfg.Store.Shared() {
		replica = replicaName(cfg)
	}
	a.log = audit.New(audit.Options{
		Replica: replica, Path: path, KeyFile: key, Config: cfg.Audit, Version: s.version, Log: s.log, Stdout: os.Stdout,
		Clean: a.clean,
	})
	return a
}

// OpenAudit opens the audit log, and makes its folder, file and key when they
// are missing. Serving does so too; doing it before makes sure that nothing
// listens while the log cannot be written. The error says what to do.
func (s *Server) OpenAudit() error {
	if s.audit.log == nil {
		return nil
	}
	return s.audit.log.Open()
}

// bearerRefused records a request without a valid token.
func (s *Server) bearerRefused(x *proxy.Exchange, reason string) {
	s.audit.log.Event(audit.BearerRefused, x, audit.Detail{Reason: reason})
}

// reloaded records what became of a changed configuration.
func (s *Server) reloaded(err error) {
	if err != nil {
		s.audit.log.Event(audit.ConfigRefused, nil, audit.Detail{Reason: "the changed configuration is not used; the operational log says why"})
		return
	}
	s.audit.log.Event(audit.ConfigReloaded, nil, audit.Detail{Version: s.version})
}

// auditCheck returns why calls would be refused, "ok" when they would not.
func (s *Server) auditCheck() string {
	switch {
	case s.audit.log == nil:
		return "off"
	case s.audit.log.Ready() != nil:
		return "the audit log cannot be written, so calls are refused; the operational log says why"
	}
	return "ok"
}

// auditLag returns the audit log's state for metrics.
func (s *Server) auditLag() (pending int, oldest time.Duration) {
	lag := s.audit.log.Lag()
	return lag.Pending, lag.Oldest
}
