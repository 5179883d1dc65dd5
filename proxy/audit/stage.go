package audit

import (
	"context"
	"errors"
	"time"

	"aegis/proxy"
)

// The texts of refusals. The operator reads why in the log and in /readyz.
const (
	refusedText = "the audit log cannot be written, so the call was not carried out; " +
		"tell whoever runs this server, and try again later"
	withheldText = "Gitea has answered, but the record of it could not be written, so the answer is withheld; " +
		"the call may have changed something: check before you repeat it"
	// retryAfter is long enough for a disk that was slow, and short enough for an agent to wait.
	retryAfter = 5 * time.Second
)

// calling is what the two stages of one call share.
type calling struct {
	started  uint64
	pending  *entry // the record of the start, when it was not waited for to the end
	refused  bool   // the record of the start is not in the log and never will be
	call     *Call
	object   *Object
	client   *Client
	upstream int // Gitea's status
}

// callingKey is the key of the call's *calling in its context.
type callingKey struct{}

// Stage returns the outer stage: whatever becomes of a call below it, panic
// included, leaves exactly one [ToolInvocation] before the client learns it.
// A log that cannot be written refuses the call, or withholds its answer. A nil
// log has no stage.
func (l *Log) Stage() proxy.Stage {
	if l == nil {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (res *proxy.Result, err error) {
			s := &invocation{log: l, c: c, entered: time.Now()}
			// Nothing below could be recorded, so nothing below is tried, and calls by the thousand
			// do not each wait for a disk that does not answer.
			if cause := l.Ready(); cause != nil {
				l.refused.Add(1)
				return nil, unavailable(cause)
			}
			defer func() {
				if !s.ended { // a panic passes; the observing stage answers "internal"
					_ = s.end(nil, proxy.NewError(proxy.KindInternal, "", nil))
				}
			}()
			res, err = next.Handle(context.WithValue(ctx, callingKey{}, &s.calling), c)
			// A deadline is not meant: then the client is still there, and waits.
			if errors.Is(ctx.Err(), context.Canceled) && err == nil {
				// The client has gone and gets nothing of this; the record says so.
				err = proxy.NewError(proxy.KindCancelled, "the call was cancelled", ctx.Err())
				s.gone = res
				res = nil
			}
			if cause := s.end(res, err); cause != nil {
				return nil, cause
			}
			return res, err
		})
	}
}

// unavailable is what a client gets; the cause is for the log.
func unavailable(cause error) *proxy.Error {
	return &proxy.Error{Kind: proxy.KindAuditUnavailable, Public: refusedText, RetryAfter: retryAfter, Err: cause}
}

// RecordStart returns the inner stage, which belongs right behind the lookup of the
// tool: it writes [ToolCallStarted] and lets the call go on only then.
func (l *Log) RecordStart() proxy.Stage {
	if l == nil {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			s, ok := ctx.Value(callingKey{}).(*calling)
			if !ok { // a wiring mistake must not become an unrecorded call
				return nil, unavailable(errors.New("the outer audit stage is missing"))
			}
			s.call = l.describe(c)
			var e entry // not kept through an outage: the call is refused then
			err := l.add(l.record(ToolCallStarted, c, s), &e)
			if err == nil {
				s.started, err = l.wait(ctx, &e)
			}
			if err != nil {
				return nil, s.stopped(ctx, &e, err)
			}
			res, err := next.Handle(ctx, c)
			if err == nil && res != nil {
				s.upstream = res.Status
				if !c.Tool.ReadOnly {
					s.object = objectOf(c, res)
				}
			}
			return res, err
		})
	}
}

// stopped notes why a call ends before the request goes to Gitea.
func (s *calling) stopped(ctx context.Context, e *entry, err error) error {
	var u *unavailableError
	if errors.As(err, &u) {
		if s.refused = u.dropped; !u.dropped {
			s.pending = e
		}
		return unavailable(err)
	}
	s.pending = e
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return proxy.NewError(proxy.KindTimeout, "the call's time was up before it began; nothing was sent", err)
	}
	return proxy.NewError(proxy.KindCancelled, "the call was cancelled before it began; nothing was sent", err)
}

// invocation is one pass through the outer stage.
type invocation struct {
	calling
	log     *Log
	c       *proxy.Call
	entered time.Time
	ended   bool
	gone    *proxy.Result // what a client that went away would have got
}

// end records the outcome. The error is what the client gets instead when the
// record cannot be written.
func (s *invocation) end(res *proxy.Result, err error) error {
	s.ended = true
	l := s.log
	if s.pending != nil {
		var u *unavailableError
		var late error
		// The client may be gone, but the two records of a call belong together.
		s.started, late = l.wait(context.Background(), s.pending)
		s.refused = errors.As(late, &u) && u.dropped
	}
	if s.refused {
		// The log fails and the call was not carried out. The record at the end
		// of the outage includes it in its count.
		l.refused.Add(1)
		return nil
	}
	// Kept through an outage: what Gitea has done must get on record, however late.
	r := l.record(ToolInvocation, s.c, &s.calling)
	r.Started = s.started
	r.Result = s.result(res, err)
	e := entry{keep: true}
	if err == nil {
		e.answer = r
	}
	cause := l.add(r, &e)
	if cause == nil {
		_, cause = l.wait(context.Background(), &e)
	}
	if cause == nil {
		return nil
	}
	l.o.Log.Error().Str("request_id", s.c.RequestID).Err(cause).
		Msg("the record of a call could not be written; its answer is withheld")
	l.mu.Lock()
	e.withhold() // the log may still write it
	l.mu.Unlock()
	// Gitea was not asked, so the client can simply call again.
	if s.started == 0 {
		return unavailable(cause)
	}
	return &proxy.Error{Kind: proxy.KindAuditUnavailable, Public: withheldText, Err: cause}
}

// result describes the outcome. A client that went away got nothing, but Gitea's status
// is on record: the call may have changed something.
func (s *invocation) result(res *proxy.Result, err error) *Result {
	c, f := s.c, &s.c.Stats
	out := &Result{
		Outcome: "ok", Status: s.upstream, Upstream: f.Upstream.Microseconds(), Attempts: f.Attempts,
		BytesIn: f.BytesIn, BytesOut: f.BytesOut, MaskHits: f.MaskHits,
		Limiter: f.Limiter, Policy: f.Policy, WriteToken: f.WriteToken, Object: s.object,
	}
	// From the arrival on: the client waits for the stages outside this one, too.
	if !c.Received.IsZero() {
		out.Queue, out.Total = s.entered.Sub(c.Received).Microseconds(), time.Since(c.Received).Microseconds()
	} else {
		out.Total = time.Since(s.entered).Microseconds()
	}
	if err != nil {
		e := proxy.AsError(err)
		out.Outcome = string(e.Kind)
		if e.Status != 0 {
			out.Status = e.Status
		}
		if s.gone == nil {
			return out
		}
		res = s.gone
	}
	if res != nil {
		if s.started != 0 { // else Aegis answered by itself
			out.Status = res.Status
		}
		if err == nil {
			out.Returned = res.Size()
		}
		if t := res.Truncation; t != nil {
			out.Truncation = &Truncation{Reason: t.Reason, Returned: t.Returned, Available: t.Available}
		}
	}
	return out
}

// record returns what every record of a call has. The tool and the client are described once,
// for both records: masking their texts takes longer than the rest.
func (l *Log) record(event Event, c *proxy.Call, s *calling) *Record {
	call := s.call
	if call == nil && c.Tool != nil { // refused between lookup and start
		call = l.describe(c)
	}
	if s.client == nil {
		s.client = &Client{
			Name: l.clean(c.Client.Name), Version: l.clean(c.Client.Version),
			Protocol: proxy.Clip(c.Client.Protocol, 32), Addr: proxy.Clip(c.Client.Addr, 64),
		}
	}
	return &Record{
		Event: event, RequestID: c.RequestID, Team: c.Team, Identity: identityOf(c.Identity, l.name(c.Options.Sudo)),
		Call: call, Client: s.client,
	}
}
