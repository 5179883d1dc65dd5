package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
)

// Stage returns the outermost stage: it counts each call, makes a span of it and writes a line
// of the log. Counting is outside, since it counts what became of a panic, which
// [Calls] makes an error. m and t may be nil.
func Stage(m *Metrics, t *Tracing, log zerolog.Logger) proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.Chain(next, m.Stage(), t.Stage(), Calls(log))
	}
}

// Calls returns the stage of the log: it turns a panic into an internal error and
// writes one log line for every call, whatever became of it. The line has names
// and numbers, never an argument's value.
func Calls(log zerolog.Logger) proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (res *proxy.Result, err error) {
			began := time.Now()
			defer func() {
				if p := recover(); p != nil {
					// The value of a panic may hold anything; its type is enough to
					// find the place together with the stack in a debugger build.
					res, err = nil, &proxy.Error{Kind: proxy.KindInternal, Public: internalMessage,
						Err: fmt.Errorf("panic of type %T", p)}
					log.Error().Str("request_id", c.RequestID).Bytes("stack", debug.Stack()).Msg("panic in a call")
				}
				took := time.Since(began)
				c.Reply.Later(func() { logCall(log, c, res, err, took) })
			}()
			res, err = next.Handle(ctx, c)
			if err != nil {
				e := proxy.AsError(err)
				e.Shorten()
				err = e
			}
			return res, err
		})
	}
}

const internalMessage = "internal error; the request id names it in the server's log"

// outcome is what metrics, spans and the log say alike of a call.
type outcome struct {
	team string
	// tool and class are those of a tool that there is, else "" and "none": an unknown name is
	// the client's text, which must not become a label, and may be a secret.
	tool, class string
	kind        string // "ok" or that of the failure
	status      int    // Gitea's; 0 when it was not asked
}

func outcomeOf(c *proxy.Call, res *proxy.Result, err error) outcome {
	o := outcome{team: cmp.Or(c.Team, "default"), class: "none", kind: "ok"}
	if c.Tool != nil {
		o.tool, o.class = c.Tool.Name, string(c.Tool.Class())
	}
	if err != nil {
		e := proxy.AsError(err)
		o.kind, o.status = string(e.Kind), e.Status
	} else if res != nil {
		o.status = res.Status
	}
	return o
}

// logCall writes the line of a call. The log masks what it writes, so that a cause may be quoted.
func logCall(log zerolog.Logger, c *proxy.Call, res *proxy.Result, err error, took time.Duration) {
	o, ev := outcomeOf(c, res, err), log.Info()
	if err != nil {
		e := proxy.AsError(err)
		ev = log.Warn()
		if e.Kind == proxy.KindInternal {
			ev = log.Error()
		}
		ev.Str("reason", e.Public)
		if e.Err != nil {
			ev.Str("cause", proxy.Clip(e.Err.Error(), 500))
		}
	}
	if at := c.Stats.SchemaMismatch; at != "" {
		log.Warn().Str("request_id", c.RequestID).Str("tool", o.tool).Str("schema_mismatch", at).
			Msg("a result breaks its tool's output schema and goes out without structured content")
	}
	if c.TraceID != "" {
		ev.Str("trace_id", c.TraceID)
	}
	ev.Str("request_id", c.RequestID).Str("login", c.Identity.Login).Str("token", c.Identity.TokenName).
		Str("addr", c.Client.Addr).Str("client", c.Client.Name).Str("tool", o.tool).
		Str("outcome", o.kind).Int("status", o.status).Dur("took", took).Dur("upstream", c.Stats.Upstream).
		Int("attempts", c.Stats.Attempts).
		Int64("bytes_in", c.Stats.BytesIn).Int64("bytes_out", c.Stats.BytesOut).Msg("call")
}
