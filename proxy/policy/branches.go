package policy

import (
	"slices"
	"strconv"
	"strings"

	"aegis/config"
	"aegis/proxy"
)

// branchRules are the branches and tags that agents may write to. Reading is not their
// matter: who may read a repository may read all of its branches, as in Gitea.
type branchRules struct {
	patterns
	protect bool // the default branch
}

// newBranchRules compiles the rules; branches to write to are compared in their exact
// case, as git does.
func newBranchRules(cfg config.BranchRules) (branchRules, error) {
	lists, err := newPatterns("branches", config.Patterns{Allow: cfg.Allow, Deny: cfg.Deny}, false)
	return branchRules{lists, cfg.ProtectDefault}, err
}

func (r *branchRules) any() bool { return r.patterns.any() || r.protect }

// name returns a rule that is set.
func (r *branchRules) name() string {
	if r.patterns.any() {
		return r.patterns.name()
	}
	return "branches.protect_default"
}

const (
	// What callers are told. The text names no value: a refusal must not confirm what
	// exists.
	textBranch     = "this endpoint may not write to that branch or tag"
	textDefault    = "this endpoint may not write to the default branch; name another branch"
	textRef        = "an argument is no name of a branch or tag, so the rules cannot be applied"
	textCredential = "this call administers the server or hands out a credential, " +
		"with which any branch and file could be written"
	textWipes = "this call deletes whole repositories, " +
		"and this endpoint may only write to some of what is in them"
	textCommit = "a commit does not tell which branch it is on; name a branch"
	textEvery  = "this call may change any branch or tag, and this endpoint may only write to some"
)

// branches decides which branches and tags the call may write. All checks run, whatever the
// ones before them found open: one call can name several branches in places of different
// kinds.
func (s *session) branches() *denial {
	rules := &s.p.branches
	if !rules.any() {
		return nil
	}
	if d := s.writable(rules.name(), "branches"); d != nil {
		return d
	}
	switch {
	case s.op.site.EveryBranch:
		return deny(rules.name(), textEvery)
	case s.given(s.op.site.Locks):
		return deny(rules.name(),
			"this endpoint may not change the default branch, as the rules of its branches would then mean others")
	}
	for _, check := range []func() *denial{s.patterns, s.written, s.release, s.pull} {
		if d := check(); d != nil {
			return d
		}
	}
	return nil
}

// writable refuses what could write anything at all, whatever it names. These come first,
// since no name in the call says how far it reaches.
func (s *session) writable(rule, what string) *denial {
	switch {
	case s.op.unknownFile != "":
		return deny(rule,
			"it is not known which "+what+" the argument "+s.op.unknownFile+" of this operation can write")
	// A credential is not bound by these rules: what it can write is Gitea's decision
	// alone.
	case s.op.tool.Risk >= proxy.R4:
		return deny(rule, textCredential)
	case s.op.site.Wipes:
		return deny(rule, textWipes)
	}
	return nil
}

// given reports whether there is anything at some places, readable or not. Unreadable
// counts as given, as Gitea might read it.
func (s *session) given(places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		texts, ok := s.r.texts(place)
		return !ok || len(texts) > 0
	})
}

// patterns judges rules about branches. One that is a glob may be about any. Gitea applies
// such a rule to branches that do not exist yet, so what it covers cannot be listed and
// compared.
func (s *session) patterns() *denial {
	rule := s.p.branches.name()
	return s.each(rule, s.op.site.Patterns, func(text string) *denial {
		if strings.ContainsAny(text, `*?[]{}!\`) || strings.HasPrefix(text, "/") {
			return deny(rule, textEvery)
		}
		return s.branch(text)
	})
}

// written judges the branches and tags that arguments name.
func (s *session) written() *denial {
	// Targets come behind the branches: they are revisions, and a tag or branch will
	// point at them.
	for i, places := range slices.Concat(s.op.site.Branches, s.op.site.Targets) {
		texts, place, ok := s.r.first(places)
		if !ok {
			return deny(s.p.branches.name(), textUnread)
		}
		if place == placeDefault {
			if d := s.onDefault(); d != nil {
				return d
			}
		}
		for _, text := range texts {
			// A hash says nothing of the branch that it is on, so it is not known whether
			// it may be built on.
			if i >= len(s.op.site.Branches) && isCommit(text) {
				return deny(s.p.branches.name(), textCommit)
			}
			if d := s.branch(text); d != nil {
				return d
			}
		}
	}
	return nil
}

// onDefault judges a write to the default branch.
func (s *session) onDefault() *denial {
	if s.p.branches.protect {
		return deny("branches.protect_default", textDefault)
	}
	// Without protect_default the default branch is one like any other: its name
	// decides.
	repo, d := s.repository(s.p.branches.name())
	if d != nil {
		return d
	}
	return s.branch(repo.DefaultBranch)
}

// branch judges one branch or tag of the path's repository. Every name that Gitea could
// take the text for must be open. The default branch is compared without case, because a
// file system that folds case would take both for one.
func (s *session) branch(text string) *denial {
	rules := &s.p.branches
	names, ok := refNames(text)
	if !ok {
		return deny(rules.name(), textRef)
	}
	for _, name := range names {
		if rule := rules.closes(name); rule != "" {
			return deny(rule, textBranch)
		}
	}
	if !rules.protect {
		return nil
	}
	repo, d := s.repository("branches.protect_default")
	if d != nil {
		return d
	}
	for _, name := range names {
		if strings.EqualFold(name, repo.DefaultBranch) {
			return deny("branches.protect_default", textDefault)
		}
	}
	return nil
}

// release judges the tag of a release that is edited.
func (s *session) release() *denial {
	given := false
	for _, place := range s.op.site.Release {
		values, ok := s.r.values(place)
		given = given || !ok || len(values) > 0
	}
	if !given {
		return nil
	}
	// Editing a draft may publish it, and publishing makes the tag: so the release as
	// it is now decides, whatever the call changes of it.
	at, d := s.place("id")
	if d != nil {
		return d
	}
	rel, err := s.p.lookup.Release(s.ctx, s.c, at)
	if err != nil {
		return s.unanswered(s.p.branches.name(), err)
	}
	if d := s.branch(rel.Tag); d != nil {
		return d
	}
	// Gitea then makes a missing tag at the default branch.
	if rel.Target == "" {
		return s.onDefault()
	}
	if isCommit(rel.Target) {
		return deny(s.p.branches.name(), textCommit)
	}
	return s.branch(rel.Target)
}

// pull judges the branches that a merge or an update of a pull request writes. The call
// names a number only, so Gitea is asked what it writes. Between the answer and the
// merge the base can be changed, by those who may edit the pull request; Gitea's own branch
// protection is the remedy against them.
func (s *session) pull() *denial {
	if s.op.site.Pull == "" {
		return nil
	}
	at, d := s.place("index")
	if d != nil {
		return d
	}
	pull, err := s.p.lookup.Pull(s.ctx, s.c, at)
	if err != nil {
		return s.unanswered(s.p.branches.name(), err)
	}
	// An update merges the base into the branch of the pull request, so it writes to
	// that one.
	if s.op.site.Pull == "update" {
		return s.headBranch(pull)
	}
	if d := s.branch(pull.Base); d != nil {
		return d
	}
	deletes, d := s.deletesHead()
	if d != nil || !deletes {
		return d
	}
	return s.headBranch(pull)
}

// deletesHead reports whether a merge deletes the pull request's own branch.
func (s *session) deletesHead() (bool, *denial) {
	values, ok := s.r.values("body.delete_branch_after_merge")
	// It cannot be read, so the worse is assumed.
	if !ok {
		return true, nil
	}
	if len(values) > 0 {
		return values[0] != false, nil
	}
	repo, d := s.repository(s.p.branches.name())
	return repo.DeletesMerged, d
}

// headBranch judges a write to the branch that a pull request comes from. It may be a
// fork's, which the path does not name, so the rules about repositories are asked as well.
func (s *session) headBranch(pull Pull) *denial {
	owner, name, ok := fullName(pull.HeadRepo)
	if !ok {
		return deny(s.p.branches.name(), "the branch of this pull request is in a repository that cannot be read")
	}
	if rule := s.p.scope.repo(owner, name); rule != "" {
		return deny(rule, "the branch of this pull request is in a repository that this endpoint may not reach")
	}
	if s.p.branches.protect && !s.isPath(owner, name) {
		return deny("branches.protect_default",
			"the branch of this pull request is in another repository, whose default branch is not known")
	}
	return s.branch(pull.Head)
}

// isPath reports whether a repository is the one that the path names. Compared as rules
// compare, without case and reserved endings.
func (s *session) isPath(owner, name string) bool {
	at, d := s.place("")
	if d != nil {
		return false
	}
	o, ok1 := ownerName(at.Owner)
	n, ok2 := repoName(at.Repo)
	return ok1 && ok2 && o == owner && n == name
}

// place returns the path's repository and the number of the thing in it that a
// path parameter names; "" for the repository alone.
func (s *session) place(number string) (Place, *denial) {
	var at Place
	owners, ok1 := s.r.texts("path." + s.op.owner)
	names, ok2 := s.r.texts("path." + s.op.repo)
	if !ok1 || !ok2 || len(owners) != 1 || len(names) != 1 {
		return at, deny(s.p.first(), textUnread)
	}
	// A place is looked up in Gitea with the text as it is, so it has to be a name and
	// nothing else.
	_, okOwner := ownerName(owners[0])
	_, okRepo := repoName(names[0])
	if !okOwner || !okRepo {
		return at, deny(s.p.first(), textName)
	}
	at.Owner, at.Repo = owners[0], names[0]
	if number == "" {
		return at, nil
	}
	texts, ok := s.r.texts("path." + number)
	if ok && len(texts) == 1 {
		if n, err := strconv.ParseInt(texts[0], 10, 64); err == nil {
			at.Number = n
			return at, nil
		}
	}
	return at, deny(s.p.first(), textUnread)
}

// repository looks up the path's repository, once for each call and never for the
// next one: an agent that renames repositories or changes their settings would
// otherwise be judged by what another one was like.
func (s *session) repository(rule string) (Repository, *denial) {
	if s.own != nil {
		return *s.own, nil
	}
	at, d := s.place("")
	if d != nil {
		return Repository{}, d
	}
	repo, err := s.p.lookup.Repository(s.ctx, s.c, at)
	if err != nil {
		return Repository{}, s.unanswered(rule, err)
	}
	s.own = &repo
	return repo, nil
}
