package gitea_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"aegis/proxy"
	"aegis/proxy/gitea/fakegitea"
)

// TestWalk leads one repository from its creation to its end with the tools of
// the catalog: on the double always, and on a real Gitea when
// AEGIS_TEST_GITEA_URL and AEGIS_TEST_GITEA_TOKEN name one. Names are chosen so
// that each of them would break under a wrong escape.
func TestWalk(t *testing.T) {
	t.Parallel()
	t.Run("double", func(t *testing.T) {
		double := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedDemo})
		server := httptest.NewServer(double)
		t.Cleanup(server.Close)
		walk(t, server.URL, double.Token("alice"))
	})
	t.Run("live", func(t *testing.T) {
		base, token := os.Getenv("AEGIS_TEST_GITEA_URL"), os.Getenv("AEGIS_TEST_GITEA_TOKEN")
		if base == "" || token == "" {
			t.Skip("AEGIS_TEST_GITEA_URL and AEGIS_TEST_GITEA_TOKEN name no server")
		}
		walk(t, base, token)
	})
}

const (
	walkBranch = "feature/50%+x"
	walkFile   = "docs/a b#1;é & %2F.md"
	walkLabel  = "kind/bug #1"
	walkTag    = "rel/1.0+50%"
)

func walk(t *testing.T, base, token string) {
	c := client(t, base)
	cred := proxy.NewCredential(proxy.ModeStatic, token)
	who, err := c.Login(t.Context(), cred)
	if err != nil {
		t.Fatal(err)
	}
	version, err := c.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &walker{
		T: t, client: c, tools: builtin(t), owner: who.Login, repo: fmt.Sprintf("walk-%x", time.Now().UnixNano()),
		identity: &proxy.Identity{Login: who.Login, Mode: proxy.ModeStatic, Credential: cred},
	}
	t.Logf("Gitea %s as %s", version, who.Login)
	w.createRepository()
	t.Cleanup(func() { _, _ = w.try("repoDelete", nil) })
	w.files()
	w.oddNames()
	issue := w.issue()
	w.paging(issue)
	pull := w.pull()
	w.merge(pull)
	w.release()
	w.rename()
	w.step("repoDelete", 204, nil)
	e := w.refused("repoGet", proxy.KindNotFound, nil)
	if !strings.Contains(e.Public, "may not see it") {
		t.Errorf("404 does not say what it may mean: %s", e.Public)
	}
}

func (w *walker) createRepository() {
	empty := w.step("createCurrentUserRepo", 201,
		object{"name": w.repo, "description": "made by a test", "auto_init": false})
	if got := decode[struct{ Empty bool }](w, empty); !got.Empty {
		w.Error("a repository without a first commit is not empty")
	}
	if res := w.step("repoListBranches", 200, nil); string(res.Body) != "null\n" && string(res.Body) != "null" {
		w.Errorf("the branches of an empty repository are %q, want null as the server says it", res.Body)
	}
	w.refused("createCurrentUserRepo", proxy.KindConflict, object{"name": w.repo})
	text := "# walk\r\n\r\nlast line without an end"
	w.step("repoCreateFile", 201, object{"filepath": "README.md", "content": b64(text), "message": "first",
		"branch": "main"})
	w.checkFile("README.md", "main", text)
	w.eventually("repoGetBranch", object{"branch": "main"})
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// checkFile reads a file in both ways and compares every byte.
func (w *walker) checkFile(path, ref, want string) (sha string) {
	w.Helper()
	raw := w.step("repoGetRawFile", 200, object{"filepath": path, "ref": ref})
	if string(raw.Body) != want || raw.Kind != proxy.BodyText {
		w.Errorf("%s holds %q as kind %d, want %q", path, raw.Body, raw.Kind, want)
	}
	file := decode[struct{ SHA, Path, Content string }](w,
		w.step("repoGetContents", 200, object{"filepath": path, "ref": ref}))
	if file.Path != path || file.Content != b64(want) {
		w.Errorf("%s comes back as %s, %q", path, file.Path, file.Content)
	}
	return file.SHA
}

func (w *walker) files() {
	w.step("repoCreateBranch", 201, object{"new_branch_name": walkBranch, "old_ref_name": "main"})
	got := decode[struct{ Name string }](w, w.step("repoGetBranch", 200, object{"branch": walkBranch}))
	if got.Name != walkBranch {
		w.Errorf("the branch is %q", got.Name)
	}
	text := "\ufeffaGVsbG8=\r\n"
	w.step("repoCreateFile", 201, object{"filepath": walkFile, "content_text": text, "message": "add",
		"branch": walkBranch})
	sha := w.checkFile(walkFile, walkBranch, text)
	w.refused("repoCreateFile", proxy.KindValidation,
		object{"filepath": walkFile, "content": b64("x"), "message": "again", "branch": walkBranch})
	w.step("repoUpdateFile", 200, object{"filepath": walkFile, "content": b64("two\n"), "sha": sha, "message": "edit",
		"branch": walkBranch})
	w.checkFile(walkFile, walkBranch, "two\n")
	for _, name := range []string{"bin/0.bin", "bin/1.bin"} {
		w.step("repoCreateFile", 201, object{"filepath": name, "content": "AP/+", "message": "binary",
			"branch": walkBranch})
		if raw := w.step("repoGetRawFile", 200,
			object{"filepath": name, "ref": walkBranch}); raw.Kind != proxy.BodyBinary ||
			string(raw.Body) != "\x00\xff\xfe" {
			w.Errorf("a binary file is %q of kind %d", raw.Body, raw.Kind)
		}
	}
	file := decode[struct{ SHA string }](w,
		w.step("repoGetContents", 200, object{"filepath": "bin/1.bin", "ref": walkBranch}))
	w.step("repoDeleteFile", 200, object{"filepath": "bin/1.bin", "sha": file.SHA, "message": "delete",
		"branch": walkBranch})
	e := w.refused("repoGetContents", proxy.KindNotFound, object{"filepath": "bin/1.bin", "ref": walkBranch})
	if !strings.Contains(e.Public, "bin/1.bin") {
		w.Errorf("Gitea's words are lost: %s", e.Public)
	}
	tree := w.step("GetTree", 200, object{"sha": walkBranch, "recursive": true, "per_page": 2})
	if tree.Page == nil || tree.Page.NextPage == nil || *tree.Page.NextPage != 2 || tree.Page.TotalCount == nil ||
		*tree.Page.TotalCount != 5 {
		w.Errorf("page of a tree: %+v", tree.Page)
	}
}

// oddNames creates, reads, changes and deletes things whose names need the right
// escape, so that each step has to reach the object of the one before.
func (w *walker) oddNames() {
	for _, path := range []string{"100%.txt", "ü/ñ.txt", "semi/a;b.txt", "amp/a&b=c.txt", "pct/a%2Fb.txt",
		"file..txt"} {
		w.step("repoCreateFile", 201, object{"filepath": path, "content": b64(path), "message": "add",
			"branch": walkBranch})
		sha := w.checkFile(path, walkBranch, path)
		w.step("repoDeleteFile", 200, object{"filepath": path, "sha": sha, "message": "delete", "branch": walkBranch})
		w.refused("repoGetContents", proxy.KindNotFound, object{"filepath": path, "ref": walkBranch})
	}
	rule := object{w.bodyName("repoCreateBranchProtection", "rule_name"): "release/v1"}
	w.step("repoCreateBranchProtection", 201, rule)
	w.step("repoEditBranchProtection", 200, object{"name": "release/v1", "enable_push": true})
	got := decode[struct {
		RuleName   string `json:"rule_name"`
		EnablePush bool   `json:"enable_push"`
	}](w, w.step("repoGetBranchProtection", 200, object{"name": "release/v1"}))
	if got.RuleName != "release/v1" || !got.EnablePush {
		w.Errorf("the protection is %+v", got)
	}
	w.step("repoDeleteBranchProtection", 204, object{"name": "release/v1"})
	w.refused("repoGetBranchProtection", proxy.KindNotFound, object{"name": "release/v1"})

	w.step("repoCreateTag", 201, object{"tag_name": "v1/rc", "target": "main", "message": ""})
	w.step("repoGetTag", 200, object{"tag": "v1/rc"})
	w.step("repoDeleteTag", 204, object{"tag": "v1/rc"})
	w.refused("repoGetTag", proxy.KindNotFound, object{"tag": "v1/rc"})

	w.step("repoCreateWikiPage", 201, object{"title": "a b", "content_base64": b64("# wiki\n"), "message": "add"})
	page := decode[struct{ Title string }](w, w.step("repoGetWikiPage", 200, object{"pageName": "a b"}))
	if page.Title != "a b" {
		w.Errorf("the wiki page is %q", page.Title)
	}
	w.step("repoEditWikiPage", 200, object{"pageName": "a b", "title": "a b", "content_base64": b64("# more\n"),
		"message": "edit"})
	w.step("repoDeleteWikiPage", 204, object{"pageName": "a b"})
	w.refused("repoGetWikiPage", proxy.KindNotFound, object{"pageName": "a b"})
}

func (w *walker) issue() (index int) {
	w.step("issueCreateLabel", 201, object{"name": walkLabel, "color": "#00aabb"})
	index = decode[struct{ Number int }](w,
		w.step("issueCreateIssue", 201, object{"title": "Büg <1> & \"2\"", "body": "line\r\n`code`"})).Number
	w.step("issueCreateComment", 201, object{"index": index, "body": "a comment"})
	w.step("issueAddLabel", 200, object{"index": index, "labels": []string{walkLabel}})
	w.refused("issueCreateIssue", proxy.KindValidation, object{"title": ""})
	comments := w.step("issueGetComments", 200, object{"index": index})
	if got := decode[[]struct{ Body string }](w, comments); len(got) != 1 || got[0].Body != "a comment" {
		w.Errorf("comments: %+v", got)
	}
	if len(comments.Warnings) == 0 || comments.Page != nil {
		w.Errorf("a route that ignores paging: page %+v, warnings %q", comments.Page, comments.Warnings)
	}
	data := []byte("notes\r\n")
	w.step("issueCreateIssueAttachment", 201,
		object{"index": index, "name": "n ö.txt", "attachment": base64.StdEncoding.EncodeToString(data)})
	assets := decode[[]struct {
		Name string
		Size int
	}](w, w.step("issueListIssueAttachments", 200, object{"index": index}))
	if len(assets) != 1 || assets[0].Name != "n ö.txt" || assets[0].Size != len(data) {
		w.Errorf("attachments: %+v", assets)
	}
	return index
}

// paging makes a few issues more and walks through them.
func (w *walker) paging(first int) {
	for i := range 4 {
		w.step("issueCreateIssue", 201, object{"title": fmt.Sprintf("more %d", i)})
	}
	seen := map[int]bool{}
	page := 1
	for n := 0; n < 5; n++ {
		res := w.step("issueListIssues", 200, object{"state": "all", "limit": 2, "page": page})
		for _, issue := range decode[[]struct{ Number int }](w, res) {
			seen[issue.Number] = true
		}
		if res.Page == nil || res.Page.Limit != 2 || res.Page.TotalCount == nil || *res.Page.TotalCount != 5 {
			w.Fatalf("page %+v", res.Page)
		}
		if res.Page.NextPage == nil {
			break
		}
		page = *res.Page.NextPage
	}
	if len(seen) != 5 || page != 3 {
		w.Errorf("%d issues in %d pages", len(seen), page)
	}
	known := w.step("issueListIssues", 200, object{"labels": walkLabel})
	if got := decode[[]struct{ Number int }](w, known); len(got) != 1 || got[0].Number != first ||
		len(known.Warnings) != 0 {
		w.Errorf("filtered: %+v, warnings %q", got, known.Warnings)
	}
	unknown := w.step("issueListIssues", 200, object{"labels": "no-such-label", "milestones": "no-such-milestone"})
	if all := strings.Join(unknown.Warnings, "\n"); !strings.Contains(all, "no-such-label") ||
		!strings.Contains(all, "no-such-milestone") {
		w.Errorf("nothing says that the filter was ignored: %q", unknown.Warnings)
	}
}

func (w *walker) pull() (index int) {
	made := w.step("repoCreatePullRequest", 201,
		object{"title": "Walk", "head": walkBranch, "base": "main", "body": "see"})
	index = decode[struct{ Number int }](w, made).Number
	diff := w.step("repoDownloadPullDiffOrPatch", 200, object{"index": index, "diffType": "diff"})
	if diff.Kind != proxy.BodyText || !strings.Contains(string(diff.Body), "diff --git") {
		w.Errorf("diff of kind %d: %.80s", diff.Kind, diff.Body)
	}
	w.refused("repoPullRequestIsMerged", proxy.KindNotFound, object{"index": index})
	w.step("repoCreatePullReview", 200, object{"index": index, "event": "COMMENT", "body": "looks right"})
	w.refused("repoMergePullRequest", proxy.KindConflict,
		object{"index": index, w.bodyName("repoMergePullRequest", "do"): "merge",
			"head_commit_id": strings.Repeat("0", 40)})
	return index
}

func (w *walker) merge(index int) {
	res := w.eventually("repoMergePullRequest",
		object{"index": index, w.bodyName("repoMergePullRequest", "do"): "merge"})
	if res.Kind != proxy.BodyEmpty || res.Status != 200 {
		w.Errorf("merge: status %d, kind %d", res.Status, res.Kind)
	}
	w.step("repoPullRequestIsMerged", 204, object{"index": index})
	e := w.refused("repoMergePullRequest", proxy.KindMethodNotAllowed,
		object{"index": index, w.bodyName("repoMergePullRequest", "do"): "merge"})
	if !strings.Contains(e.Public, "already merged") && !strings.Contains(e.Public, "does not allow") {
		w.Errorf("Gitea's words are lost: %s", e.Public)
	}
	w.checkFile(walkFile, "main", "two\n")
	w.step("repoDeleteBranch", 204, object{"branch": walkBranch})
}

func (w *walker) release() {
	made := w.step("repoCreateRelease", 201,
		object{"tag_name": walkTag, "target_commitish": "main", "name": "One", "body": "notes"})
	id := decode[struct{ ID int64 }](w, made).ID
	byTag := decode[struct{ ID int64 }](w, w.step("repoGetReleaseByTag", 200, object{"tag": walkTag}))
	if byTag.ID != id {
		w.Errorf("release %d is %d by its tag", id, byTag.ID)
	}
	w.step("repoGetTag", 200, object{"tag": walkTag})
	archive := w.step("repoGetArchive", 200, object{"archive": walkTag + ".zip"})
	if archive.Kind != proxy.BodyBinary || !strings.HasPrefix(string(archive.Body), "PK") {
		w.Errorf("archive of kind %d, type %s: %.40q", archive.Kind, archive.ContentType, archive.Body)
	}
	w.step("repoDeleteRelease", 204, object{"id": id})
}

// rename shows what a caller gets who still uses the old name.
func (w *walker) rename() {
	renamed := w.repo + "-renamed"
	w.step("repoEdit", 200, object{w.bodyName("repoEdit", "name"): renamed})
	e := w.refused("repoGet", proxy.KindMoved, nil)
	if !strings.Contains(e.Public, w.owner+"/"+renamed) {
		w.Errorf("the new name is not named: %s", e.Public)
	}
	w.refused("issueCreateIssue", proxy.KindMoved, object{"title": "t"})
	w.repo = renamed
	if got := decode[[]struct{ Title string }](w,
		w.step("issueListIssues", 200, object{"state": "all", "type": "issues"})); len(got) != 5 {
		w.Errorf("%d issues; a write was sent on to the new name", len(got))
	}
	w.repo = renamed
}
