package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy/catalog"
	"aegis/proxy/edge"
	"aegis/proxy/kv/open"
	"aegis/proxy/limit"
	"aegis/proxy/mask"
	"aegis/proxy/mcp"
	"aegis/proxy/policy"
	"aegis/proxy/policy/confirm"
	"aegis/proxy/policy/members"
)

// choice is what a team has configured and the tools that it selects. The first team is
// the default one, whose name is "".
type choice struct {
	name      string
	rules     config.Team
	set       *catalog.Set
	selection *catalog.Selection
}

// teamRules are what a team may do.
type teamRules struct {
	choice
	masks  *mask.Engine
	limits *limit.Limiter
	gate   *members.Gate
	policy *policy.Policy // what agents may do
}

// team is one endpoint and its rules.
type team struct {
	teamRules
	confirm *confirm.Confirm // nil: nothing is asked
}

// path is the endpoint's path below the public URL's.
func (c *choice) path() string {
	if c.name == "" {
		return MCPPath
	}
	return MCPPath + "/" + c.name
}

// key returns the configuration key of a setting of the team.
func (c *choice) key(rest string) string {
	if c.name == "" {
		return rest
	}
	return "teams." + c.name + "." + rest
}

// label names the team in logs.
func (c *choice) label() string {
	if c.name == "" {
		return "default"
	}
	return c.name
}

// Team returns the tools of a team by its name, "" for the default one; false
// when there is no such team.
func (s *Server) Team(name string) (*catalog.Selection, bool) {
	for _, t := range s.teams {
		if t.name == name {
			return s.tools(t), true
		}
	}
	return nil, false
}

// newRules makes what decides about a team's calls. The default team comes first, since
// others share its masking engine unless they have rules of their own.
func (b *basis) newRules(choices []choice, log Log) (list []teamRules, err error) {
	for _, c := range choices {
		r := teamRules{
			choice: c, limits: limit.New(b.teamLimits(&c), b.limitOptions(c.name)),
			gate: members.NewGate(b.gitea.people, c.rules.Members),
		}
		switch {
		case len(list) == 0:
			r.masks, err = b.process.masking(b.cfg, log)
		case !b.cfg.IsSet(c.key("masking")): // the same rules, and an engine takes time and memory
			r.masks = list[0].masks
		default:
			b.process.building("masking of " + c.name)
			r.masks, err = newMask(b.cfg, c.rules.Masking)
		}
		if err != nil {
			return nil, placed(err, func(e *mask.RuleError) config.Problem {
				return b.cfg.Problem(c.key(e.Key), e.What, e.Do)
			})
		}
		// Lookups go by the whole catalog: a rule may need to know what the team's own selection
		// leaves out, such as the repository that an id belongs to.
		b.process.building("policy" + c.path())
		r.policy, err = policy.New(c.rules.Policy, policy.Options{
			Operations: c.set.Tools(), Lookup: policy.Ask(b.gitea.client, b.library.set.Tools()), Hosts: b.giteaHosts(),
			Mounted: b.giteaMounted(), Counters: b.process.writes, Endpoint: c.name,
		})
		if err != nil {
			return nil, config.Problems{b.cfg.Problem(c.key("policy"), err.Error(), "correct it")}
		}
		list = append(list, r)
	}
	return list, nil
}

// newTeams adds what teams keep in the store: the calls that wait for a person to confirm.
func (d *draft) newTeams(store *open.Store) ([]*team, error) {
	// A key of the store's: a code that one replica hands out is taken by another.
	o := confirm.Options{Store: store, Key: store.Derive("confirm")[0], Facts: d.gitea.client}
	if d.cfg.Auth.OAuth.Enabled {
		o.AccountURL = d.base.String() + "/account"
	}
	list := make([]*team, len(d.teams))
	for i, r := range d.teams {
		c, err := confirm.New(r.rules.Policy.Confirm, o)
		if err != nil {
			return nil, err
		}
		list[i] = &team{r, c}
	}
	return list, nil
}

// teamLimits returns the team's limits. What a team has of its own counts at its
// endpoint; caps on calls at a time count for all endpoints together, and addresses at
// the edge alone.
func (b *basis) teamLimits(c *choice) config.Limits {
	cfg := b.cfg.Limits
	if own := c.rules.Limits; c.name != "" {
		cfg.Address = config.Limit{}
		cfg.Identity, cfg.Team, cfg.Tools = own.Identity, own.Team, own.Tools
		cfg.Read, cfg.Write, cfg.Destructive = own.Read, own.Write, own.Destructive
	}
	return cfg
}

// giteaHosts returns the hosts at which people and Aegis reach Gitea, so that
// links in texts to other hosts name no repository of it. Where the public one is
// not known, which gitea.url need not be, every link is judged: nil.
func (b *basis) giteaHosts() []string {
	hosts := []string{b.cfg.Gitea.URL.Host}
	switch u := b.cfg.Auth.OAuth.BrowserURL; {
	case u != nil:
		hosts = append(hosts, u.Host)
	case !b.cfg.Gitea.Passthrough:
		return nil
	}
	if b.cfg.Gitea.Passthrough {
		hosts = append(hosts, b.base.Host)
	}
	return hosts
}

// giteaMounted reports whether Gitea is in a folder of the host at which people or Aegis
// reach it.
func (b *basis) giteaMounted() bool {
	roots := []*url.URL{&b.cfg.Gitea.URL.URL, nil, nil}
	if u := b.cfg.Auth.OAuth.BrowserURL; u != nil {
		roots[1] = &u.URL
	}
	if b.cfg.Gitea.Passthrough {
		roots[2] = b.base
	}
	return slices.ContainsFunc(roots, func(u *url.URL) bool { return u != nil && strings.Trim(u.Path, "/") != "" })
}

// mcpHandler returns the MCP side of a team's selection of tools.
func (s *core) mcpHandler(t *team, sel *catalog.Selection) (http.Handler, error) {
	s.process.building("endpoint " + t.path())
	h, err := mcp.New(mcp.Options{
		Name: "aegis", Title: "Aegis for Gitea", Version: s.process.version,
		Instructions:   instructions(t),
		Tools:          sel.Tools(),
		SudoTools:      sel.SudoTools,
		TakesCode:      t.confirm.TakesCode(),
		OutputSchemas:  t.rules.Results.Structured,
		Handler:        s.chain(t, sel),
		PageSize:       t.rules.Tools.PageSize,
		ListTTL:        time.Duration(t.rules.Tools.ListTTL),
		MaxBodyBytes:   int64(s.cfg.Server.MaxBodyBytes),
		Permits:        s.guardOf(t).Permits,
		CatalogVersion: s.library.catalog.Version,
		Hold:           edge.Hold,
		Log:            s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", t.path(), err)
	}
	return h, nil
}
