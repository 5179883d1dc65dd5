package fakegitea

import (
	"net/url"
	"path"
	"time"
)

// repoSettings are the switches of a repository that PATCH can flip, named and
// ordered as in the answers.
type repoSettings struct {
	HasCode          bool     `json:"has_code"`
	HasIssues        bool     `json:"has_issues"`
	Tracker          *tracker `json:"internal_tracker,omitempty"`
	HasWiki          bool     `json:"has_wiki"`
	HasPulls         bool     `json:"has_pull_requests"`
	HasProjects      bool     `json:"has_projects"`
	ProjectsMode     string   `json:"projects_mode"`
	HasReleases      bool     `json:"has_releases"`
	HasPackages      bool     `json:"has_packages"`
	HasActions       bool     `json:"has_actions"`
	IgnoreSpace      bool     `json:"ignore_whitespace_conflicts"`
	AllowMerge       bool     `json:"allow_merge_commits"`
	AllowRebase      bool     `json:"allow_rebase"`
	AllowRebaseMerge bool     `json:"allow_rebase_explicit"`
	AllowSquash      bool     `json:"allow_squash_merge"`
	AllowFastForward bool     `json:"allow_fast_forward_only_merge"`
	AllowMergeUpdate bool     `json:"allow_merge_update"`
	AllowRebaseUp    bool     `json:"allow_rebase_update"`
	AllowManual      bool     `json:"allow_manual_merge"`
	AutodetectManual bool     `json:"autodetect_manual_merge"`
	DeleteBranch     bool     `json:"default_delete_branch_after_merge"`
	MergeStyle       string   `json:"default_merge_style"`
	UpdateStyle      string   `json:"default_update_style"`
	MaintainerEdit   bool     `json:"default_allow_maintainer_edit"`
}

// tracker is the setup of the built-in issue tracker.
type tracker struct {
	EnableTime       bool `json:"enable_time_tracker"`
	ContributorsOnly bool `json:"allow_only_contributors_to_track_time"`
	Dependencies     bool `json:"enable_issue_dependencies"`
}

// defaultSettings is what a new repository has.
func defaultSettings() repoSettings {
	return repoSettings{
		HasCode: true, HasIssues: true, Tracker: &tracker{true, true, true},
		HasWiki: true, HasPulls: true, HasProjects: true, ProjectsMode: "all", HasReleases: true,
		HasPackages: true, HasActions: true,
		AllowMerge: true, AllowRebase: true, AllowRebaseMerge: true, AllowSquash: true,
		AllowFastForward: true, AllowMergeUpdate: true, AllowRebaseUp: true,
		MergeStyle: "merge", UpdateStyle: "merge", MaintainerEdit: true,
	}
}

// onlyCode switches off what a fork does not have.
func (s *repoSettings) onlyCode() {
	s.HasIssues, s.HasWiki, s.HasProjects, s.HasReleases, s.HasPackages, s.HasActions, s.Tracker = false, false, false, false, false, false, nil
}

// repoJSON is a repository.
type repoJSON struct {
	ID            int64     `json:"id"`
	Owner         obj       `json:"owner"`
	Name          string    `json:"name"`
	FullName      string    `json:"full_name"`
	Description   string    `json:"description"`
	Empty         bool      `json:"empty"`
	Private       bool      `json:"private"`
	Fork          bool      `json:"fork"`
	Template      bool      `json:"template"`
	Parent        *repoJSON `json:"parent,omitempty"`
	Mirror        bool      `json:"mirror"`
	Size          int64     `json:"size"`
	Language      string    `json:"language"`
	LanguagesURL  string    `json:"languages_url"`
	HTMLURL       string    `json:"html_url"`
	URL           string    `json:"url"`
	Link          string    `json:"link"`
	SSHURL        string    `json:"ssh_url"`
	CloneURL      string    `json:"clone_url"`
	OriginalURL   string    `json:"original_url"`
	Website       string    `json:"website"`
	Stars         int       `json:"stars_count"`
	Forks         int       `json:"forks_count"`
	Watchers      int       `json:"watchers_count"`
	BranchCount   int       `json:"branch_count"`
	OpenIssues    int       `json:"open_issues_count"`
	OpenPulls     int       `json:"open_pr_counter"`
	Releases      int       `json:"release_counter"`
	DefaultBranch string    `json:"default_branch"`
	Archived      bool      `json:"archived"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	ArchivedAt    time.Time `json:"archived_at"`
	Permissions   obj       `json:"permissions,omitempty"`
	repoSettings
	AvatarURL      string    `json:"avatar_url"`
	Internal       bool      `json:"internal"`
	MirrorInterval string    `json:"mirror_interval"`
	ObjectFormat   string    `json:"object_format_name"`
	MirrorUpdated  time.Time `json:"mirror_updated"`
	MirrorSynced   time.Time `json:"mirror_last_sync_at"`
	Transfer       obj       `json:"repo_transfer,omitempty"`
	Topics         []string  `json:"topics"`
	Licenses       []string  `json:"licenses"`
}

// epoch is how the API spells "never" in places that are not null.
var epoch = time.Unix(0, 0).UTC()

// repoView renders a repository for the caller.
func (c *call) repoView(r *repo) *repoJSON {
	a := c.w.access(c.doer, r)
	out := c.repoBare(r)
	out.Permissions = obj{
		"admin", a >= accessAdmin, "push", a >= accessWrite, "pull", a >= accessRead,
	}
	if r.Fork != nil && c.w.access(c.doer, r.Fork) >= accessRead {
		out.Parent = c.repoBare(r.Fork)
		out.Parent.Permissions = out.Permissions
	}
	return out
}

// repoBare renders a repository without the caller's permissions.
func (c *call) repoBare(r *repo) *repoJSON {
	page := c.repoURL(r)
	host := "localhost"
	if u, err := url.Parse(c.root); err == nil {
		host = u.Hostname()
	}
	out := &repoJSON{
		ID: r.ID, Owner: c.ownerOf(r), Name: r.Name, FullName: r.fullName(), Description: r.Description,
		Empty: r.empty(), Private: r.Private, Fork: r.Fork != nil, Template: r.Template, Mirror: r.Mirror,
		Size: r.git.size(), Language: c.w.mainLanguage(r), LanguagesURL: c.api(r, "languages"),
		HTMLURL: page, URL: c.api(r), SSHURL: "git@" + host + ":" + r.fullName() + ".git", CloneURL: page + ".git",
		Website: r.Website, Stars: len(c.w.stargazers(r)), Forks: len(c.w.forks(r)), Watchers: len(r.Watchers),
		BranchCount: len(r.git.names("refs/heads/")), DefaultBranch: r.DefaultBranch, Archived: r.Archived,
		CreatedAt: r.Created, UpdatedAt: r.Updated, ArchivedAt: r.ArchTime, repoSettings: r.Settings,
		ObjectFormat: "sha1", Topics: append([]string{}, r.Topics...), Licenses: licensesOf(r),
	}
	if r.PendingOwner != nil {
		out.Transfer = obj{
			"doer", c.user(r.Transferrer), "recipient", c.user(r.PendingOwner), "teams", []obj{},
		}
	}
	for _, is := range r.issues {
		switch {
		case is.Closed:
		case is.pull != nil:
			out.OpenPulls++
		default:
			out.OpenIssues++
		}
	}
	for _, rel := range r.releases {
		if !rel.Draft {
			out.Releases++
		}
	}
	return out
}

// ownerOf renders the owner: the address shows to anyone logged in, the private
// fields to nobody.
func (c *call) ownerOf(r *repo) obj {
	out := c.anon(r.Owner)
	if c.doer != nil && !r.Owner.HideEmail {
		out.set("email", r.Owner.Email)
	}
	return out
}

// repos renders a list.
func (c *call) repos(rs []*repo) []*repoJSON { return mapped(rs, c.repoView) }

// repoURL is the web address of a repository and things in it.
func (c *call) repoURL(r *repo, parts ...string) string {
	return c.root + "/" + path.Join(append([]string{escape(r.Owner.Login), escape(r.Name)}, parts...)...)
}

// api is the API address of a repository and things in it; the parts are
// already escaped.
func (c *call) api(r *repo, parts ...string) string {
	out := c.root + "/api/v1/repos/" + escape(r.Owner.Login) + "/" + escape(r.Name)
	for _, p := range parts {
		out += "/" + p
	}
	return out
}

// stargazers lists who starred r.
func (w *world) stargazers(r *repo) []*user {
	return filter(w.people(), func(u *user) bool {
		_, ok := find(u.Starred, func(s *repo) bool { return s == r })
		return ok
	})
}

// forks lists the forks of r.
func (w *world) forks(r *repo) []*repo {
	return filter(w.repos, func(f *repo) bool { return f.Fork == r })
}

// languageOf maps file extensions to languages.
var languageOf = map[string]string{
	".go": "Go", ".py": "Python", ".js": "JavaScript", ".ts": "TypeScript", ".sh": "Shell", ".css": "CSS", ".html": "HTML",
}

// languages sums up the bytes of each language on the default branch.
func languages(r *repo) map[string]int {
	out := map[string]int{}
	if head := r.git.branch(r.DefaultBranch); head != nil {
		for p, id := range head.files {
			if l := languageOf[path.Ext(p)]; l != "" {
				out[l] += len(r.git.blobs[id])
			}
		}
	}
	return out
}

// mainLanguage is the language with the most bytes.
func (w *world) mainLanguage(r *repo) string {
	best, most := "", 0
	for l, n := range languages(r) {
		if n > most || n == most && l < best {
			best, most = l, n
		}
	}
	return best
}

// licensesOf names the license of the default branch, when its file begins with
// the name of a known one.
func licensesOf(r *repo) []string {
	head := r.git.branch(r.DefaultBranch)
	if head == nil {
		return []string{}
	}
	text := string(r.git.blobs[head.files["LICENSE"]])
	for _, l := range licenseTemplates {
		if text != "" && len(text) >= 10 && text[:10] == l.Body[:10] {
			return []string{l.Key}
		}
	}
	return []string{}
}
