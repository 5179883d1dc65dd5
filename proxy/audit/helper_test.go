package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/audit"
)

// settings are the defaults of a configuration, with a small log.
func settings() config.Audit {
	cfg := config.Default().Audit
	cfg.Sync = "none" // the tests that are about the disk say otherwise
	return cfg
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// rig is a log in a folder of its own.
type rig struct {
	t    testing.TB
	dir  string
	path string
	o    audit.Options
	log  *audit.Log
	ops  *syncBuffer
	// farewell is how long the sinks may take at the end.
	farewell time.Duration
}

func newRig(t testing.TB, cfg config.Audit) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, dir: dir, path: filepath.Join(dir, "audit", "audit.jsonl"), ops: &syncBuffer{}, farewell: patience}
	r.o = audit.Options{Path: r.path, KeyFile: filepath.Join(dir, "audit.key"), Config: cfg, Version: "test",
		Log: zerolog.New(r.ops), Clean: clean}
	return r
}

// clean is masking for tests.
func clean(s string) string { return strings.ReplaceAll(s, "hunter2", "[REDACTED]") }

func (r *rig) open() *audit.Log {
	r.t.Helper()
	r.log = audit.New(r.o)
	r.log.Waits(r.farewell)
	if err := r.log.Open(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.log.Close)
	return r.log
}

// chain returns the two stages around what the test puts in place of the
// catalog and of Gitea.
func (r *rig) chain(lookup proxy.Stage, last proxy.HandlerFunc) proxy.Handler {
	return proxy.Chain(last, r.log.Stage(), lookup, r.log.RecordStart())
}

var issueCreate = &proxy.Tool{
	Name: "gitea_issue_create", OperationID: "issueCreateIssue", Method: "POST", Path: "/repos/{owner}/{repo}/issues",
	Risk: proxy.R2,
	Params: []proxy.Param{
		{Name: "owner", Wire: "owner", In: proxy.InPath}, {Name: "repo", Wire: "repo", In: proxy.InPath},
		{Name: "title", Wire: "title", In: proxy.InBody},
	},
}

// found stands for the catalog: every call means issueCreate.
func found(next proxy.Handler) proxy.Handler {
	return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
		c.Tool, c.Args = issueCreate, proxy.Arguments{"owner": "acme", "repo": "site", "title": "a title"}
		c.Resolve(issueCreate)
		return next.Handle(ctx, c)
	})
}

func answered(context.Context, *proxy.Call) (*proxy.Result, error) {
	return &proxy.Result{Status: 201, Kind: proxy.BodyJSON, Body: []byte(`{"id":7,"number":3,"html_url":"https://git.example.org/acme/site/issues/3"}`), Text: []byte("text")}, nil
}

func newCall() *proxy.Call {
	return &proxy.Call{
		RequestID: "REQ", Name: "gitea_issue_create", Received: time.Now(),
		Identity: &proxy.Identity{Login: "alice", Mode: proxy.ModeStatic, TokenName: "ci"},
		Client:   proxy.Client{Name: "probe", Version: "1", Addr: "192.0.2.7", Protocol: "2025-11-25"},
	}
}

// calls makes n calls that succeed.
func (r *rig) calls(n int) {
	r.t.Helper()
	h := r.chain(found, answered)
	for range n {
		if _, err := h.Handle(context.Background(), newCall()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// text returns the live file.
func (r *rig) text() string {
	r.t.Helper()
	b, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// records returns all records of the log, rotated files included.
func (r *rig) records() []audit.Record {
	r.t.Helper()
	at, err := audit.Locate([]string{r.path}, true)
	if err != nil {
		r.t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := audit.Show(at.Sources, audit.Filter{}, &audit.Printer{W: &out, JSON: true}); err != nil {
		r.t.Fatal(err)
	}
	var list []audit.Record
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	for dec.More() {
		var rec audit.Record
		if err := dec.Decode(&rec); err != nil {
			r.t.Fatal(err)
		}
		list = append(list, rec)
	}
	return list
}

// of returns the records of one event.
func of(list []audit.Record, e audit.Event) []audit.Record {
	var out []audit.Record
	for _, r := range list {
		if r.Event == e {
			out = append(out, r)
		}
	}
	return out
}

// verify verifies the whole log with what lies beside it.
func (r *rig) verify() *audit.Report {
	r.t.Helper()
	at, err := audit.Locate([]string{r.path}, true)
	if err != nil {
		r.t.Fatal(err)
	}
	rep, err := audit.Verify(at.Sources, audit.VerifyOptions{Keys: at.Keys, Checkpoints: at.Checkpoints})
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

// mustVerify fails unless the log is good.
func (r *rig) mustVerify() *audit.Report {
	r.t.Helper()
	rep := r.verify()
	if rep.Problem != nil {
		r.t.Fatalf("the log does not verify: %v", rep.Problem)
	}
	return rep
}

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// patience is how long the tests wait for what must come. It costs nothing when all
// is well.
const patience = 2 * time.Minute

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
