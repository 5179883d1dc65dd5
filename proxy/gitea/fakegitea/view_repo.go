package fakegitea

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
)

// repoSettings are the switches of a repository that PATCH can flip, named and
// ordered as in the answers.
// The same struct is read from bodies and written into answers, so a name cannot differ between
// the two.
type repoSettings struct {
	HasCode   bool `json:"has_code"`
	HasIssues bool `json:"has_issues"`
	// It is left out without issues, where the other members stay and are false.
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
// The booleans that it does not name are off in a fresh Gitea.
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
	s.HasIssues, s.HasWiki, s.HasProjects, s.Tracker = false, false, false, nil
	s.HasReleases, s.HasPackages, s.HasActions = false, false, false
}

// epoch is the API's "never" where null is not allowed.
var epoch = time.Unix(0, 0).UTC()

// repoView renders a repository for the caller.
func (c *call) repoView(r *repo) obj {
	a := c.w.access(c.doer, r)
	out, may := c.repoBare(r), obj{"admin", a >= accessAdmin, "push", a >= accessWrite, "pull", a >= accessRead}
	out.set("permissions", may)
	if r.Fork != nil && c.w.access(c.doer, r.Fork) >= accessRead {
		// The parent carries the caller's rights in the fork, as on the real server.
		parent := c.repoBare(r.Fork)
		parent.set("permissions", may)
		out.set("parent", parent)
	}
	return out
}

// repoBare renders a repository without the caller's permissions.
func (c *call) repoBare(r *repo) obj {
	page := c.repoURL(r)
	var transfer any = omitted
	if r.PendingOwner != nil {
		transfer = obj{"doer", c.user(r.Transferrer), "recipient", c.user(r.PendingOwner), "teams", []obj{}}
	}
	// Issues and pull requests share one list and one row of numbers but are counted apart.
	open := filter(r.issues, func(is *issue) bool { return !is.Closed })
	pulls := len(filter(open, func(is *issue) bool { return is.pull != nil }))
	releases := filter(r.releases, func(rel *release) bool { return !rel.Draft })
	out := obj{
		"id", r.ID, "owner", c.ownerOf(r), "name", r.Name, "full_name", r.fullName(), "description", r.Description,
		"empty", r.empty(), "private", r.Private, "fork", r.Fork != nil, "template", r.Template, "parent", omitted,
		"mirror", r.Mirror, "size", r.git.size(), "language", c.w.mainLanguage(r),
		"languages_url", c.api(r, "languages"),
		"html_url", page, "url", c.api(r), "link", "", "ssh_url", "git@" + c.host() + ":" + r.fullName() + ".git",
		"clone_url", page + ".git", "original_url", "", "website", r.Website, "stars_count", len(c.w.stargazers(r)),
		"forks_count", len(c.w.forks(r)), "watchers_count", len(r.Watchers),
		"branch_count", len(r.git.names("refs/heads/")), "open_issues_count", len(open) - pulls,
		"open_pr_counter", pulls,
		"release_counter", len(releases), "default_branch", r.DefaultBranch, "archived", r.Archived,
		"created_at", r.Created, "updated_at", r.Updated, "archived_at", r.ArchTime, "permissions", omitted,
	}
	out = append(out, r.Settings.view()...)
	return append(out, "avatar_url", "", "internal", false, "mirror_interval", "", "object_format_name", "sha1",
		"mirror_updated", time.Time{}, "mirror_last_sync_at", time.Time{}, "repo_transfer", transfer,
		"topics", append([]string{}, r.Topics...), "licenses", licensesOf(r))
}

// view renders the settings, which are members of the repository. PATCH reads them
// by the same names.
func (s *repoSettings) view() (out obj) {
	for i, v := 0, reflect.ValueOf(s).Elem(); i < v.NumField(); i++ {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if option == "" || !v.Field(i).IsZero() {
			out = append(out, name, v.Field(i).Interface())
		}
	}
	return out
}

// ownerOf renders the owner: the address shows to anyone logged in, the private
// fields are never shown.
func (c *call) ownerOf(r *repo) obj {
	out := c.anon(r.Owner)
	if c.doer != nil && !r.Owner.HideEmail {
		out.set("email", r.Owner.Email)
	}
	return out
}

// repos renders a list.
func (c *call) repos(rs []*repo) []obj { return mapped(rs, c.repoView) }

// repoURL is the web address of a repository and things in it.
// Parts other than owner and name come escaped.
func (c *call) repoURL(r *repo, parts ...string) string {
	return c.root + "/" + path.Join(append([]string{escape(r.Owner.Login), escape(r.Name)}, parts...)...)
}

// api is the API address of a repository and things in it; the parts are
// already escaped.
func (c *call) api(r *repo, parts ...string) string {
	base := []string{c.root, "api/v1/repos", escape(r.Owner.Login), escape(r.Name)}
	return strings.Join(append(base, parts...), "/")
}

// stargazers lists who starred r.
func (w *world) stargazers(r *repo) []*user {
	return filter(w.people(), func(u *user) bool { return slices.Contains(u.Starred, r) })
}

// forks lists the forks of r.
// Forks of forks are not among them.
func (w *world) forks(r *repo) []*repo {
	return filter(w.repos, func(f *repo) bool { return f.Fork == r })
}

// languageOf maps file extensions to languages.
var languageOf = map[string]string{
	".go": "Go", ".py": "Python", ".js": "JavaScript", ".ts": "TypeScript", ".sh": "Shell", ".css": "CSS",
	".html": "HTML",
}

// languages sums up the bytes of each language on the default branch.
// The real server counts in the background and knows many more languages.
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
		// The name decides between equals: the order of a map differs from call to call.
		if n > most || n == most && l < best {
			best, most = l, n
		}
	}
	return best
}

// licensesOf names the license of the default branch, when its file begins with
// the name of a known one.
func licensesOf(r *repo) []string {
	found := []string{}
	if head := r.git.branch(r.DefaultBranch); head != nil {
		text := string(r.git.blobs[head.files["LICENSE"]])
		for _, l := range licenseTemplates {
			if strings.HasPrefix(text, l.Body[:10]) {
				found = append(found, l.Key)
			}
		}
	}
	return found
}
