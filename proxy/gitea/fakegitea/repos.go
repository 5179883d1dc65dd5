package fakegitea

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// handleRepos registers repositories as such.
func handleRepos(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET /repos/search", searchRepos)
	t.on("POST /user/repos", func(c *call) error { return c.makeRepo(c.doer) }, needToken)
	// Members come this far; whether their team may create repositories is asked in makeRepo.
	t.on("POST /orgs/{org}/repos", func(c *call) error { return c.makeRepo(c.owner) }, needMember)
	t.on("GET "+p, func(c *call) error { return c.ok(c.repoView(c.repo)) })
	t.on("PATCH "+p, reads(editRepo), needToken, needAdmin)
	t.on("DELETE "+p, deleteRepo, needToken, needOwner)
	t.on("POST "+p+"/forks", reads(forkRepo), needToken)
	t.on("POST "+p+"/transfer", reads(transferRepo), needToken, needOwner)
	t.on("POST "+p+"/transfer/accept", answerTransfer(true), needToken)
	t.on("POST "+p+"/transfer/reject", answerTransfer(false), needToken)
}

// repoInput is the body of a new repository.
type repoInput struct {
	Name        string `json:"name" binding:"Required;AlphaDashDot;MaxSize(100)"`
	Description string `json:"description" binding:"MaxSize(2048)"`
	Private     bool   `json:"private"`
	AutoInit    bool   `json:"auto_init"`
	Template    bool   `json:"template"`
	// Unknown words in this and in the license are passed over, and the object format is always
	// SHA-1.
	Gitignores    string `json:"gitignores"`
	License       string `json:"license"`
	Readme        string `json:"readme"`
	IssueLabels   string `json:"issue_labels"`
	DefaultBranch string `json:"default_branch" binding:"GitRefName;MaxSize(100)"`
	TrustModel    string `json:"trust_model" binding:"In(default,collaborator,committer,collaboratorcommitter)"`
	ObjectFormat  string `json:"object_format_name" binding:"In(sha1,sha256)"`
}

// reservedName matches repository names that would collide with addresses.
// A wiki is reached as a repository whose name ends in .wiki, and feeds by their endings.
var reservedName = regexp.MustCompile(`(?i)^(\.{1,2}|-)$|\.(git|wiki|rss|atom)$`)

// makeRepo creates a repository for a user or organisation.
func (c *call) makeRepo(owner *user) error {
	var in repoInput
	if err := c.bind(&in); err != nil {
		return err
	}
	if owner.Org && !c.w.mayCreateRepo(owner, c.doer) {
		return fail(http.StatusForbidden, "User is not allowed to create repositories in this organization.")
	}
	// The name is checked before the templates: with both wrong the answer is about the name.
	if err := c.freeName(owner, in.Name); err != nil {
		return err
	}
	if err := in.checkTemplates(); err != nil {
		return err
	}
	r := c.w.addRepo(owner, in.Name)
	r.Description, r.Private, r.Template = in.Description, in.Private, in.Template
	// Whoever creates a repository watches it, also one of an organisation.
	r.DefaultBranch, r.Watchers = cmp.Or(in.DefaultBranch, r.DefaultBranch), []*user{c.doer}
	r.labels = c.w.labelsOfTemplate(in.IssueLabels)
	if in.AutoInit {
		c.initRepo(r, in)
	}
	c.w.record(c.doer, r, "create_repo", "", "")
	return c.created(c.repoView(r))
}

// checkTemplates refuses templates that do not exist. Licenses and .gitignore
// files are not checked: the real server has many more than the double.
func (in *repoInput) checkTemplates() error {
	if in.AutoInit && in.Readme != "" && in.Readme != "Default" {
		return fail(http.StatusBadRequest, "readme template does not exist, available templates: [Default]")
	}
	if name := in.IssueLabels; name != "" && labelTemplates[name] == nil {
		return fail(http.StatusUnprocessableEntity,
			"failed to load label template file %q: label template %q not found", name, name)
	}
	return nil
}

// mayCreateRepo says whether u may create repositories in the organisation.
// The right belongs to the team and is apart from what it may do in repositories.
func (w *world) mayCreateRepo(org, u *user) bool {
	return u.Admin || slices.ContainsFunc(org.Teams, func(t *team) bool {
		return t.CanCreateRepo && slices.Contains(t.Members, u)
	})
}

// freeName refuses a name that is taken or reserved.
// The statuses differ: two dots are 500, with the message for administrators only, reserved
// names 422 and a taken one 409.
func (c *call) freeName(owner *user, name string) error {
	if strings.Contains(name, "..") {
		return fail(http.StatusInternalServerError,
			"name is invalid [%s]: must be valid alpha or numeric or dash(-_) or dot characters", name)
	}
	if reservedName.MatchString(name) {
		if i := strings.LastIndexByte(name, '.'); i > 0 {
			return fail(http.StatusUnprocessableEntity, "name pattern is not allowed [pattern: *%s]", name[i:])
		}
		return fail(http.StatusUnprocessableEntity, "name is reserved [name: %s]", name)
	}
	if c.w.repoByName(owner.Login, name) != nil {
		return fail(http.StatusConflict, "The repository with the same name already exists.")
	}
	return nil
}

// addRepo creates an empty repository. A new one takes over a redirect.
// A client that knows the old name then reaches the new repository.
func (w *world) addRepo(owner *user, name string) *repo {
	r := &repo{
		ID: w.next("repo"), Owner: owner, Name: name, DefaultBranch: "main", Created: w.now(), Updated: w.now(),
		// Never archived is the year 1970, not null.
		ArchTime: epoch,
		Settings: defaultSettings(), Collaborators: map[int64]access{}, git: newGitStore(), wiki: newGitStore(),
	}
	w.repos = append(w.repos, r)
	delete(w.renamed, repoKey(owner.Login, name))
	return r
}

// initRepo makes the first commit.
func (c *call) initRepo(r *repo, in repoInput) {
	// The server writes the description under the name also when there is none.
	text := "# " + r.Name + "\n\n" + r.Description
	files := map[string]string{"README.md": r.git.addBlob([]byte(text))}
	if l, ok := find(licenseTemplates, func(l licenseTemplate) bool { return l.Key == in.License }); ok {
		files["LICENSE"] = r.git.addBlob([]byte(l.Body))
	}
	if g := gitignoreTemplates[in.Gitignores]; g != "" {
		files[".gitignore"] = r.git.addBlob([]byte(g))
	}
	me := c.signature()
	cm := r.git.addCommit(files, nil, me, me, "Initial commit")
	r.git.refs["refs/heads/"+r.DefaultBranch] = cm.id
}

// repoEdit is the body of an edit of a repository.
type repoEdit struct {
	Name          *string `json:"name" binding:"AlphaDashDot;MaxSize(100)"`
	Description   *string `json:"description" binding:"MaxSize(2048)"`
	Website       *string `json:"website" binding:"MaxSize(1024)"`
	Private       *bool   `json:"private"`
	Template      *bool   `json:"template"`
	DefaultBranch *string `json:"default_branch"`
	Archived      *bool   `json:"archived"`
}

// editRepo edits a repository. The settings are decoded over the present ones,
// so that what the body leaves out stays.
func editRepo(c *call, in *repoEdit) error {
	// The body is read twice, into the settings and into the rest, since the settings have the
	// names of the answer and no third state.
	settings := c.repo.Settings
	if err := c.bind(&settings); err != nil {
		return err
	}
	r := c.repo
	if in.Name != nil && *in.Name != "" && *in.Name != r.Name {
		// A change of the letter case alone is not a conflict with itself.
		if !strings.EqualFold(*in.Name, r.Name) {
			if err := c.freeName(r.Owner, *in.Name); err != nil {
				return err
			}
		}
		c.w.rename(r, r.Owner, *in.Name)
	}
	// An unknown branch is no error; the answer shows the old one.
	if in.DefaultBranch != nil && (r.empty() || r.git.branch(*in.DefaultBranch) != nil) { // others are passed over
		r.DefaultBranch = *in.DefaultBranch
	}
	set(&r.Description, in.Description)
	set(&r.Website, in.Website)
	set(&r.Private, in.Private)
	set(&r.Template, in.Template)
	if in.Archived != nil && *in.Archived != r.Archived {
		r.Archived, r.ArchTime = *in.Archived, epoch
		if r.Archived {
			r.ArchTime = c.now
		}
	}
	r.Settings, r.Updated = settings, c.now
	return c.ok(c.repoView(r))
}

// rename gives a repository another owner or name; the old name redirects.
// All methods answer 301 under the old name. A client that follows it with GET, as Go's does,
// reads a list where it meant to write; Aegis follows none.
func (w *world) rename(r *repo, owner *user, name string) {
	delete(w.renamed, repoKey(owner.Login, name))
	w.renamed[repoKey(r.Owner.Login, r.Name)] = r
	r.Owner, r.Name = owner, name
	// A repository that gets an old name of its own back must not redirect to itself.
	maps.DeleteFunc(w.renamed, func(key string, to *repo) bool { return to == r && key == repoKey(owner.Login, name) })
}

// deleteRepo removes a repository and all that points to it.
func deleteRepo(c *call) error {
	c.w.dropRepo(c.repo)
	return c.done()
}

// dropRepo removes a repository.
func (w *world) dropRepo(gone *repo) {
	w.repos = without(w.repos, gone)
	maps.DeleteFunc(w.renamed, func(_ string, r *repo) bool { return r == gone })
	for _, u := range w.users {
		u.Starred = without(u.Starred, gone)
		for _, t := range u.Teams {
			t.Repos = without(t.Repos, gone)
		}
	}
	for _, r := range w.repos {
		if r.Fork == gone {
			r.Fork = nil
		}
		// Pull requests from a fork outlive it, so their commits are copied and the head is
		// pinned.
		for _, is := range r.pulls() {
			if p := is.pull; p.HeadRepo == gone {
				if head := gone.git.branch(p.Head); head != nil && p.HeadID == "" {
					r.git.fetch(gone.git)
					p.HeadID = head.id
				}
				p.HeadRepo = nil
			}
		}
	}
	// What is left of these would show an object that no path reaches any more.
	w.threads = slices.DeleteFunc(w.threads, func(t *thread) bool { return t.issue.Repo == gone })
	w.feed = slices.DeleteFunc(w.feed, func(a *activity) bool { return a.repo == gone })
	w.hooks = slices.DeleteFunc(w.hooks, func(h *hook) bool { return h.repo == gone })
	w.packages = slices.DeleteFunc(w.packages, func(p *pkg) bool { return p.Repo == gone })
}

// forkRepoInput is the body of forkRepo.
type forkRepoInput struct {
	Organization string `json:"organization"`
	Name         string `json:"name" binding:"AlphaDashDot"`
}

// forkRepo forks into the caller's or an organisation's space.
func forkRepo(c *call, in *forkRepoInput) error {
	// The order of the refusals is: the organisation, the right to create there, the same name
	// in the same place, a fork that is there already, a name that is taken.
	owner := c.doer
	if in.Organization != "" {
		owner = c.w.userByLogin(in.Organization)
		if owner == nil || !owner.Org {
			return errNotFound
		}
		if !c.w.mayCreateRepo(owner, c.doer) {
			return fail(http.StatusForbidden,
				"User is not allowed to create repository in organization %s", owner.Login)
		}
	}
	in.Name = cmp.Or(in.Name, c.repo.Name)
	if owner == c.repo.Owner && strings.EqualFold(in.Name, c.repo.Name) {
		return fail(http.StatusConflict, "repository already exists [uname: %s, name: %s]", owner.Login, c.repo.Name)
	}
	if f, ok := find(c.w.forks(c.repo), func(f *repo) bool { return f.Owner == owner }); ok {
		return fail(http.StatusConflict, "repository is already forked by user "+
			"[uname: %s, repo path: %s, fork path: %s]", owner.Login, c.repo.fullName(), f.fullName())
	}
	if c.w.repoByName(owner.Login, in.Name) != nil {
		return fail(http.StatusConflict, "The repository with the same name already exists.")
	}
	r := c.w.addRepo(owner, in.Name)
	r.Fork, r.git, r.Private, r.Description = c.repo, c.repo.git.clone(), c.repo.Private, c.repo.Description
	r.DefaultBranch, r.Watchers = c.repo.DefaultBranch, []*user{c.doer}
	// Issues of a fork are 404, since a repository without them has no such page.
	r.Settings.onlyCode()
	// 202, although the fork is complete.
	return c.json(http.StatusAccepted, c.repoView(r))
}

// transferRepoInput is the body of transferRepo.
type transferRepoInput struct {
	NewOwner string  `json:"new_owner" binding:"Required"`
	TeamIDs  []int64 `json:"team_ids"`
}

// transferRepo moves a repository, at once when the caller may create
// repositories there; otherwise the new owner has to accept.
// At once is 202, a transfer that waits is 201, which is the wrong way round for what they
// mean. The teams of the body are not looked at.
func transferRepo(c *call, in *transferRepoInput) error {
	to := c.w.userByLogin(in.NewOwner)
	switch {
	case to == nil:
		return fail(http.StatusNotFound, "The new owner does not exist or cannot be found")
	case c.repo.PendingOwner != nil:
		return fail(http.StatusConflict, "repository is already in a transfer")
	case c.w.repoByName(to.Login, c.repo.Name) != nil:
		return fail(http.StatusUnprocessableEntity,
			"repository already exists [uname: %s, name: %s]", to.Login, c.repo.Name)
	}
	if to == c.doer || c.doer.Admin || to.Org && c.w.mayCreateRepo(to, c.doer) {
		c.w.rename(c.repo, to, c.repo.Name)
		return c.json(http.StatusAccepted, c.repoView(c.repo))
	}
	c.repo.PendingOwner, c.repo.Transferrer = to, c.doer
	return c.created(c.repoView(c.repo))
}

// answerTransfer accepts or rejects a pending transfer.
// Accepting is 202, rejecting 200.
func answerTransfer(accept bool) handler {
	return func(c *call) error {
		to := c.repo.PendingOwner
		switch {
		case to == nil:
			return fail(http.StatusNotFound, "repository doesn't have a pending transfer [repo_id: %d]", c.repo.ID)
		case to != c.doer && !c.doer.Admin && !(to.Org && c.w.isOrgOwner(to, c.doer)):
			return fail(http.StatusForbidden, "user does not have permission to answer the transfer")
		}
		c.repo.PendingOwner = nil
		if !accept {
			return c.ok(c.repoView(c.repo))
		}
		c.w.rename(c.repo, to, c.repo.Name)
		return c.json(http.StatusAccepted, c.repoView(c.repo))
	}
}
