package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	path, key := auditFiles(cfg)
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

// auditFiles returns where a configuration puts the log and its private key.
func auditFiles(cfg *config.Config) (path, key string) {
	path, key = cfg.Audit.Path, cfg.Audit.KeyFile
	if path == "" {
		path = filepath.Join(cfg.DataDir, "audit", "audit.jsonl")
	}
	if key == "" {
		key = filepath.Join(cfg.DataDir, "audit.key")
	}
	return path, key
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

// AuditLog names the files of an audit log: those of a configuration, or those
// that are named, folders standing for all logs in them.
type AuditLog struct {
	Config *config.Config
	Files  []string
}

func (a AuditLog) locate() (*audit.Located, error) {
	if len(a.Files) > 0 {
		return audit.Locate(a.Files, false)
	}
	path, _ := auditFiles(a.Config)
	return audit.Locate([]string{path}, true)
}

// AuditVerification is how to verify a log.
type AuditVerification struct {
	// KeyFiles hold verifier keys; empty: the one beside the log.
	KeyFiles []string
	// NoteFiles hold signed checkpoints that were kept elsewhere.
	NoteFiles []string
	// Part accepts files that are not the beginning of the log.
	Part bool
}

// VerifyAudit verifies a log. It also returns where the key came from, "" for
// nowhere.
func VerifyAudit(a AuditLog, v AuditVerification) (*audit.Report, string, error) {
	var report *audit.Report
	var keys string
	// A last line without its end is what a reader sees while Aegis writes.
	for range 3 {
		at, err := a.locate()
		if err != nil {
			return nil, "", err
		}
		o := audit.VerifyOptions{Keys: at.Keys, Checkpoints: at.Checkpoints, Part: v.Part}
		keys = at.KeyFile
		if len(v.KeyFiles) > 0 {
			o.Keys, keys = nil, fmt.Sprint(v.KeyFiles)
		}
		for _, f := range v.KeyFiles {
			list, err := audit.ReadKeys(f)
			if err != nil {
				return nil, "", err
			}
			o.Keys = append(o.Keys, list...)
		}
		for _, f := range v.NoteFiles {
			signed, err := audit.ReadNote(f)
			if err != nil {
				return nil, "", err
			}
			o.Checkpoints = append(o.Checkpoints, signed)
		}
		if report, err = audit.Verify(at.Sources, o); err != nil || !report.Torn {
			return report, keys, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return report, keys, nil
}

// AuditChains returns the logs that names stand for, each to be verified by itself:
// folders that each hold a log with a key of its own, as replicas write them, are one
// log each; everything else is files of one log.
func AuditChains(names []string) [][]string {
	own := 0
	for _, name := range names {
		if keys, err := filepath.Glob(filepath.Join(name, "*.pub")); err == nil && len(keys) > 0 {
			own++
		}
	}
	if own < 2 || own != len(names) {
		return [][]string{names}
	}
	var chains [][]string
	for _, name := range names {
		chains = append(chains, []string{name})
	}
	return chains
}

// MergeAudit writes the records of several logs that view selects to w, in the order
// of time. It returns how many lines were no records.
func MergeAudit(names []string, view AuditView, w io.Writer) (skipped int, err error) {
	var chains []audit.Chain
	for _, name := range names {
		at, err := audit.Locate([]string{name}, false)
		if err != nil {
			return 0, err
		}
		chains = append(chains, audit.Chain{Name: name, Sources: at.Sources})
	}
	f := audit.Filter{Since: view.Since, Until: view.Until, Identity: view.Identity, Tool: view.Tool, Outcome: view.Outcome, Event: view.Event}
	return audit.Merge(chains, f, &audit.Printer{W: w, JSON: view.JSON})
}

// AuditView selects records and how to show them; see [audit.Filter].
type AuditView struct {
	Since, Until                   time.Time
	Identity, Tool, Outcome, Event string
	JSON, Follow                   bool
}

// ShowAudit writes the records of a log that view selects to w, and with Follow
// those that are still to come until ctx ends. It returns how many lines were
// no records.
func ShowAudit(ctx context.Context, a AuditLog, view AuditView, w io.Writer) (skipped int, err error) {
	at, err := a.locate()
	if err != nil {
		return 0, err
	}
	f := audit.Filter{Since: view.Since, Until: view.Until, Identity: view.Identity, Tool: view.Tool, Outcome: view.Outcome, Event: view.Event}
	p := &audit.Printer{W: w, JSON: view.JSON}
	if view.Follow {
		if at.Live == "" {
			return 0, fmt.Errorf("none of the files is written to any more; follow the log itself")
		}
		return 0, audit.Follow(ctx, at.Live, f, p)
	}
	return audit.Show(at.Sources, f, p)
}
