package fakegitea

import (
	"cmp"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// handleBranches registers branches, tags and their protections. Protections are for
// administrators, reading them too, and their list is not paged.
func handleBranches(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/branches", listBranches)
	t.on("POST "+p+"/branches", reads(createBranch), needToken, needWrite, needActive)
	t.on("GET "+p+"/branches/{branch}", getBranch)
	t.on("DELETE "+p+"/branches/{branch}", deleteBranch, needToken, needWrite, needActive)

	t.on("GET "+p+"/branch_protections", func(c *call) error {
		return c.ok(c.repo.protectedList())
	}, needToken, needAdmin)
	t.on("POST "+p+"/branch_protections", createProtection, needToken, needAdmin, needActive)
	t.on("GET "+p+"/branch_protections/{name}", onProtection(func(c *call, r *protection) error {
		return c.ok(r)
	}), needToken, needAdmin)
	t.on("PATCH "+p+"/branch_protections/{name}", onProtection(editProtection), needToken, needAdmin, needActive)
	t.on("DELETE "+p+"/branch_protections/{name}", onProtection(deleteProtection), needToken, needAdmin, needActive)
}

// listBranches lists branches in the order of the latest commit, then by name. An empty
// repository answers null. Its total is 0 and there is no Link. Gitea says the same for
// a moment after the first push, until its database knows the branches; the double has
// no such delay.
func listBranches(c *call) error {
	if c.repo.empty() {
		c.setTotal(0)
		return c.ok(nil)
	}
	q := strings.ToLower(c.query.Get("q"))
	names := filter(c.repo.git.names("refs/heads/"), func(n string) bool {
		return strings.Contains(strings.ToLower(n), q)
	})
	slices.SortStableFunc(names, func(a, b string) int {
		return c.repo.git.branch(b).seq - c.repo.git.branch(a).seq
	})
	return c.ok(mapped(linked(c, names), c.branchView))
}

// getBranch answers one branch.
func getBranch(c *call) error {
	if c.repo.git.branch(c.params["branch"]) == nil {
		return errNotFound
	}
	return c.ok(c.branchView(c.params["branch"]))
}

// badRef matches what git refuses in the name of a branch or tag: empty parts, parts that
// begin or end with a dot, and what its own notation uses.
var badRef = regexp.MustCompile(`[\x00-\x20~^:?*\[\\\x7f]|\.\.|@\{|^-|(^|/)(\.|/|$)|(\.|\.lock)(/|$)`)

// goodRef says whether git accepts the name of a branch or tag.
func goodRef(name string) bool { return !badRef.MatchString(name) }

// createBranchInput is the body of createBranch. The old branch is the older way to
// name the source, and the reference wins.
type createBranchInput struct {
	BranchName    string `json:"new_branch_name" binding:"Required;GitRefName;MaxSize(100)"`
	OldBranchName string `json:"old_branch_name" binding:"GitRefName;MaxSize(100)"`
	OldRefName    string `json:"old_ref_name" binding:"GitRefName;MaxSize(100)"`
}

// createBranch makes a branch from another, or from any reference. The source is looked
// at before the new name. An unknown reference is an internal error on the real server,
// while an unknown branch is 404.
func createBranch(c *call, in *createBranchInput) error {
	if c.repo.empty() {
		return fail(http.StatusNotFound, "Git Repository is empty.")
	}
	from := c.repo.git.branch(c.repo.DefaultBranch)
	switch {
	case in.OldRefName != "":
		from = c.repo.git.resolve(in.OldRefName)
	case in.OldBranchName != "":
		from = c.repo.git.branch(in.OldBranchName)
	}
	switch {
	case from == nil && in.OldRefName != "":
		return fail(http.StatusInternalServerError, "object does not exist [id: %s, rel_path: ]", in.OldRefName)
	case from == nil:
		return fail(http.StatusNotFound, "The old branch does not exist")
	case c.repo.git.branch(in.BranchName) != nil:
		return fail(http.StatusConflict, "The branch already exists.")
	// git would allow a branch and a tag of one name, Gitea does not.
	case c.repo.git.tag(in.BranchName) != nil:
		return fail(http.StatusConflict, "The branch with the same tag already exists.")
	}
	if rule := c.repo.ruleFor(in.BranchName); rule != nil && !rule.mayPush(c.doer) {
		return fail(http.StatusInternalServerError, "the push was declined by a protection of the branch")
	}
	c.moveBranch(in.BranchName, from)
	return c.created(c.branchView(in.BranchName))
}

// deleteBranch deletes a branch, but not the default one or a protected one. A branch
// that an open pull request goes into is kept, too. Gitea refuses only for the target
// that is set as default of the repository, and closes or retargets pull requests when
// their target goes.
func deleteBranch(c *call) error {
	name := c.params["branch"]
	switch {
	// A protected default branch is refused as the default branch, below.
	case c.repo.ruleFor(name) != nil && name != c.repo.DefaultBranch:
		return fail(http.StatusForbidden, "branch protected")
	case c.repo.git.branch(name) == nil:
		return fail(http.StatusNotFound, "branch does not exist [name: %s]", name)
	case name == c.repo.DefaultBranch,
		slices.ContainsFunc(c.repo.pulls(), func(is *issue) bool { return !is.Closed && is.pull.Base == name }):
		return fail(http.StatusForbidden, "can not delete default or pull request target branch")
	}
	c.dropBranch(name)
	return c.done()
}

// dropBranch deletes a branch. An open pull request from it keeps its commits and is
// closed. A fork's branch may belong to a pull request of another repository, so all
// are looked through.
func (c *call) dropBranch(name string) {
	id := c.repo.git.refs["refs/heads/"+name]
	delete(c.repo.git.refs, "refs/heads/"+name)
	c.record("delete_branch", "", "refs/heads/"+name)
	for _, r := range c.w.repos {
		for _, is := range r.pulls() {
			if p := is.pull; !is.Closed && p.HeadRepo == c.repo && p.Head == name {
				p.HeadID = id
				c.setState(is, true)
			}
		}
	}
}

// protection is a rule for branches; it is stored as the API shows it, since most
// members only have to come back. The double applies enable_push with its list of
// users, required_approvals, block_on_rejected_reviews and block_admin_merge_override.
// Lists of teams and of deploy keys, status checks, signatures and file patterns are
// stored and change nothing.
type protection struct {
	BranchName      string    `json:"branch_name"`
	RuleName        string    `json:"rule_name"`
	Priority        int       `json:"priority"`
	Push            bool      `json:"enable_push"`
	PushList        bool      `json:"enable_push_whitelist"`
	PushUsers       []string  `json:"push_whitelist_usernames"`
	PushTeams       []string  `json:"push_whitelist_teams"`
	PushKeys        bool      `json:"push_whitelist_deploy_keys"`
	Force           bool      `json:"enable_force_push"`
	ForceList       bool      `json:"enable_force_push_allowlist"`
	ForceUsers      []string  `json:"force_push_allowlist_usernames"`
	ForceTeams      []string  `json:"force_push_allowlist_teams"`
	ForceKeys       bool      `json:"force_push_allowlist_deploy_keys"`
	MergeList       bool      `json:"enable_merge_whitelist"`
	MergeUsers      []string  `json:"merge_whitelist_usernames"`
	MergeTeams      []string  `json:"merge_whitelist_teams"`
	BypassList      bool      `json:"enable_bypass_allowlist"`
	BypassUsers     []string  `json:"bypass_allowlist_usernames"`
	BypassTeams     []string  `json:"bypass_allowlist_teams"`
	StatusCheck     bool      `json:"enable_status_check"`
	StatusContexts  []string  `json:"status_check_contexts"`
	Approvals       int64     `json:"required_approvals"`
	ApprovalList    bool      `json:"enable_approvals_whitelist"`
	ApprovalUsers   []string  `json:"approvals_whitelist_username"`
	ApprovalTeams   []string  `json:"approvals_whitelist_teams"`
	BlockRejected   bool      `json:"block_on_rejected_reviews"`
	BlockRequested  bool      `json:"block_on_official_review_requests"`
	BlockOutdated   bool      `json:"block_on_outdated_branch"`
	DismissStale    bool      `json:"dismiss_stale_approvals"`
	IgnoreStale     bool      `json:"ignore_stale_approvals"`
	Signed          bool      `json:"require_signed_commits"`
	ProtectedFiles  string    `json:"protected_file_patterns"`
	UnprotectedFile string    `json:"unprotected_file_patterns"`
	BlockAdmin      bool      `json:"block_admin_merge_override"`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
}

// fixLists makes the lists that are never null empty. The contexts of status checks are
// not among them: Gitea leaves that list null.
func (p *protection) fixLists() {
	neverNull(&p.PushUsers, &p.PushTeams, &p.ForceUsers, &p.ForceTeams, &p.MergeUsers, &p.MergeTeams,
		&p.BypassUsers, &p.BypassTeams, &p.ApprovalUsers, &p.ApprovalTeams)
}

// neverNull makes nil lists empty, which JSON shows as [] instead of null.
func neverNull(lists ...*[]string) {
	for _, l := range lists {
		if *l == nil {
			*l = []string{}
		}
	}
}

// mayPush says whether the rule lets u push; site administrators are bound too. A rule
// without enable_push lets nobody push, whatever its list says. Teams are not looked
// at.
func (p *protection) mayPush(u *user) bool {
	return u != nil && p.Push && (!p.PushList || slices.Contains(p.PushUsers, u.Login))
}

// protectedList is the rules by priority: the first that matches a branch applies.
func (r *repo) protectedList() []*protection {
	out := append([]*protection{}, r.protected...)
	slices.SortStableFunc(out, func(a, b *protection) int { return a.Priority - b.Priority })
	return out
}

// ruleFor is the rule in force for a branch, or nil.
func (r *repo) ruleFor(branch string) *protection {
	p, _ := find(r.protectedList(), func(p *protection) bool { return matchRef(p.RuleName, branch) })
	return p
}

// matchRef matches a rule's pattern; * stays within a segment. A pattern that is
// malformed matches the branch of that very name only.
func matchRef(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == name || err == nil && ok
}

// onProtection finds the rule of the path.
func onProtection(f func(*call, *protection) error) handler {
	return func(c *call) error {
		return onFirst(c, c.repo.protected, func(p *protection) bool { return p.RuleName == c.params["name"] }, f)
	}
}

// createProtection adds a rule. A second rule of the name is 403, not 409. All users of
// the lists must exist; teams are not checked.
func createProtection(c *call) error {
	// A new rule comes last, so an older pattern that matches the same branch stays in
	// force.
	p := &protection{Priority: len(c.repo.protected) + 1, CreatedAt: c.now, UpdatedAt: c.now}
	if err := c.bind(p); err != nil {
		return err
	}
	// branch_name is the older name of rule_name.
	p.RuleName = cmp.Or(p.RuleName, p.BranchName)
	if p.RuleName == "" {
		return fail(http.StatusBadRequest, "both rule_name and branch_name are empty")
	}
	if _, ok := find(c.repo.protected, func(o *protection) bool { return o.RuleName == p.RuleName }); ok {
		return fail(http.StatusForbidden, "Branch protection already exist")
	}
	for _, name := range slices.Concat(p.PushUsers, p.ForceUsers, p.MergeUsers, p.BypassUsers, p.ApprovalUsers) {
		if c.w.userByLogin(name) == nil {
			return errNoUser(http.StatusUnprocessableEntity, name)
		}
	}
	if p.BranchName != "" && c.repo.git.branch(p.BranchName) == nil {
		p.BranchName = ""
	}
	p.fixLists()
	c.repo.protected = append(c.repo.protected, p)
	return c.created(p)
}

// editProtection changes what the body names; the rule's name stays. Users are not
// checked again, unlike in a new rule.
func editProtection(c *call, p *protection) error {
	next := *p
	if err := c.bind(&next); err != nil {
		return err
	}
	next.RuleName, next.BranchName, next.CreatedAt, next.UpdatedAt = p.RuleName, p.BranchName, p.CreatedAt, c.now
	next.fixLists()
	*p = next
	return c.ok(p)
}

// deleteProtection removes a rule. The priorities of the others keep their gap.
func deleteProtection(c *call, p *protection) error {
	c.repo.protected = without(c.repo.protected, p)
	return c.done()
}
