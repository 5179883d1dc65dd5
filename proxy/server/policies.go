package server

import "aegis/proxy/policy"

// Rules returns a team, "" for the default one, as decisions that are made offline
// need it; false when there is no such team.
func (s *Server) Rules(team string) (policy.Endpoint, bool) {
	for _, t := range s.teams {
		// The selection of the configuration, not what is left of it on the live server: offline
		// there is none.
		if t.name == team {
			return policy.Endpoint{
				Catalog: t.selection.Stage(), Operations: t.set.Tools(), Rules: t.rules.Policy,
				Confirms: t.confirm.Asks,
			}, true
		}
	}
	return policy.Endpoint{}, false
}
