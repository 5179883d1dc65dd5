package fakegitea

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"
)

// handleWrites registers writing files.
func handleWrites(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("POST "+p+"/contents", reads(changeFiles), needToken, needBranch, needActive)
	// One file has its operation from the method; several name theirs in the body.
	for method, operation := range map[string]string{"POST": "create", "PUT": "update", "DELETE": "delete"} {
		t.on(method+" "+p+"/contents/{filepath}", writeFile(operation), needToken, needBranch, needActive)
	}
}

// commitInput is what every write of files takes. The author and committer that it
// names are taken on trust, as a commit that is pushed is. No account of theirs has to
// exist.
type commitInput struct {
	Message       string    `json:"message"`
	BranchName    string    `json:"branch" binding:"GitRefName;MaxSize(100)"`
	NewBranchName string    `json:"new_branch" binding:"GitRefName;MaxSize(100)"`
	ForcePush     bool      `json:"force_push"`
	Author        signature `json:"author"`
	Committer     signature `json:"committer"`
	Dates         struct {
		Author    *time.Time `json:"author"`
		Committer *time.Time `json:"committer"`
	} `json:"dates"`
	Signoff bool `json:"signoff"`
}

// fileOp is one change of a file. Content is nil when the body has none, which a rename
// may: the file keeps its content then, while "" empties it.
type fileOp struct {
	Operation string  `json:"operation" binding:"Required"`
	Path      string  `json:"path" binding:"Required;MaxSize(500)"`
	From      string  `json:"from_path"`
	Content   *string `json:"content"`
	SHA       string  `json:"sha"`
}

// fileInput is the body of a write of one file.
type fileInput struct {
	commitInput
	Content string `json:"content"`
	SHA     string `json:"sha"`
	From    string `json:"from_path"`
}

// writeFile is the handler that creates a file that must not exist, replaces one, or
// deletes it. A file is deleted by its sha only; without one a replacement creates.
func writeFile(operation string) handler {
	return reads(func(c *call, in *fileInput) error {
		// The content is never absent here, so a rename of one file without content
		// empties it.
		op := fileOp{Operation: operation, Path: c.params["filepath"], From: in.From, Content: &in.Content, SHA: in.SHA}
		status := http.StatusOK
		switch {
		// The check is the route's own, as a replacement may leave the sha out.
		case operation == "delete" && in.SHA == "":
			return fail(http.StatusUnprocessableEntity, "[SHA]: Required")
		case operation == "create" || in.SHA == "":
			op.Operation, status = "create", http.StatusCreated
		}
		cm, views, err := c.commitFiles(in.commitInput, []fileOp{op})
		if err != nil {
			return err
		}
		return c.json(status, obj{"content", views[0], "commit", c.fileCommit(cm), "verification", unsigned()})
	})
}

// changeFilesInput is the body of changeFiles.
type changeFilesInput struct {
	commitInput
	Files []fileOp `json:"files" binding:"Required"`
}

// changeFiles applies several changes in one commit. It is 201 whatever the changes
// are, also for deletions alone and for no change at all.
func changeFiles(c *call, in *changeFilesInput) error {
	cm, views, err := c.commitFiles(in.commitInput, in.Files)
	if err != nil {
		return err
	}
	return c.created(obj{"files", views, "commit", c.fileCommit(cm), "verification", unsigned()})
}

// fileCommit renders the commit of a write. Its time of creation is the zero time, as
// Gitea leaves it in this answer.
func (c *call) fileCommit(cm *commit) obj {
	return obj{
		"url", c.api(c.repo, "git", "commits", cm.id), "sha", cm.id, "created", time.Time{},
		"html_url", c.repoURL(c.repo, "commit", cm.id), "author", cm.author, "committer", cm.committer,
		"parents", c.parents(c.repo, cm), "message", cm.message,
		"tree", meta(c.api(c.repo, "git", "trees", cm.tree), cm.tree, time.Time{}),
	}
}

// commitFiles applies the changes on the branch and returns the commit and the files as
// they are then; a deleted file is null. All changes are made or none. Each sees what
// those before it did; Gitea checks every one against the branch as it was, and refuses
// to create a file that the same request deletes.
func (c *call) commitFiles(in commitInput, ops []fileOp) (*commit, []obj, error) {
	branch, target, err := c.branches(in)
	if err != nil {
		return nil, nil, err
	}
	g := c.repo.git
	head := g.branch(branch)
	files := map[string]string{}
	var parents []string
	// An empty repository gets its first commit, on a branch of any name. Gitea then
	// makes that branch the default one; here the default stays.
	if head != nil {
		files, parents = maps.Clone(head.files), []string{head.id}
	}
	for i := range ops {
		if err := c.applyOp(files, &ops[i]); err != nil {
			return nil, nil, err
		}
	}
	author, committer := c.signatures(in)
	cm := g.addCommit(files, parents, author, committer, c.messageOf(in, ops))
	c.moveBranch(target, cm)
	at := treeAt{target, "branch", cm}
	views := mapped(ops, func(op fileOp) obj {
		e, ok := g.at(cm.tree, op.Path)
		if !ok {
			return nil
		}
		return c.contentView(at, op.Path, e, true)
	})
	return cm, views, nil
}

// branches picks the branch that a write starts from and the one it goes to, and
// refuses what a protection forbids. A new branch that exists is 422 here, where the
// route for branches says 409.
func (c *call) branches(in commitInput) (from, to string, err error) {
	from = cmp.Or(in.BranchName, c.repo.DefaultBranch)
	to = from
	g := c.repo.git
	if in.NewBranchName != "" && in.NewBranchName != from {
		to = in.NewBranchName
		if g.branch(to) != nil && !in.ForcePush {
			return "", "", fail(http.StatusUnprocessableEntity, "branch already exists [name: %s]", to)
		}
	}
	if g.branch(from) == nil && !c.repo.empty() {
		return "", "", fail(http.StatusNotFound, "branch does not exist [repo_id: %d name: %s]", c.repo.ID, from)
	}
	// What counts is the branch that is written to, not the one it starts from.
	if rule := c.repo.ruleFor(to); rule != nil && !rule.mayPush(c.doer) {
		return "", "", fail(http.StatusForbidden, "user cannot commit to repo [user: %s]", c.doer.Login)
	}
	return from, to, nil
}

// moveBranch points a branch at a commit. Its pull requests need no update: they look
// up their sides whenever they are rendered. The event carries the message; Gitea's
// carries the list of commits in JSON.
func (c *call) moveBranch(name string, cm *commit) {
	c.repo.git.refs["refs/heads/"+name] = cm.id
	c.repo.Updated = c.now
	c.record("commit_repo", cm.message, "refs/heads/"+name)
}

// applyOp applies one change to a snapshot. The path is cleaned before it is looked at,
// so a/../b.txt writes b.txt: whoever permits writes by their path must clean it in the
// same way.
func (c *call) applyOp(files map[string]string, op *fileOp) error {
	clean := path.Clean(op.Path)
	switch {
	// This is an internal error on the real server, while .git is a refusal.
	case strings.HasPrefix(clean, "../") || clean == "..":
		return fail(http.StatusInternalServerError, "path leads out of the repository: %s", op.Path)
	case gitPath(clean) || clean == "." || clean == "/":
		return fail(http.StatusUnprocessableEntity, "path contains a malformed path component [path: %s]", op.Path)
	}
	op.Path = strings.TrimPrefix(clean, "/")
	switch op.Operation {
	case "delete":
		if err := checkSHA(files, op.Path, op.SHA); err != nil {
			return err
		}
		delete(files, op.Path)
		return nil
	// The sha is that of the old path. Without content only the name changes.
	case "update", "rename":
		from := cmp.Or(cleanPath(op.From), op.Path)
		if err := checkSHA(files, from, op.SHA); err != nil {
			return err
		}
		old := files[from]
		delete(files, from)
		if op.Content == nil {
			files[op.Path] = old
			return nil
		}
	case "create":
		if files[op.Path] != "" {
			return fail(http.StatusUnprocessableEntity, "repository file already exists [path: %s]", op.Path)
		}
	// An upload creates or replaces and asks for no sha.
	case "upload":
	default:
		return fail(http.StatusInternalServerError, "invalid file operation: %s", op.Operation)
	}
	return c.putFile(files, op)
}

// checkSHA refuses a file that is not there or not as the caller knows it. A file that
// changed meanwhile is 422, not 409. The message names the id that it has now.
func checkSHA(files map[string]string, p, sha string) error {
	have := files[p]
	switch {
	case have == "":
		return errNoObject("", p)
	case sha != "" && sha != have: // none means the file as it is
		return fail(http.StatusUnprocessableEntity, "sha does not match [given: %s, expected: %s]", sha, have)
	}
	return nil
}

// putFile decodes and stores the content. A file and a folder cannot share a name. The
// base64 is the standard one with padding.
func (c *call) putFile(files map[string]string, op *fileOp) error {
	data, err := base64.StdEncoding.DecodeString(*cmp.Or(op.Content, new(string)))
	if err != nil {
		return fail(http.StatusUnprocessableEntity, "%v", err)
	}
	for p := range files {
		// A snapshot has no folders of their own: they are the beginnings of paths.
		if strings.HasPrefix(p, op.Path+"/") {
			return fail(http.StatusUnprocessableEntity,
				"a directory exists where you’re trying to create a file [path: %s]", op.Path)
		}
		if strings.HasPrefix(op.Path, p+"/") {
			return fail(http.StatusUnprocessableEntity,
				"a file exists where you’re trying to create a subdirectory [path: %s]", p)
		}
	}
	files[op.Path] = c.repo.git.addBlob(data)
	return nil
}

// signatures are the author and committer of a write: the caller, unless the body names
// others. Who is named as author alone is the committer, too.
func (c *call) signatures(in commitInput) (author, committer signature) {
	pick := func(named, or signature, at *time.Time) signature {
		if named.Name == "" && named.Email == "" {
			named = or
		}
		named.When = c.commitTime(at)
		return named
	}
	author = pick(in.Author, c.signature(), in.Dates.Author)
	return author, pick(in.Committer, author, in.Dates.Committer)
}

// signature is the caller as an author.
func (c *call) signature() signature {
	return signature{c.doer.displayName(), c.doer.Email, c.now}
}

// messageOf is the commit message; without one it lists the changes. It has a line for
// each change and a verb for each operation, while Gitea puts the files of a kind into
// one line and knows uploads and renames as updates.
func (c *call) messageOf(in commitInput, ops []fileOp) string {
	msg := in.Message
	if msg == "" {
		verbs := map[string]string{"create": "Add", "update": "Update", "upload": "Upload", "rename": "Rename",
			"delete": "Delete"}
		msg = strings.Join(mapped(ops, func(op fileOp) string { return verbs[op.Operation] + " " + op.Path }), "\n")
	}
	if in.Signoff {
		me := c.signature()
		msg = strings.TrimRight(msg, "\n") + "\n\nSigned-off-by: " + me.Name + " <" + me.Email + ">"
	}
	return msg
}
