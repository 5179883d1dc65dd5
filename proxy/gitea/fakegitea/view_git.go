package fakegitea

import (
	"encoding/base64"
	"net/url"
	"strings"
	"time"
)

// verification says that a commit is not signed; none ever is.
type verification struct {
	Verified  bool   `json:"verified"`
	Reason    string `json:"reason"`
	Signature string `json:"signature"`
	Signer    any    `json:"signer"`
	Payload   string `json:"payload"`
}

// unsigned is the verification of every commit here.
var unsigned = verification{Reason: "gpg.error.not_signed_commit"}

// identityJSON is an author in git's view.
type identityJSON struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	When  time.Time `json:"date"`
}

// metaJSON points to a commit or tree.
type metaJSON struct {
	URL     string    `json:"url"`
	SHA     string    `json:"sha"`
	Created time.Time `json:"created"`
}

// statsJSON counts changed lines.
type statsJSON struct {
	Total     int `json:"total"`
	Additions int `json:"additions"`
	Deletions int `json:"deletions"`
}

// commitJSON is a commit of the log.
type commitJSON struct {
	URL       string     `json:"url"`
	SHA       string     `json:"sha"`
	Created   time.Time  `json:"created"`
	HTMLURL   string     `json:"html_url"`
	Commit    obj        `json:"commit"`
	Author    obj        `json:"author"`
	Committer obj        `json:"committer"`
	Parents   []metaJSON `json:"parents"`
	Files     []obj      `json:"files"`
	Stats     *statsJSON `json:"stats"`
}

// commitView renders a commit. The id of its tree is given as the commit's own,
// as the real server does.
func (c *call) commitView(r *repo, g *gitStore, cm *commit) *commitJSON {
	self := c.api(r, "git", "commits", cm.id)
	out := &commitJSON{
		URL: self, SHA: cm.id, Created: cm.committer.When, HTMLURL: c.repoURL(r, "commit", cm.id),
		Commit: obj{
			"url", self, "author", identityJSON(cm.author), "committer", identityJSON(cm.committer),
			"message", cm.message, "tree", metaJSON{c.api(r, "git", "trees", cm.id), cm.id, cm.committer.When},
			"verification", &verification{Reason: unsigned.Reason},
		},
		Author: c.anon(c.w.userByEmail(cm.author.Email)), Committer: c.anon(c.w.userByEmail(cm.committer.Email)),
		Parents: c.parents(r, cm), Files: []obj{}, Stats: &statsJSON{},
	}
	for _, ch := range g.changesOf(cm) {
		out.Files = append(out.Files, obj{"filename", ch.path, "status", ch.status})
		out.Stats.Additions += ch.plus
		out.Stats.Deletions += ch.minus
	}
	out.Stats.Total = out.Stats.Additions + out.Stats.Deletions
	return out
}

// parents renders the parents of a commit.
func (c *call) parents(r *repo, cm *commit) []metaJSON {
	return mapped(cm.parents, func(id string) metaJSON {
		return metaJSON{URL: c.api(r, "git", "commits", id), SHA: id}
	})
}

// userByEmail finds the user of a git identity.
func (w *world) userByEmail(email string) *user {
	u, _ := find(w.people(), func(u *user) bool { return strings.EqualFold(u.Email, email) })
	return u
}

// payloadUser is an author in a branch's commit.
type payloadUser struct {
	Name     string `json:"name"`
	Email    string `json:"email"`
	Username string `json:"username"`
}

// payloadCommit is the commit of a branch.
type payloadCommit struct {
	ID           string       `json:"id"`
	Message      string       `json:"message"`
	URL          string       `json:"url"`
	Author       payloadUser  `json:"author"`
	Committer    payloadUser  `json:"committer"`
	Verification verification `json:"verification"`
	Timestamp    time.Time    `json:"timestamp"`
	Added        []string     `json:"added"`
	Removed      []string     `json:"removed"`
	Modified     []string     `json:"modified"`
}

// branchJSON is a branch.
type branchJSON struct {
	Name              string        `json:"name"`
	Commit            payloadCommit `json:"commit"`
	Protected         bool          `json:"protected"`
	RequiredApprovals int64         `json:"required_approvals"`
	StatusCheck       bool          `json:"enable_status_check"`
	StatusContexts    []string      `json:"status_check_contexts"`
	CanPush           bool          `json:"user_can_push"`
	CanMerge          bool          `json:"user_can_merge"`
	Rule              string        `json:"effective_branch_protection_name"`
}

// branchView renders a branch.
func (c *call) branchView(name string) *branchJSON {
	cm := c.repo.git.branch(name)
	who := func(s signature) payloadUser {
		u := c.w.userByEmail(s.Email)
		out := payloadUser{Name: s.Name, Email: s.Email}
		if u != nil {
			out.Username = u.Login
		}
		return out
	}
	out := &branchJSON{
		Name: name,
		Commit: payloadCommit{
			ID: cm.id, Message: cm.message, URL: c.repoURL(c.repo, "commit", cm.id),
			Author: who(cm.author), Committer: who(cm.committer), Verification: unsigned, Timestamp: cm.committer.When,
		},
		StatusContexts: []string{},
		CanPush:        c.perm >= accessWrite, CanMerge: c.perm >= accessWrite,
	}
	if rule := c.repo.ruleFor(name); rule != nil {
		out.Protected, out.Rule = true, rule.RuleName
		out.RequiredApprovals, out.StatusCheck = rule.Approvals, rule.StatusCheck
		out.StatusContexts = rule.StatusContexts
		out.CanPush = out.CanPush && rule.mayPush(c.doer)
	}
	return out
}

// tagJSON is a tag.
type tagJSON struct {
	Name       string   `json:"name"`
	Message    string   `json:"message"`
	ID         string   `json:"id"`
	Commit     metaJSON `json:"commit"`
	ZipballURL string   `json:"zipball_url"`
	TarballURL string   `json:"tarball_url"`
}

// tagView renders a tag; the URL of its commit carries the tag object's id.
func (c *call) tagView(name string) *tagJSON {
	g := c.repo.git
	id := g.refs["refs/tags/"+name]
	cm := g.peel(id)
	out := &tagJSON{
		Name: name, ID: id, Message: cm.message,
		Commit:     metaJSON{c.api(c.repo, "git", "commits", id), cm.id, cm.committer.When},
		ZipballURL: c.repoURL(c.repo, "archive", escape(name)+".zip"),
		TarballURL: c.repoURL(c.repo, "archive", escape(name)+".tar.gz"),
	}
	if t := g.tags[id]; t != nil {
		out.Message, out.Commit.Created = t.message, t.tagger.When
	}
	return out
}

// contentJSON is a file or folder of a tree.
type contentJSON struct {
	Name         string     `json:"name"`
	Path         string     `json:"path"`
	SHA          string     `json:"sha"`
	LastSHA      *string    `json:"last_commit_sha,omitempty"`
	LastCommit   *time.Time `json:"last_committer_date,omitempty"`
	LastAuthor   *time.Time `json:"last_author_date,omitempty"`
	Type         string     `json:"type"`
	Size         int        `json:"size"`
	Encoding     *string    `json:"encoding"`
	Content      *string    `json:"content"`
	Target       *string    `json:"target"`
	URL          string     `json:"url"`
	HTMLURL      string     `json:"html_url"`
	GitURL       string     `json:"git_url"`
	DownloadURL  *string    `json:"download_url"`
	SubmoduleURL *string    `json:"submodule_git_url"`
	Links        obj        `json:"_links"`
}

// maxBlob is the size over which contents and blobs come without content.
const maxBlob = 10 << 20

// treeAt is a commit with the name under which it was asked for.
type treeAt struct {
	ref  string
	kind string // branch, tag or commit, for web addresses
	head *commit
}

// contentView renders the object at a path.
func (c *call) contentView(at treeAt, p string, e treeEntry, withContent bool) *contentJSON {
	last := c.repo.git.lastChange(at.head, p)
	where := at.kind + "/" + escapePath(at.ref) + "/" + escapePath(p)
	out := &contentJSON{
		Name: p[strings.LastIndexByte(p, '/')+1:], Path: p, SHA: e.id, LastSHA: &last.id,
		LastCommit: &last.committer.When, LastAuthor: &last.author.When, Type: "dir",
		URL:     c.api(c.repo, "contents", escapePath(p)) + "?ref=" + url.QueryEscape(at.ref),
		HTMLURL: c.repoURL(c.repo) + "/src/" + where,
		GitURL:  c.api(c.repo, "git", "trees", e.id),
	}
	if !e.dir {
		c.fillFile(out, where, withContent)
	}
	out.Links = obj{"self", out.URL, "git", out.GitURL, "html", out.HTMLURL}
	return out
}

// fillFile adds what only a file has.
func (c *call) fillFile(out *contentJSON, where string, withContent bool) {
	data := c.repo.git.blobs[out.SHA]
	download := c.repoURL(c.repo) + "/raw/" + where
	out.Type, out.Size, out.DownloadURL = "file", len(data), &download
	out.GitURL = c.api(c.repo, "git", "blobs", out.SHA)
	if withContent && len(data) <= maxBlob {
		encoding, content := "base64", base64.StdEncoding.EncodeToString(data)
		out.Encoding, out.Content = &encoding, &content
	}
}
