package policy

import (
	"strings"

	"aegis/config"
)

// scope are the repositories that a team may reach. The binding is kept apart from the
// patterns: it is exact, and a team that has one sees nothing of the existence of others.
type scope struct {
	bindOwner, bindRepo string // in lower case
	patterns
	// The same patterns, cut: of the owner alone, and whether all of an owner's
	// repositories are meant.
	allowOwners, denyOwners []ownerGlob
}

// ownerGlob is a pattern of repositories seen from its owner.
type ownerGlob struct {
	glob
	whole bool // the pattern covers every repository of the owners it matches
}

// newScope compiles the rules about repositories. Gitea compares names without case, so
// patterns do too.
func newScope(cfg config.Policy) (*scope, error) {
	s := &scope{bindOwner: strings.ToLower(cfg.Bind.Owner), bindRepo: strings.ToLower(cfg.Bind.Repo)}
	var err error
	if s.patterns, err = newPatterns("repos", cfg.Repos, true); err != nil {
		return nil, err
	}
	if s.allowOwners, err = cutGlobs(s.allow); err != nil {
		return nil, err
	}
	s.denyOwners, err = cutGlobs(s.deny)
	return s, err
}

// cutGlobs returns the owners' part of patterns. One that cannot be
// cut counts for every owner, but for none of them as a whole: it then denies what concerns
// a whole account, and allows only what concerns some of one.
func cutGlobs(list globs) (out []ownerGlob, err error) {
	for _, g := range list {
		owner, name, found := strings.Cut(g.text, "/")
		if !found || strings.Contains(owner, "**") {
			owner = "*" // ** may end anywhere: take it for every owner …
			if g.text != "**" {
				name = "?" // … and for some of their repositories
			} else {
				name = "**"
			}
		}
		cut, err := newGlob(owner, true)
		if err != nil {
			return nil, err
		}
		cut.rule = g.rule
		out = append(out, ownerGlob{cut, name == "*" || name == "**"})
	}
	return out, nil
}

// restricts reports whether there is a rule about repositories at all.
func (s *scope) restricts() bool {
	return s.bindOwner != "" || s.any()
}

// repo returns the rule that keeps a repository from the team, "" when none does.
// Both names are as ownerName and repoName return them.
func (s *scope) repo(owner, repo string) string {
	// The binding first: it is the narrowest, and lists are within it.
	if s.bindOwner != "" && owner != s.bindOwner {
		return "bind.owner"
	}
	if s.bindRepo != "" && repo != s.bindRepo {
		return "bind.repo"
	}
	if !s.any() {
		return "" // without making the full name: this is asked for each row of a list
	}
	return s.closes(owner + "/" + repo)
}

// owner returns the rule that keeps what belongs to an owner, and to none of its
// repositories, from the team.
func (s *scope) owner(owner string) string {
	if rule := s.account(owner); rule != "" || s.bindRepo == "" {
		return rule
	}
	return "bind.repo"
}

// account returns the rule that keeps all repositories of an owner from the team.
func (s *scope) account(owner string) string {
	if s.bindOwner != "" && owner != s.bindOwner {
		return "bind.owner"
	}
	return s.byOwner(owner, false)
}

// whole returns the rule that keeps any repository of an owner from the team.
func (s *scope) whole(owner string) string {
	if rule := s.owner(owner); rule != "" {
		return rule
	}
	return s.byOwner(owner, true)
}

// byOwner judges an owner by the patterns of repositories: whether all of the owner's
// repositories are open, or else whether any may be.
func (s *scope) byOwner(owner string, all bool) string {
	for i := range s.denyOwners {
		if g := &s.denyOwners[i]; (all || g.whole) && g.match(owner) {
			return g.rule
		}
	}
	for i := range s.allowOwners {
		if g := &s.allowOwners[i]; (!all || g.whole) && g.match(owner) {
			return ""
		}
	}
	if len(s.allowOwners) > 0 {
		return "repos.allow"
	}
	return ""
}
