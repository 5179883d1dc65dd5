package fakegitea_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"aegis/proxy/gitea/fakegitea"
)

// step is one request of a walk. What save names is taken out of the answer
// (by a path of keys and indexes) and can be used as <name> later.
type step struct {
	as, do, body string
	status       int
	has          string // the answer contains this; "!x" says that it does not
	save         string // name=path
}

// walk runs steps in order on a fresh world of alice, bob and root1, with a
// clock that moves on by a second with every look at it.
func walk(t *testing.T, steps []step) {
	t.Helper()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	tokens := map[string]string{"": s.Token("alice"), "bob": s.Token("bob"), "root": s.Token("root1")}
	vars := []string{}
	for i, st := range steps {
		fill := strings.NewReplacer(vars...).Replace
		method, target, _ := strings.Cut(fill(st.do), " ")
		res := send(s, tokens[st.as], method, target, fill(st.body))
		checkSchema(t, method, "/api/v1"+target, res)
		body := res.Body.String()
		if res.Code != st.status {
			t.Fatalf("step %d, %s %s %s: %d, want %d: %s", i, st.as, method, target, res.Code, st.status, body)
		}
		has, absent := strings.CutPrefix(fill(st.has), "!")
		if st.has != "" && strings.Contains(body, has) == absent {
			t.Errorf("step %d, %s %s: want %q in %s", i, method, target, st.has, body)
		}
		if name, path, ok := strings.Cut(st.save, "="); ok {
			vars = append(vars, "<"+name+">", pick(t, res.Body.Bytes(), path))
		}
	}
}

// pick takes a value out of JSON.
func pick(t *testing.T, body []byte, path string) string {
	t.Helper()
	var v any
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			var i int
			fmt.Sscan(key, &i)
			v = at[i]
		}
	}
	return fmt.Sprint(v)
}

// repoStep begins a walk that needs a repository.
var repoStep = step{do: "POST /user/repos", body: `{"name":"r","auto_init":true}`, status: 201, has: `"full_name":"alice/r"`}

// TestIssueWalk creates, reads, edits, closes and deletes an issue and what
// hangs on it.
func TestIssueWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r/issues"
	walk(t, []step{
		repoStep,
		{do: "POST " + p, body: `{"title":"first","body":"a\r\nb"}`, status: 201, has: `"number":1,`},
		{do: "POST " + p, body: `{"title":"second"}`, status: 201, has: `"number":2,`},
		{do: "POST /repos/alice/r/labels", body: `{"name":"kind/bug","color":"#F00"}`, status: 201, has: `"color":"ff0000"`, save: "l=id"},
		{do: "PUT " + p + "/1/labels", body: `{"labels":["kind/bug"]}`, status: 200, has: "kind/bug"},
		{do: "GET " + p + "?labels=kind/bug", status: 200, has: "!second"},
		{do: "POST /repos/alice/r/milestones", body: `{"title":"m1"}`, status: 201, save: "m=id"},
		{do: "PATCH " + p + "/1", body: `{"milestone":<m>,"assignees":["alice"],"title":"renamed"}`, status: 201, has: `"title":"renamed"`},
		{do: "GET /repos/alice/r/milestones/<m>", status: 200, has: `"open_issues":1,"closed_issues":0`},
		{do: "POST " + p + "/1/comments", body: `{"body":"hello"}`, status: 201, save: "c=id"},
		{as: "bob", do: "PATCH " + p + "/comments/<c>", body: `{"body":"mine"}`, status: 403},
		{do: "PATCH " + p + "/comments/<c>", body: `{"body":"edited"}`, status: 200, has: "edited"},
		{do: "GET " + p + "/1/comments", status: 200, has: "edited"},
		{do: "POST " + p + "/1/reactions", body: `{"content":"heart"}`, status: 201},
		{do: "POST " + p + "/1/reactions", body: `{"content":"heart"}`, status: 200},
		{do: "GET " + p + "/1/reactions", status: 200, has: "heart"},
		{do: "GET " + p + "/1/timeline", status: 200, has: `"type":"change_title"`},
		{do: "POST " + p + "/1/dependencies", body: `{"owner":"alice","repo":"r","index":2}`, status: 201},
		{do: "GET " + p + "/1/dependencies", status: 200, has: "second"},
		{do: "PATCH " + p + "/1", body: `{"state":"closed"}`, status: 412},
		{do: "PATCH " + p + "/2", body: `{"state":"closed"}`, status: 201, has: `"closed_at":"2030`},
		{do: "PATCH " + p + "/1", body: `{"state":"closed"}`, status: 201},
		{do: "GET " + p, status: 200, has: "!number"},
		{do: "GET /repos/alice/r/milestones/<m>", status: 200, has: `"open_issues":0,"closed_issues":1`},
		{do: "POST " + p + "/1/pin", status: 204},
		{do: "GET " + p + "/pinned", status: 200, has: "renamed"},
		{do: "POST " + p + "/1/times", body: `{"time":90}`, status: 200},
		{do: "GET /user/times", status: 200, has: `"time":90`},
		{do: "POST " + p + "/1/stopwatch/start", status: 201},
		{do: "GET /user/stopwatches", status: 200, has: "renamed"},
		{do: "POST " + p + "/1/stopwatch/stop", status: 201},
		{do: "GET " + p + "/1/times", status: 200, has: `"issue_id"`},
		{do: "DELETE " + p + "/comments/<c>", status: 204},
		{do: "GET " + p + "/comments/<c>", status: 404},
		{do: "DELETE /repos/alice/r/labels/<l>", status: 204},
		{do: "GET " + p + "/1/timeline", status: 200, has: `"type":"label"`},
		{do: "GET " + p + "/1", status: 200, has: `"labels":[],"milestone":{`},
		{as: "bob", do: "DELETE " + p + "/1", status: 403},
		{do: "DELETE " + p + "/1", status: 204},
		{do: "GET " + p + "/1", status: 404},
		{do: "POST " + p, body: `{"title":"third"}`, status: 201, has: `"number":3,`},
	})
}

// TestFileWalk writes, moves and deletes files, also with odd names.
func TestFileWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r"
	walk(t, []step{
		repoStep,
		{do: "POST " + p + "/contents/docs%2Fa%20b%231%3F.md", body: `{"content":"aGkNCg=="}`, status: 201, has: `"path":"docs/a b#1?.md"`, save: "sha=content.sha"},
		{do: "GET " + p + "/contents/docs/a%20b%231%3F.md", status: 200, has: `"content":"aGkNCg=="`},
		{do: "GET " + p + "/raw/docs%2Fa%20b%231%3F.md", status: 200, has: "hi\r\n"},
		{do: "PUT " + p + "/contents/docs%2Fa%20b%231%3F.md", body: `{"content":"eQ==","sha":"<sha>"}`, status: 200, save: "sha2=content.sha"},
		{do: "PUT " + p + "/contents/docs%2Fa%20b%231%3F.md", body: `{"content":"eQ==","sha":"<sha>"}`, status: 422, has: "sha does not match"},
		{do: "PUT " + p + "/contents/moved.md", body: `{"content":"eQ==","sha":"<sha2>","from_path":"docs/a b#1?.md"}`, status: 200},
		{do: "GET " + p + "/contents/docs", status: 404},
		{do: "GET " + p + "/git/commits/main.diff", status: 200, has: "rename to moved.md"},
		{do: "POST " + p + "/contents", body: `{"files":[{"operation":"create","path":"x/1","content":"MQ=="},{"operation":"create","path":"x/2","content":"Mg=="}],"new_branch":"two"}`, status: 201, has: `"path":"x/2"`},
		{do: "GET " + p + "/contents/x?ref=two", status: 200, has: `"name":"1"`},
		{do: "GET " + p + "/contents/x", status: 404},
		{do: "GET " + p + "/compare/main...two", status: 200, has: `"total_commits":1`},
		{do: "GET " + p + "/git/trees/two?recursive=true", status: 200, has: `"path":"x/1"`},
		{do: "DELETE " + p + "/contents/moved.md", body: `{"sha":"<sha2>"}`, status: 200, has: `"content":null`},
		{do: "GET " + p + "/contents/moved.md", status: 404, has: "object does not exist [id: , rel_path: moved.md]"},
		{do: "GET " + p + "/commits?path=moved.md", status: 200, has: "Delete moved.md"},
		{do: "POST " + p + "/contents/README.md/x", body: `{"content":"eQ=="}`, status: 422},
	})
}

// TestBranchWalk creates, protects and deletes branches and tags.
func TestBranchWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r"
	walk(t, []step{
		repoStep,
		{do: "POST " + p + "/branches", body: `{"new_branch_name":"release/v1"}`, status: 201, has: `"protected":false`},
		{do: "POST " + p + "/branch_protections", body: `{"rule_name":"release/*","enable_push":false,"required_approvals":1}`, status: 201},
		{do: "GET " + p + "/branches/release%2Fv1", status: 200, has: `"effective_branch_protection_name":"release/*"`},
		{do: "POST " + p + "/contents/x", body: `{"content":"eA==","branch":"release/v1"}`, status: 403},
		{do: "DELETE " + p + "/branches/release%2Fv1", status: 403},
		{do: "PATCH " + p + "/branch_protections/release%2F%2A", body: `{"enable_push":true}`, status: 200, has: `"required_approvals":1`},
		{do: "POST " + p + "/contents/x", body: `{"content":"eA==","branch":"release/v1"}`, status: 201},
		{do: "DELETE " + p + "/branch_protections/release%2F%2A", status: 204},
		{do: "POST " + p + "/branches", body: `{"new_branch_name":"old/v1","old_branch_name":"release/v1"}`, status: 201},
		{do: "DELETE " + p + "/branches/release%2Fv1", status: 204},
		{do: "GET " + p + "/branches/release%2Fv1", status: 404},
		{do: "GET " + p + "/branches/old/v1", status: 200, save: "id=commit.id"},
		{do: "POST " + p + "/tags", body: `{"tag_name":"rel/1.0","message":"m","target":"old/v1"}`, status: 201, has: "<id>"},
		{do: "POST " + p + "/releases", body: `{"tag_name":"rel/1.0","name":"one"}`, status: 201, save: "rel=id"},
		{do: "GET " + p + "/releases/tags/rel%2F1.0", status: 200, has: `"name":"one"`},
		{do: "DELETE " + p + "/tags/rel%2F1.0", status: 409},
		{do: "PATCH " + p + "/releases/<rel>", body: `{"body":"notes"}`, status: 200, has: "notes"},
		{do: "DELETE " + p + "/releases/tags/rel%2F1.0", status: 204},
		{do: "DELETE " + p + "/tags/rel%2F1.0", status: 204},
		{do: "GET " + p + "/tags/rel%2F1.0", status: 404},
		{do: "DELETE " + p + "/branches/old%2Fv1", status: 204},
		{do: "GET " + p + "/branches", status: 200, has: "!old/v1"},
	})
}

// pullSteps open a pull request from a branch with one new file.
func pullSteps(branch, file string) []step {
	const p = "/repos/alice/r"
	return []step{
		{do: "POST " + p + "/branches", body: `{"new_branch_name":"` + branch + `"}`, status: 201},
		{do: "POST " + p + "/contents/" + file, body: `{"content":"b25lCg==","branch":"` + branch + `","message":"add ` + file + `"}`, status: 201},
		{do: "POST " + p + "/pulls", body: `{"head":"` + branch + `","base":"main","title":"` + branch + `"}`, status: 201, has: `"mergeable":true`, save: branch + "=number"},
	}
}

// TestPullWalk reviews and merges, and refuses what the real
// server refuses.
func TestPullWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r/pulls"
	steps := []step{repoStep}
	for _, style := range []string{"merge", "squash"} {
		steps = append(steps, pullSteps(style, style+".txt")...)
		steps = append(steps,
			step{do: "GET " + p + "/<" + style + ">/files", status: 200, has: `"status":"added","additions":1`},
			step{do: "GET " + p + "/<" + style + ">.diff", status: 200, has: "+one"},
			step{do: "GET " + p + "/<" + style + ">.patch", status: 200, has: "Subject: [PATCH] add " + style},
			step{do: "GET " + p + "/<" + style + ">/merge", status: 404},
			step{as: "bob", do: "POST " + p + "/<" + style + ">/merge", body: `{"Do":"merge"}`, status: 405},
			step{do: "POST " + p + "/<" + style + ">/merge", body: `{"Do":"` + style + `"}`, status: 200},
			step{do: "GET " + p + "/<" + style + ">/merge", status: 204},
			step{do: "POST " + p + "/<" + style + ">/merge", body: `{"Do":"merge"}`, status: 405, has: "already merged"},
			step{do: "GET /repos/alice/r/contents/" + style + ".txt", status: 200},
		)
	}
	steps = append(steps, pullSteps("late", "late.txt")...)
	steps = append(steps,
		step{do: "POST " + p + "/<late>/merge", body: `{"Do":"rebase"}`, status: 501},
		step{do: "POST " + p + "/<late>/merge", body: `{"Do":"merge","head_commit_id":"` + strings.Repeat("0", 40) + `"}`, status: 409, has: "head out of date"},
		step{do: "POST " + p + "/<late>/reviews", body: `{"event":"APPROVED"}`, status: 422, has: "your own pull"},
		step{as: "bob", do: "POST " + p + "/<late>/reviews", body: `{"event":"REQUEST_CHANGES","body":"no","comments":[{"path":"late.txt","body":"why","new_position":1}]}`, status: 200, has: `"comments_count":1`, save: "rv=id"},
		step{do: "GET " + p + "/<late>/reviews/<rv>/comments", status: 200, has: `"diff_hunk":"@@ -0,0 +1 @@\n+one"`, save: "rc=0.id"},
		step{do: "POST " + p + "/comments/<rc>/resolve", status: 204},
		step{do: "PATCH " + p + "/<late>", body: `{"title":"WIP: late"}`, status: 201, has: `"draft":true`},
		step{do: "POST " + p + "/<late>/merge", body: `{"Do":"merge"}`, status: 405, has: "Work in progress"},
		step{do: "PATCH " + p + "/<late>", body: `{"title":"late","state":"closed"}`, status: 201},
		step{do: "POST " + p + "/<late>/merge", body: `{"Do":"merge"}`, status: 404},
		step{do: "PATCH " + p + "/<late>", body: `{"state":"open"}`, status: 201},
		step{do: "POST /repos/alice/r/contents/late.txt", body: `{"content":"b3RoZXI=","message":"in the way"}`, status: 201},
		step{do: "GET " + p + "/<late>", status: 200, has: `"mergeable":false`},
		step{do: "POST " + p + "/<late>/merge", body: `{"Do":"merge"}`, status: 405, has: "Please try again later"},
		step{do: "POST /repos/alice/r/branches", body: `{"new_branch_name":"again"}`, status: 201},
		step{do: "DELETE /repos/alice/r/branches/late", status: 204},
		step{do: "GET " + p + "/<late>", status: 200, has: `"state":"closed"`},
	)
	walk(t, steps)
}

// TestForkWalk forks, changes the fork, and merges it back across.
func TestForkWalk(t *testing.T) {
	t.Parallel()
	walk(t, []step{
		repoStep,
		{as: "bob", do: "POST /repos/alice/r/forks", body: `{}`, status: 202, has: `"parent":{`},
		{as: "bob", do: "POST /repos/bob/r/contents/new.txt", body: `{"content":"eA==","message":"from bob"}`, status: 201},
		{as: "bob", do: "POST /repos/alice/r/pulls", body: `{"head":"bob:main","base":"main","title":"t"}`, status: 201, has: `"label":"bob:main"`, save: "p=number"},
		{do: "GET /repos/alice/r/compare/main...bob:main", status: 200, has: "from bob"},
		{do: "POST /repos/alice/r/pulls/<p>/merge", body: `{"Do":"merge"}`, status: 200},
		{do: "GET /repos/alice/r/contents/new.txt", status: 200},
		{as: "bob", do: "DELETE /repos/bob/r", status: 204},
		{do: "GET /repos/alice/r/pulls/<p>/files", status: 200, has: "new.txt"},
	})
}
