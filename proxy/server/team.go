package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"aegis/config"
	"aegis/proxy/catalog"
	"aegis/proxy/limit"
	"aegis/proxy/mask"
	"aegis/proxy/mcp"
	"aegis/proxy/oauth"
	"aegis/proxy/policy"
	"aegis/proxy/policy/confirm"
	"aegis/proxy/policy/members"
)

// team is one endpoint and its rules. The first one is the default team, whose
// name is "".
type team struct {
	name      string
	rules     config.Team
	set       *catalog.Set
	selection *catalog.Selection
	masks     *mask.Engine
	limits    *limit.Limiter
	gate      *members.Gate
	confirm   *confirm.Confirm            // nil: nothing is asked
	policy    *policy.Policy              // what agents may do
	serving   atomic.Pointer[servedTools] // with gitea.hide_missing, once it is known what is missing
	guard     *oauth.Guard
	handler   http.Handler // with the guard in front
	metadata  http.Handler // RFC 9728
}

// path is the endpoint's path below the public URL's.
func (t *team) path() string {
	if t.name == "" {
		return MCPPath
	}
	return MCPPath + "/" + t.name
}

// key returns the configuration key of a setting of the team.
func (t *team) key(rest string) string {
	if t.name == "" {
		return rest
	}
	return "teams." + t.name + "." + rest
}

// label names the team in logs.
func (t *team) label() string {
	if t.name == "" {
		return "default"
	}
	return t.name
}

// newTeams returns the teams of a configuration, the default one first.
func newTeams(cfg *config.Config) []*team {
	rules := cfg.DefaultTeam()
	if len(cfg.Teams) == 0 && rules.Members.Empty() {
		rules.Members.Everyone = true // a caller that Aegis does not know never gets here
	}
	list := []*team{{rules: rules}}
	for _, name := range slices.Sorted(maps.Keys(cfg.Teams)) {
		list = append(list, &team{name: name, rules: cfg.Teams[name]})
	}
	return list
}

// Team returns the tools of a team by its name, "" for the default one; false
// when there is no such team.
func (s *Server) Team(name string) (*catalog.Selection, bool) {
	for _, t := range s.teams {
		if t.name == name {
			return t.tools(), true
		}
	}
	return nil, false
}

// tools returns what the team's clients see.
func (t *team) tools() *catalog.Selection {
	if served := t.serving.Load(); served != nil {
		return served.selection
	}
	return t.selection
}

// buildTeam makes what is between a team's clients and Gitea.
func (s *Server) buildTeam(t *team, log Log) (err error) {
	switch first := s.teams[0]; {
	case t == first:
		t.masks, err = s.process.masking(s.cfg, log)
	case !s.cfg.IsSet(t.key("masking")): // the same rules, and an engine takes time and memory
		t.masks = first.masks
	default:
		s.process.building("masking of " + t.name)
		t.masks, err = newMask(s.cfg, t.rules.Masking)
	}
	if err != nil {
		return maskProblem(s.cfg, t, err)
	}
	t.limits = limit.New(s.teamLimits(t), s.limitOptions(t.name))
	t.gate = members.NewGate(s.gitea.people, t.rules.Members)
	if t.confirm, err = s.teamConfirm(t); err != nil {
		return err
	}
	s.process.building("policy" + t.path())
	t.policy, err = policy.New(t.rules.Policy, policy.Options{
		Operations: t.set.Tools(), Lookup: policy.Ask(s.gitea.client, s.library.set.Tools()), Hosts: s.giteaHosts(),
		Counters: s.process.writes, Endpoint: t.name,
	})
	if err != nil {
		return config.Problems{s.cfg.Problem(t.key("policy"), err.Error(), "correct it")}
	}
	return nil
}

// teamLimits returns the team's limits. What a team has of its own counts at its
// endpoint; caps on calls at a time count for all endpoints together, and addresses at
// the edge alone.
func (s *Server) teamLimits(t *team) config.Limits {
	cfg := s.cfg.Limits
	if l := t.rules.Limits; t.name != "" {
		cfg.Address = config.Limit{}
		cfg.Identity, cfg.Team, cfg.Tools = l.Identity, l.Team, l.Tools
		cfg.Read, cfg.Write, cfg.Destructive = l.Read, l.Write, l.Destructive
	}
	return cfg
}

// giteaHosts returns the hosts at which people and Aegis reach Gitea, so that
// links in texts to other hosts are no repositories of it. Where the public one is
// not known, which gitea.url need not be, every link is judged: nil.
func (s *Server) giteaHosts() []string {
	hosts := []string{s.cfg.Gitea.URL.Host}
	switch u := s.cfg.Auth.OAuth.BrowserURL; {
	case u != nil:
		hosts = append(hosts, u.Host)
	case !s.cfg.Gitea.Passthrough:
		return nil
	}
	if s.cfg.Gitea.Passthrough {
		hosts = append(hosts, s.base.Host)
	}
	return hosts
}

// teamConfirm returns what asks people before calls of the team run.
func (s *Server) teamConfirm(t *team) (*confirm.Confirm, error) {
	keys := s.store.Derive("confirm")
	account := ""
	if s.cfg.Auth.OAuth.Enabled {
		account = s.base.String() + "/account"
	}
	o := confirm.Options{Store: s.store, Key: keys[0], AccountURL: account, Facts: s.gitea.client}
	return confirm.New(t.rules.Policy.Confirm, o)
}

// mcpHandler returns the MCP side of a team's selection of tools.
func (s *Server) mcpHandler(t *team, sel *catalog.Selection) (http.Handler, error) {
	s.process.building("endpoint " + t.path())
	h, err := mcp.New(mcp.Options{
		Name: "aegis", Title: "Aegis for Gitea", Version: s.process.version,
		Instructions:   instructions(t),
		Tools:          sel.Tools(),
		SudoTools:      sel.SudoTools(),
		TakesCode:      t.confirm.TakesCode(),
		OutputSchemas:  t.rules.Results.Structured,
		Handler:        s.chain(t, sel),
		PageSize:       t.rules.Tools.PageSize,
		ListTTL:        time.Duration(t.rules.Tools.ListTTL),
		MaxBodyBytes:   int64(s.cfg.Server.MaxBodyBytes),
		Permits:        t.guard.Permits,
		CatalogVersion: s.library.catalog.Version,
		Log:            s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", t.path(), err)
	}
	return h, nil
}
