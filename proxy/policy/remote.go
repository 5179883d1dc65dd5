package policy

import (
	"slices"
	"strings"
)

// otherSites decides about what names a repository in a form of its own.
func (s *session) otherSites() *denial {
	site := s.op.site
	for _, group := range []struct {
		places []string
		judge  func(string) *denial
	}{{site.Heads, s.head}, {site.Links, s.link}, {site.Contexts, s.context}, {site.Opaque, s.opaque}} {
		if d := s.each(s.p.scope.name(), group.places, group.judge); d != nil {
			return d
		}
	}
	if site.Parent {
		return s.parent()
	}
	return nil
}

// head judges a revision, or two with dots between them, that may be another repository's:
// owner:branch, owner/name:branch. Comparisons and pull requests take such revisions, and
// Gitea reads the other repository for them.
func (s *session) head(text string) *denial {
	// Two dots and three mean ranges of different kinds, with a revision at either end.
	for _, part := range strings.Split(strings.ReplaceAll(text, "...", ".."), "..") {
		of, _, found := strings.Cut(part, ":")
		if !found {
			continue
		}
		if owner, repo, both := strings.Cut(of, "/"); both {
			if d := s.judge(owner, repo); d != nil {
				return d
			}
			continue
		}
		name, ok := ownerName(of)
		if !ok {
			return deny(s.p.scope.name(), textName)
		}
		base, _ := s.r.texts("path." + s.op.owner)
		if len(base) == 1 && strings.EqualFold(base[0], name) {
			continue // the path's own repository
		}
		// Gitea looks for that account's fork, whatever its name.
		if rule := s.p.scope.whole(name); rule != "" {
			return deny(rule,
				"the branch belongs to a repository that the call does not name in full; write owner/name:branch")
		}
	}
	return nil
}

// link judges the address of a repository, on whatever server: names and
// addresses of one and the same server are too many to distinguish it from others.
func (s *session) link(text string) *denial {
	// Fragment and query name nothing in a repository's address.
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, "?")
	if _, rest, found := strings.Cut(text, "://"); found {
		_, text, _ = strings.Cut(rest, "/")
	} else if host, rest, found := strings.Cut(text, ":"); found && !strings.Contains(host, "/") {
		text = rest // git@host:owner/name
	}
	segments := strings.Split(strings.Trim(text, "/"), "/")
	if len(segments) < 2 {
		return deny(s.p.scope.name(),
			"an address does not end with a repository's owner/name, so the rules cannot be applied")
	}
	d := s.judge(segments[len(segments)-2], segments[len(segments)-1])
	if d != nil || len(segments) == 2 || !s.takesFirst() {
		return d
	}
	return s.judge(segments[0], segments[1])
}

// takesFirst reports whether Gitea imports what the first two segments of a longer
// address name, as it does from some services, and not what the last two name.
func (s *session) takesFirst() bool {
	texts, ok := s.r.texts("body.service")
	if !ok || len(texts) > 1 {
		return true
	}
	return slices.ContainsFunc(texts, func(service string) bool {
		return !slices.Contains([]string{"git", "gitea", "gitlab", "gitbucket"}, service)
	})
}

// context judges where a text is rendered: owner/name, perhaps more behind it.
func (s *session) context(text string) *denial {
	if _, rest, found := strings.Cut(text, "://"); found {
		_, text, _ = strings.Cut(rest, "/")
	}
	segments := strings.SplitN(strings.TrimPrefix(text, "/"), "/", 3)
	if len(segments) < 2 {
		return deny(s.p.scope.name(), "the context must begin with the owner and name of a repository")
	}
	return s.judge(segments[0], segments[1])
}

// opaque refuses an id that may be of any repository. Asking Gitea what the id belongs to
// would show the caller, by the time it takes or by the refusal, whether there is such a
// thing.
func (s *session) opaque(text string) *denial {
	// 0 means none, as everywhere in Gitea's API.
	if strings.Trim(text, "0") == "" {
		return nil
	}
	return deny(s.p.scope.name(),
		"an id does not tell which repository or account it is of; leave it out, or use names")
}

// parent judges the repository that the path's one was forked from. Some routes read or
// sync it without naming it.
func (s *session) parent() *denial {
	repo, d := s.repository(s.p.scope.name())
	if d != nil || repo.Parent == "" {
		return d
	}
	owner, name, ok := fullName(repo.Parent)
	if !ok || s.p.scope.repo(owner, name) != "" {
		return deny(s.p.scope.name(),
			"this endpoint may not reach the repository that this one was forked from")
	}
	return nil
}

// pair is a repository as an address spells it.
type pair struct{ owner, repo string }

// namedBy returns the repository that a web page of Gitea's is about: the two
// segments before the first word such as issues, wherever Gitea is mounted. A
// folder further behind may have such a name too.
func namedBy(path string) (pair, bool) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := 2; i+1 < len(segments); i++ {
		switch segments[i] {
		case "issues", "pulls", "commit", "src", "raw", "actions", "releases", "milestone", "milestones", "projects",
			"wiki", "compare":
			return pair{segments[i-2], segments[i-1]}, segments[i-1] != "-"
		}
	}
	return pair{}, false
}
