package fakegitea

import (
	"encoding/base64"
	"net/url"
	"strings"
	"time"
)

// unsigned is the verification of every commit here: none is ever signed.
func unsigned() obj {
	return obj{"verified", false, "reason", "gpg.error.not_signed_commit", "signature", "", "signer", nil, "payload",
		""}
}

// meta points to a commit or tree.
func meta(url, sha string, created time.Time) obj {
	return obj{"url", url, "sha", sha, "created", created}
}

// commitView renders a commit. The id of its tree is given as the commit's own,
// as the real server does.
// A client that reads the tree by it gets the right one all the same, as a commit is taken too.
func (c *call) commitView(r *repo, g *gitStore, cm *commit) obj {
	self := c.api(r, "git", "commits", cm.id)
	files, plus, minus := []obj{}, 0, 0
	for _, ch := range g.changesOf(cm) {
		files = append(files, obj{"filename", ch.path, "status", ch.status})
		plus, minus = plus+ch.plus, minus+ch.minus
	}
	inner := obj{
		"url", self, "author", cm.author, "committer", cm.committer, "message", cm.message,
		"tree", meta(c.api(r, "git", "trees", cm.id), cm.id, cm.committer.When), "verification", unsigned(),
	}
	return obj{
		"url", self, "sha", cm.id, "created", cm.committer.When, "html_url", c.repoURL(r, "commit", cm.id),
		"commit", inner,
		"author", c.anon(c.w.userByEmail(cm.author.Email)), "committer", c.anon(c.w.userByEmail(cm.committer.Email)),
		"parents", c.parents(r, cm), "files", files,
		"stats", obj{"total", plus + minus, "additions", plus, "deletions", minus},
	}
}

// parents renders the parents of a commit.
func (c *call) parents(r *repo, cm *commit) []obj {
	// Parents have the year 1 as their time.
	return mapped(cm.parents, func(id string) obj { return meta(c.api(r, "git", "commits", id), id, time.Time{}) })
}

// userByEmail finds the user of a git identity.
// Most commits of a real repository have none, and their author is null.
func (w *world) userByEmail(email string) *user {
	u, _ := find(w.people(), func(u *user) bool { return strings.EqualFold(u.Email, email) })
	return u
}

// branchView renders a branch.
func (c *call) branchView(name string) obj {
	cm := c.repo.git.branch(name)
	who := func(s signature) obj {
		login := ""
		if u := c.w.userByEmail(s.Email); u != nil {
			login = u.Login
		}
		return obj{"name", s.Name, "email", s.Email, "username", login}
	}
	rule, canPush := c.repo.ruleFor(name), c.perm >= accessWrite
	protected := rule != nil
	if protected {
		canPush = canPush && rule.mayPush(c.doer)
	} else {
		// An unprotected branch has an empty list of contexts, not null.
		rule = &protection{StatusContexts: []string{}}
	}
	return obj{
		"name", name, "commit", obj{
			"id", cm.id, "message", cm.message, "url", c.repoURL(c.repo, "commit", cm.id), "author", who(cm.author),
			"committer", who(cm.committer), "verification", unsigned(), "timestamp", cm.committer.When,
			// The commit has the form of a hook's payload, whose lists of files are never
			// filled in here.
			"added", nil, "removed", nil, "modified", nil,
		},
		"protected", protected, "required_approvals", rule.Approvals, "enable_status_check", rule.StatusCheck,
		"status_check_contexts", rule.StatusContexts, "user_can_push", canPush, "user_can_merge", c.perm >= accessWrite,
		"effective_branch_protection_name", rule.RuleName,
	}
}

// tagView renders a tag; the URL of its commit carries the tag object's id.
func (c *call) tagView(name string) obj {
	g := c.repo.git
	id := g.refs["refs/tags/"+name]
	cm := g.peel(id)
	message, created := cm.message, cm.committer.When
	if t := g.tags[id]; t != nil {
		message, created = t.message, t.tagger.When
	}
	return obj{
		"name", name, "message", message, "id", id, "commit", meta(c.api(c.repo, "git", "commits", id), cm.id, created),
		"zipball_url", c.repoURL(c.repo, "archive", escape(name)+".zip"),
		"tarball_url", c.repoURL(c.repo, "archive", escape(name)+".tar.gz"),
	}
}

// maxBlob is the size over which contents and blobs come without content.
// The answer is 200 with null as content and encoding; only the size tells why.
const maxBlob = 10 << 20

// treeAt is a commit with the name under which it was asked for.
type treeAt struct {
	ref  string
	kind string // branch, tag or commit, for web addresses
	head *commit
}

// contentView renders the object at a path.
func (c *call) contentView(at treeAt, p string, e treeEntry, withContent bool) obj {
	last := c.repo.git.lastChange(at.head, p)
	where := at.kind + "/" + escapePath(at.ref) + "/" + escapePath(p)
	self := c.api(c.repo, "contents", escapePath(p)) + "?ref=" + url.QueryEscape(at.ref)
	page := c.repoURL(c.repo) + "/src/" + where
	kind, size, object := "dir", 0, c.api(c.repo, "git", "trees", e.id)
	var encoding, content, download any
	if !e.dir { // what only a file has
		data := c.repo.git.blobs[e.id]
		kind, size, object, download = "file", len(data), c.api(c.repo, "git", "blobs",
			e.id), c.repoURL(c.repo)+"/raw/"+where
		if withContent && len(data) <= maxBlob {
			encoding, content = "base64", base64.StdEncoding.EncodeToString(data)
		}
	}
	return obj{
		"name", p[strings.LastIndexByte(p, '/')+1:], "path", p, "sha", e.id, "last_commit_sha", last.id,
		"last_committer_date", last.committer.When, "last_author_date", last.author.When, "type", kind, "size", size,
		"encoding", encoding, "content", content, "target", nil, "url", self, "html_url", page, "git_url", object,
		"download_url", download, "submodule_git_url", nil, "_links", obj{"self", self, "git", object, "html", page},
	}
}
