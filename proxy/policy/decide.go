package policy

import (
	"context"
	"slices"

	"aegis/proxy"
)

// session decides about one call. It lives for one decision, so that what was looked up for
// one call never serves another.
type session struct {
	p   *Policy
	ctx context.Context
	c   *proxy.Call
	op  *operation
	r   *reader
	own *Repository // the path's, once it has been looked up
}

// decide returns the refusal of a call, nil when the rules let it pass. It counts nothing.
// Rules about repositories come first: a team that may not reach a repository must not
// learn from a later rule what is in it.
func (p *Policy) decide(ctx context.Context, c *proxy.Call) *denial {
	op := p.operation(c)
	if op == nil {
		return p.unmatched(c)
	}
	// The other rules are about writes alone, so most calls end here without their
	// arguments having been looked at.
	if op.tool.ReadOnly && !p.scope.restricts() {
		return nil
	}
	r, ok := newReader(c, op, p.self(c))
	if !ok {
		return deny(p.first(), "the path, query or body holds something that the operation is not known to take, "+
			"or spells it in another way, so the rules cannot be applied; use the operation's own tool")
	}
	s := &session{p: p, ctx: ctx, c: c, op: op, r: r}
	d := s.repos()
	if d == nil && !op.tool.ReadOnly {
		d = s.write()
	}
	return d
}

// operation returns what is known of the operation that a call reaches; nil for a
// route that the catalog lacks.
func (p *Policy) operation(c *proxy.Call) *operation {
	if c.Op == nil || p.ops[c.Op.OperationID] == nil {
		return nil
	}
	return p.ops[c.Op.OperationID]()
}

// write decides about what only writes can do. The cheap checks come first; branches and
// paths may have to ask Gitea.
func (s *session) write() *denial {
	for _, check := range []func() *denial{s.references, s.branches, s.paths, s.budgets} {
		if d := check(); d != nil {
			return d
		}
	}
	return nil
}

// self returns the account that a call acts as: where Gitea puts what has no
// owner. It is not known whose write_token is.
func (p *Policy) self(c *proxy.Call) string {
	switch {
	// What acts is then the token of the endpoint, and Aegis does not ask Gitea whose
	// it is.
	case p.credential != nil && !reads(c), c.Identity == nil:
		return ""
	case c.Options.Sudo != "":
		return c.Options.Sudo
	}
	return c.Identity.Login
}

// first names a rule that there is, for refusals that no single rule makes. A refusal
// always names a key of the configuration, so that an operator finds what to change.
func (p *Policy) first() string {
	switch {
	case p.scope.restricts():
		return p.scope.name()
	case p.branches.any():
		return p.branches.name()
	case p.paths.any():
		return p.paths.name()
	}
	return "budgets"
}

// unmatched decides about a request that belongs to no known operation: nothing
// that a rule is about can be told from it.
func (p *Policy) unmatched(c *proxy.Call) *denial {
	if p.scope.restricts() || !c.Tool.ReadOnly && (p.branches.any() || p.paths.any()) {
		return deny(p.first(),
			"no known operation has this method and path, and the rules of this endpoint allow only known ones")
	}
	// Sizes can be judged of any request.
	r := &reader{op: &operation{tool: c.Tool, site: &site{}}, wire: &c.Wire}
	return (&session{p: p, c: c, op: r.op, r: r}).budgets()
}

// name returns the rule that is set, for refusals that concern all of them.
func (s *scope) name() string {
	if s.bindOwner != "" {
		return "bind.owner"
	}
	return s.patterns.name()
}

const (
	// What callers are told; never a name, which could confirm that something exists.
	textRepo  = "this endpoint may not reach the repository that the call names"
	textOwner = "this endpoint may not reach what belongs to the account that the call names"
	textWhole = "this call concerns every repository of its account, and this endpoint may not reach all of them"
	textName  = "an argument is no plain name of an account or repository " +
		"(letters, digits, '-', '_' and '.'), so the rules cannot be applied"
	textUnread = "an argument cannot be read for certain, so the rules cannot be applied"
)

// repos decides which repositories the call may name. Each further place can only refuse,
// never open, what the path has been found to be: so a new kind of place that sites.yaml
// learns makes a policy no weaker.
func (s *session) repos() *denial {
	sc := s.p.scope
	if !sc.restricts() {
		return nil
	}
	switch {
	case s.op.unknownRepo != "":
		return deny(sc.name(),
			"it is not known which repositories the argument "+s.op.unknownRepo+" of this operation can reach")
	case s.op.site.Reach == reachRefuse:
		return deny(sc.name(), "this operation cannot be confined to some repositories: "+s.op.site.Why)
	}
	if d := s.pathScope(); d != nil {
		return d
	}
	for _, site := range s.op.site.Repos {
		if d := s.repoSite(site); d != nil {
			return d
		}
	}
	if d := s.eachOwner(s.op.site.Owners, sc.whole, textWhole); d != nil {
		return d
	}
	return s.otherSites()
}

// pathScope decides by the path alone. What falls through to the end is refused: a route of
// a kind that is not known here may reach anything.
func (s *session) pathScope() *denial {
	sc, site := s.p.scope, s.op.site
	switch {
	case s.op.repo != "":
		owner, ok1 := s.r.pathText(s.op.owner)
		repo, ok2 := s.r.pathText(s.op.repo)
		if !ok1 || !ok2 {
			return deny(sc.name(), textUnread)
		}
		return s.judge(owner, repo)
	// A list of an account is cut to the rows that may be seen, so its owner need only
	// have some. A write concerns all of them.
	case s.op.owner != "" && (s.op.tool.ReadOnly || len(site.Repos) > 0):
		return s.eachOwner([]string{"path." + s.op.owner}, sc.owner, textOwner)
	case s.op.owner != "":
		return s.eachOwner([]string{"path." + s.op.owner}, sc.whole, textWhole)
	// sites.yaml says what the call can reach; the path has nothing to add.
	case site.Reach != "" || len(site.Repos)+len(site.Owners) > 0:
		return nil
	}
	// Routes about the server, and about accounts as such. What they read is no
	// repository, or is cut by Rows.
	switch s.op.segments[0] {
	case "version", "settings", "gitignore", "licenses", "label", "markdown", "markup", "signing-key.gpg",
		"signing-key.pub", "token", "users", "admin", "orgs":
		if s.op.tool.ReadOnly {
			return nil
		}
	case "user":
		if s.op.tool.ReadOnly {
			return nil
		}
		if s.op.tool.Risk < proxy.R4 { // a new credential would reach everything
			return s.eachOwner([]string{placeSelf}, sc.whole, textWhole)
		}
	}
	return deny(sc.name(), "this operation is not about single repositories, and this endpoint may only reach some")
}

// repoSite judges one repository that the call names.
func (s *session) repoSite(site repoSite) *denial {
	owners, _, ok1 := s.r.first(site.Owner)
	names, _, ok2 := s.r.first(site.Name)
	if !ok1 || !ok2 {
		// A write with the endpoint's own token: see self.
		if slices.Contains(site.Owner, placeSelf) && s.r.self == "" {
			return deny(s.p.scope.name(), "it is not known in whose account this would be; name the owner")
		}
		return deny(s.p.scope.name(), textUnread)
	}
	if len(owners) == 0 || len(names) == 0 {
		return deny(s.p.scope.name(), "the call does not say which repository it is about")
	}
	// All pairs: a repeated key must not hide one repository behind another.
	for _, o := range owners {
		for _, n := range names {
			if d := s.judge(o, n); d != nil {
				return d
			}
		}
	}
	return nil
}

// judge decides about a repository by the names that the call spells.
func (s *session) judge(owner, repo string) *denial {
	o, ok1 := ownerName(owner)
	n, ok2 := repoName(repo)
	if !ok1 || !ok2 {
		return deny(s.p.scope.name(), textName)
	}
	if rule := s.p.scope.repo(o, n); rule != "" {
		return deny(rule, textRepo)
	}
	return nil
}

// eachOwner judges the accounts at some places by a rule of the scope. A name that Gitea
// could not have given to an account is refused and not compared.
func (s *session) eachOwner(places []string, rule func(string) string, text string) *denial {
	return s.each(s.p.scope.name(), places, func(owner string) *denial {
		name, ok := ownerName(owner)
		if !ok {
			return deny(s.p.scope.name(), textName)
		}
		if broken := rule(name); broken != "" {
			return deny(broken, text)
		}
		return nil
	})
}

// each judges every text at some places. What cannot be read is refused by the rule.
func (s *session) each(rule string, places []string, judge func(text string) *denial) *denial {
	for _, place := range places {
		texts, ok := s.r.texts(place)
		if !ok {
			return deny(rule, textUnread)
		}
		for _, text := range texts {
			if d := judge(text); d != nil {
				return d
			}
		}
	}
	return nil
}
