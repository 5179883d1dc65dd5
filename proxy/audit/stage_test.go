package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy"
	"aegis/proxy/audit"
)

// TestTwoRecords holds what a call leaves, field by field.
func TestTwoRecords(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	h := r.chain(found, func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
		c.Stats = proxy.CallStats{Upstream: 3 * time.Millisecond, Attempts: 1, BytesIn: 10, BytesOut: 20,
			MaskHits: map[string]int{"jwt": 2}}
		res, err := answered(ctx, c)
		res.Truncation = &proxy.Truncation{Reason: "items", Returned: 1, Available: 5, Cursor: "a-cursor-nobody-needs"}
		return res, err
	})
	began := time.Now()
	c := newCall()
	c.Team, c.Options.Sudo = "blue", "bob"
	if _, err := h.Handle(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	list := r.records()
	start, end := of(list, audit.ToolCallStarted), of(list, audit.ToolInvocation)
	if len(start) != 1 || len(end) != 1 || start[0].Seq != 3 || end[0].Seq != 4 {
		t.Fatalf("records are %+v", list)
	}
	common := audit.Record{
		RequestID: "REQ", Team: "blue",
		Identity: &audit.Identity{Login: "alice", Mode: "static", Token: "ci", Sudo: "bob"},
		Client:   &audit.Client{Name: "probe", Version: "1", Protocol: "2025-11-25", Addr: "192.0.2.7"},
		Call: &audit.Call{
			Tool: "gitea_issue_create", Operation: "issueCreateIssue", Method: "POST",
			Path: "/repos/{owner}/{repo}/issues", Risk: "R2",
			Target: &audit.Target{Owner: "acme", Repo: "site"}, Arguments: []string{"owner", "repo", "title"},
		},
	}
	for got, want := range map[*audit.Record]audit.Record{&start[0]: common, &end[0]: common} {
		want.Seq, want.Time, want.Prev, want.Hash, want.Event = got.Seq, got.Time, got.Prev, got.Hash, got.Event
		if got.Event == audit.ToolInvocation {
			want.Started = 3
			want.Result = &audit.Result{
				Outcome: "ok", Status: 201, Upstream: 3000, Attempts: 1, BytesIn: 10, BytesOut: 20, Returned: 4,
				MaskHits:   map[string]int{"jwt": 2},
				Truncation: &audit.Truncation{Reason: "items", Returned: 1, Available: 5},
				Object:     &audit.Object{Kind: "issue", ID: 7, Number: 3, URL: "/acme/site/issues/3"},
				Queue:      got.Result.Queue, Total: got.Result.Total,
			}
			if got.Result.Total < got.Result.Queue || got.Result.Total <= 0 {
				t.Errorf("durations are %d and %d µs", got.Result.Queue, got.Result.Total)
			}
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("record differs (-want +got):\n%s", diff)
		}
		if got.Time.Location() != time.UTC || got.Time.Before(began.Round(0)) || got.Time.After(time.Now()) {
			t.Errorf("time is %v", got.Time)
		}
	}
	r.log.Close()
	r.mustVerify()
}

// outcomes are ways for a call to end.
var outcomes = map[string]struct {
	lookup  proxy.Stage
	last    proxy.HandlerFunc
	outcome string
	status  int
	started int
}{
	"ok":      {found, answered, "ok", 201, 1},
	"failure": {found, failing(&proxy.Error{Kind: proxy.KindNotFound, Status: 404}), "not_found", 404, 1},
	"timeout": {found, failing(&proxy.Error{Kind: proxy.KindTimeout}), "timeout", 0, 1},
	"cancel":  {found, failing(&proxy.Error{Kind: proxy.KindCancelled}), "cancelled", 0, 1},
	"defect":  {found, failing(errors.New("a defect")), "internal", 0, 1},
	"refusal": {func(proxy.Handler) proxy.Handler { return knownRefusing }, answered, "invalid_arguments", 0, 0},
	"unknown": {func(proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(failing(&proxy.Error{Kind: proxy.KindUnknownTool}))
	}, answered, "unknown_tool", 0, 0},
	"itself": {func(proxy.Handler) proxy.Handler { // as gitea_search_tools is
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			c.Tool = issueCreate
			return answered(ctx, c)
		})
	}, panicking, "ok", 0, 0},
	"panic":   {found, panicking, "internal", 0, 1},
	"panic 2": {func(proxy.Handler) proxy.Handler { return proxy.HandlerFunc(panicking) }, answered, "internal", 0, 0},
}

func failing(err error) proxy.HandlerFunc {
	return func(context.Context, *proxy.Call) (*proxy.Result, error) { return nil, err }
}

func panicking(context.Context, *proxy.Call) (*proxy.Result, error) { panic("hunter2") }

var knownRefusing = proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
	c.Tool = issueCreate
	return nil, &proxy.Error{Kind: proxy.KindInvalidArguments}
})

// guarded runs a call as the layer above does: a panic does not end the process.
func guarded(h proxy.Handler, c *proxy.Call) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("panic")
		}
	}()
	_, err = h.Handle(context.Background(), c)
	return err
}

func TestExactlyOneResultForEveryOutcome(t *testing.T) {
	t.Parallel()
	for name, tc := range outcomes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			r.open()
			_ = guarded(r.chain(tc.lookup, tc.last), newCall())
			list := r.records()
			start, end := of(list, audit.ToolCallStarted), of(list, audit.ToolInvocation)
			if len(start) != tc.started || len(end) != 1 {
				t.Fatalf("%d starts and %d results, want %d and 1", len(start), len(end), tc.started)
			}
			if res := end[0].Result; res.Outcome != tc.outcome || res.Status != tc.status {
				t.Errorf("outcome %s status %d, want %s and %d", res.Outcome, res.Status, tc.outcome, tc.status)
			}
			if tc.started == 1 && end[0].Started != start[0].Seq {
				t.Errorf("the result is of record %d, want %d", end[0].Started, start[0].Seq)
			}
			if strings.Contains(r.text(), "hunter2") {
				t.Error("the value of a panic is in the log")
			}
			r.log.Close()
			r.mustVerify()
		})
	}
}

func TestUnknownToolLeavesItsNameOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	c := newCall()
	c.Name = "a-secret-typed-as-a-name"
	_ = guarded(r.chain(outcomes["unknown"].lookup, answered), c)
	if end := of(r.records(), audit.ToolInvocation); len(end) != 1 || end[0].Call != nil {
		t.Errorf("records are %+v", end)
	}
	if strings.Contains(r.text(), "a-secret") {
		t.Error("the client's text is in the log")
	}
}

// TestSecretsInWrongPlaces: neither the value nor a beginning of it.
func TestSecretsInWrongPlaces(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	places := map[string]func(c *proxy.Call){
		"owner":        func(c *proxy.Call) { c.Args["owner"] = secret },
		"repo":         func(c *proxy.Call) { c.Args["repo"] = "x-" + secret },
		"odd owner":    func(c *proxy.Call) { c.Args["owner"] = "pass phrase hunter" },
		"title":        func(c *proxy.Call) { c.Args["title"] = secret },
		"unknown name": func(c *proxy.Call) { c.Args[secret] = "x" },
		"nested":       func(c *proxy.Call) { c.Args["body"] = map[string]any{"x": []any{secret}} },
		"sudo":         func(c *proxy.Call) { c.Options.Sudo = secret },
		"client":       func(c *proxy.Call) { c.Client.Name, c.Client.Version = secret, secret },
		"raw args":     func(c *proxy.Call) { c.RawArgs = json.RawMessage(`{"a":"hunter2"}`) },
		"cursor":       func(c *proxy.Call) { c.Options.Cursor = secret },
		"tool name":    func(c *proxy.Call) { c.Name = secret },
	}
	for name, put := range places {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			r.open()
			lookup := func(next proxy.Handler) proxy.Handler {
				return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
					c.Tool, c.Args = issueCreate, proxy.Arguments{"owner": "acme", "repo": "site", "title": "a title"}
					put(c)
					c.Resolve(issueCreate)
					return next.Handle(ctx, c)
				})
			}
			last := func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
				title, _ := c.Args["title"].(string)
				body := fmt.Sprintf(`{"id":1,"title":%q,"html_url":"https://git.example.org/acme/site/releases/tag/%s"}`, title, strings.ReplaceAll(title, " ", "%20"))
				return &proxy.Result{Status: 201, Kind: proxy.BodyJSON, Body: []byte(body)}, nil
			}
			if _, err := r.chain(lookup, last).Handle(context.Background(), newCall()); err != nil {
				t.Fatal(err)
			}
			if text := r.text(); strings.Contains(text, "hunt") || strings.Contains(text, "pass phrase") ||
				strings.Contains(text, "a title") || strings.Contains(text, "a%20title") {
				t.Errorf("an argument's value is in the log:\n%s", text)
			}
			if len(of(r.records(), audit.ToolInvocation)) != 1 {
				t.Error("the call left no result")
			}
		})
	}
}

// TestClientGone: the record says so, and how long it took.
func TestClientGone(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"while Gitea works": false, "after Gitea answered": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			r.open()
			ctx, cancel := context.WithCancel(context.Background())
			h := r.chain(found, func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
				time.Sleep(3 * time.Millisecond)
				cancel()
				if late {
					return answered(ctx, c)
				}
				<-ctx.Done()
				return nil, &proxy.Error{Kind: proxy.KindCancelled}
			})
			if _, err := h.Handle(ctx, newCall()); proxy.AsError(err).Kind != proxy.KindCancelled {
				t.Errorf("error is %v", err)
			}
			end := of(r.records(), audit.ToolInvocation)
			if len(end) != 1 || end[0].Result.Outcome != "cancelled" || end[0].Result.Total < 3000 ||
				end[0].Started == 0 {
				t.Fatalf("records are %+v", end)
			}
			if late && (end[0].Result.Status != 201 || end[0].Result.Object == nil) {
				t.Errorf("what Gitea did is not in the record: %+v", end[0].Result)
			}
		})
	}
}

func TestCancelledBeforeTheStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	asked := false
	_, err := r.chain(found, func(context.Context, *proxy.Call) (*proxy.Result, error) { asked = true; return nil, nil }).Handle(ctx, newCall())
	end := of(r.records(), audit.ToolInvocation)
	if len(end) != 1 || end[0].Result.Outcome != "cancelled" && !asked {
		t.Errorf("error %v, records %+v", err, end)
	}
	if rep := r.mustVerify(); rep.Unfinished != 0 {
		t.Errorf("%d calls without result", rep.Unfinished)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	h := r.chain(found, answered)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 50 {
				if _, err := h.Handle(context.Background(), newCall()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	list := r.records()
	if a, b := len(of(list, audit.ToolCallStarted)), len(of(list, audit.ToolInvocation)); a != 1600 || b != 1600 {
		t.Errorf("%d starts, %d results", a, b)
	}
	used := map[uint64]bool{}
	for _, rec := range of(list, audit.ToolInvocation) {
		if used[rec.Started] {
			t.Fatalf("record %d has two results", rec.Started)
		}
		used[rec.Started] = true
	}
	r.log.Close()
	if rep := r.mustVerify(); len(rep.Notes) != 0 {
		t.Errorf("notes: %v", rep.Notes)
	}
}

func TestWithoutALog(t *testing.T) {
	t.Parallel()
	var none *audit.Log
	if none.Stage() != nil || none.RecordStart() != nil || none.Ready() != nil {
		t.Error("no log has stages")
	}
	none.Event(audit.BearerRefused, nil, audit.Detail{})
	none.Close()

	// A log that nobody opened refuses, and so does an inner stage on its own.
	r := newRig(t, settings())
	r.log = audit.New(r.o)
	_, err := r.chain(found, answered).Handle(context.Background(), newCall())
	if proxy.AsError(err).Kind != proxy.KindAuditUnavailable {
		t.Errorf("a closed log answers %v", err)
	}
	r.open()
	_, err = proxy.Chain(proxy.HandlerFunc(answered), found, r.log.RecordStart()).Handle(context.Background(),
		newCall())
	if proxy.AsError(err).Kind != proxy.KindAuditUnavailable {
		t.Errorf("the inner stage alone answers %v", err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	c := &clock{at: time.Unix(1_900_000_000, 0)}
	r.o.Now = c.now
	r.open()
	x := &proxy.RequestInfo{RequestID: "RQ", Addr: "192.0.2.1", Team: "blue",
		Identity: &proxy.Identity{Login: "alice", Mode: proxy.ModeOAuth}}
	r.log.Event(audit.Login, x, audit.Detail{Reason: strings.Repeat("é", 1000)})
	for range 5000 { // a stranger at the door
		r.log.Event(audit.BearerRefused, x, audit.Detail{Reason: "unknown"})
	}
	c.add(time.Second)
	r.log.Event(audit.BearerRefused, x, audit.Detail{Reason: "unknown"})
	r.log.Close()
	list := r.records()
	if l := of(list, audit.Login); len(l) != 1 || l[0].Identity.Login != "alice" || l[0].Client.Addr != "192.0.2.1" ||
		l[0].RequestID != "RQ" || len(l[0].Detail.Reason) > 510 {
		t.Errorf("login is %+v", l)
	}
	refused := of(list, audit.BearerRefused)
	if len(refused) != 101 {
		t.Fatalf("%d refusals recorded, want the first 100 and one later", len(refused))
	}
	if last := refused[100].Detail; last.Suppressed != 4900 {
		t.Errorf("%d refusals suppressed, want 4900", last.Suppressed)
	}
	r.mustVerify()
}
