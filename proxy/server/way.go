package server

import (
	"net/http"
	"slices"

	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/proxy/envelope"
	"aegis/proxy/telemetry"
)

// hop is a handler that HTTP requests pass, and its name in docs/architecture.md.
type hop struct {
	name string
	wrap func(http.Handler) http.Handler
}

// hops returns what requests pass between [Live], which finds the generation in force, and
// the handlers of mux.
func (s *Server) hops(mux *http.ServeMux) []hop {
	return []hop{
		{"edge", s.edge(mux).Wrap},
		{"limit", func(next http.Handler) http.Handler { return s.teams[0].limits.AddressBut(isProbe, next) }},
	}
}

// teamHops returns what requests to a team's endpoint pass between mux and MCP.
func (s *core) teamHops(t *team) []hop {
	return []hop{
		{"guard", s.guardOf(t).Wrap},
		{"trace", func(next http.Handler) http.Handler { return s.tracing.Requests(s.base.Path+t.path(), next) }},
	}
}

// through returns last behind the hops.
func through(hops []hop, last http.Handler) http.Handler {
	for _, h := range slices.Backward(hops) {
		last = h.wrap(last)
	}
	return last
}

// stage is a stage of the chain and its name in docs/architecture.md.
type stage struct {
	name  string
	stage proxy.Stage // nil: the configuration has no use for it
}

// stages returns the way of a call from MCP to Gitea: the first stage sees a call first
// and its result last.
func (s *core) stages(t *team, sel *catalog.Selection) []stage {
	// Three parts have two stages: what each of them does in the second must come before, or
	// after, what is between.
	env := envelope.New(t.rules.Results, s.cursors)
	log := s.process.audit.log
	return []stage{
		{"telemetry", telemetry.Stage(s.process.metrics, s.tracing, s.log)},
		{"errors", t.masks.Errors()}, // whatever stage they come from
		{"audit", log.Stage()},
		{"local", env.RenderLocal()},
		{"catalog", sel.Stage()},
		{"start", log.RecordStart()}, // what is below may have effects
		{"access", s.access()},       // a call that its grant does not cover uses up no limit
		{"limit", t.limits.Stage()},
		{"policy", t.policy.Stage()},
		{"confirm", t.confirm.Stage()}, // people are not asked about what is refused anyway
		{"envelope", env.Stage()},
		{"mask", t.masks.Stage()}, // before anything is cut off: half a secret is not recognised
		{"sanitize", envelope.Sanitize(t.rules.Results.Sanitize)},
		{"rows", t.policy.Rows()}, // nothing above learns of what they hide
	}
}

// chain returns the handler of a team's calls. It is built for the team and one selection, so
// that no call has to look up which rules are its own.
func (s *core) chain(t *team, sel *catalog.Selection) proxy.Handler {
	var stages []proxy.Stage
	for _, st := range s.stages(t, sel) {
		stages = append(stages, st.stage)
	}
	return proxy.Chain(s.gitea.client, stages...)
}
