package server

import (
	"context"
	"encoding/json"
	"fmt"

	"aegis/proxy/policy"
)

// PolicyOutcome is what became of one call of a suite of expected decisions.
type PolicyOutcome = policy.Outcome

// PolicyVerdict is the decision about a call, and the rule that makes it.
type PolicyVerdict = policy.Verdict

// teamRules returns a team as the policy's offline decisions need it.
func (s *Server) teamRules(name string) (policy.Endpoint, bool) {
	for _, t := range s.teams {
		if t.name == name {
			return policy.Endpoint{Catalog: t.selection.Stage(), Operations: t.set.Tools(), Rules: t.rules.Policy, Confirms: t.confirm.Asks}, true
		}
	}
	return policy.Endpoint{}, false
}

// TestPolicies decides about every call of a suite, offline, and reports where the
// decision is another than expected. The error says what is wrong with the suite.
func (s *Server) TestPolicies(ctx context.Context, suite []byte) ([]PolicyOutcome, error) {
	parsed, err := policy.ParseSuite(suite)
	if err != nil {
		return nil, err
	}
	return parsed.Run(ctx, s.teamRules), nil
}

// ExplainPolicy says what the endpoint of a team, "" for the default one, would
// decide about a call and by which rule. Gitea is not asked; a call that needs an
// answer of Gitea's is denied, and the text says so.
func (s *Server) ExplainPolicy(ctx context.Context, team, login, tool string, args json.RawMessage) (PolicyVerdict, error) {
	e, ok := s.teamRules(team)
	if !ok {
		return PolicyVerdict{}, fmt.Errorf("the configuration has no team %q", team)
	}
	return policy.Try(ctx, e, nil, policy.Request{Login: login, Tool: tool, Args: args})
}
