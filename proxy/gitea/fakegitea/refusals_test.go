package fakegitea_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aegis/proxy/gitea/fakegitea"
)

// checkRefusals sends requests and compares statuses and messages.
func checkRefusals(t *testing.T, s *fakegitea.Server, list []refusal) {
	t.Helper()
	tokens := map[string]string{"": "", "alice": s.Token("alice"), "bob": s.Token("bob"), "root1": s.Token("root1")}
	for _, tt := range list {
		res := send(s, tokens[tt.as], tt.method, tt.target, tt.body)
		if res.Code != tt.status || message(res) != tt.message {
			t.Errorf("%s %s %.80s: %d %q, want %d %q", tt.method, tt.target, tt.body, res.Code, message(res), tt.status, tt.message)
		}
	}
}

// TestSearchScope refuses an unknown owner of the issue search, and narrows to a
// known one.
func TestSearchScope(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	const p = "/repos/issues/search?state=all&"
	checkRefusals(t, s, []refusal{
		{"alice", "GET", p + "owner=nobody", "", 400, "user does not exist [uid: 0, name: nobody]"},
		{"alice", "GET", p + "owner=acme&team=owners", "", 501, "not in the demo"},
		{"alice", "GET", p + "owner=acme&created_by=nobody", "", 404, "user does not exist [uid: 0, name: nobody]"},
	})
	alice := s.Token("alice")
	all := get(s, alice, p).Header().Get("X-Total-Count")
	acme := get(s, alice, p+"owner=ACME").Header().Get("X-Total-Count")
	if acme == "0" || acme == "" {
		t.Errorf("%s in all, %s of acme", all, acme)
	}
	if got := get(s, alice, p+"owner=bob").Header().Get("X-Total-Count"); got == acme {
		t.Errorf("owner=bob is not narrowed: %s", got)
	}
	// People other than the author are not asked for here, so nobody misses them.
	for _, q := range []string{"assigned_by=nobody", "mentioned_by=nobody"} {
		if got := get(s, alice, p+q).Header().Get("X-Total-Count"); got != all {
			t.Errorf("%s: %s, want all %s", q, got, all)
		}
	}
}

// id is the id field of an answer.
func id(t *testing.T, res *httptest.ResponseRecorder) int64 {
	t.Helper()
	var n int64
	if _, rest, ok := strings.Cut(res.Body.String(), `"id":`); ok {
		if _, err := fmt.Sscanf(rest, "%d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("no id: %d %s", res.Code, res.Body)
	return 0
}

// TestEmptyTimeline is null when nothing happened, and on a page past the end.
func TestEmptyTimeline(t *testing.T) {
	t.Parallel()
	s, alice := newNotes(t)
	const p = "/repos/alice/notes/issues"
	send(s, alice, "POST", p, `{"title":"quiet"}`)
	if res := get(s, alice, p+"/1/timeline"); res.Code != 200 || res.Body.String() != "null" || res.Header().Get("X-Total-Count") != "0" {
		t.Errorf("no events: %d %s %v", res.Code, res.Body, res.Header())
	}
	send(s, alice, "POST", p+"/1/comments", `{"body":"x"}`)
	if n := items(t, get(s, alice, p+"/1/timeline"), ""); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	since := "?since=" + time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)
	if res := get(s, alice, p+"/1/timeline"+since); res.Body.String() != "null" {
		t.Errorf("since: %s", res.Body)
	}
}

// TestIssueMistakes makes the common mistakes with issues and what hangs on them.
func TestIssueMistakes(t *testing.T) {
	t.Parallel()
	s, alice := newNotes(t)
	const p = "/repos/alice/notes"
	repo := id(t, get(s, alice, p))
	send(s, alice, "POST", p+"/issues", `{"title":"t"}`)
	noIssue := fmt.Sprintf("issue does not exist [id: 0, repo_id: %d, index: 99]", repo)
	const noComment = "comment does not exist [id: 9999, issue_id: 0]"
	checkRefusals(t, s, []refusal{
		{"alice", "POST", p + "/issues", `{"title":"t","assignees":["nobody"]}`, 422, "Assignee does not exist: [name: user does not exist [uid: 0, name: nobody]]"},
		{"alice", "POST", p + "/issues/1/assignees", `{"assignees":["nobody"]}`, 422, "user does not exist [uid: 0, name: nobody]"},
		{"alice", "PATCH", p + "/issues/1", `{"milestone":99}`, 500, ""},
		{"root1", "PATCH", p + "/issues/1", `{"milestone":99}`, 500, fmt.Sprintf("milestone does not exist [id: 99, repo_id: %d]", repo)},
		{"alice", "PATCH", p + "/issues/1", `{"state":"bogus"}`, 412, "unknown state: bogus"},
		{"alice", "DELETE", p + "/issues/99", "", 404, noIssue},
		{"alice", "GET", p + "/issues/99/dependencies", "", 404, noIssue},
		{"alice", "GET", p + "/issues/99/times", "", 404, noIssue},
		{"alice", "GET", p + "/issues/99/labels", "", 404, "not found"},
		{"alice", "POST", p + "/issues/1/dependencies", `{"owner":"alice","repo":"notes","index":99}`, 404, noIssue},
		{"alice", "POST", p + "/issues/1/dependencies", `{"owner":"alice","repo":"no","index":1}`, 404, "repository does not exist [id: 0, uid: 0, owner_name: alice, name: no]"},
		{"alice", "POST", p + "/issues/1/labels", `{"labels":[true]}`, 400, "a label must be an integer or a string"},
		{"alice", "POST", p + "/labels", `{"name":"x","color":"zz"}`, 422, "invalid color: zz"},
		{"alice", "PATCH", p + "/issues/comments/9999", `{"body":"x"}`, 404, noComment},
		{"alice", "DELETE", p + "/issues/comments/9999", "", 404, noComment},
		{"alice", "GET", p + "/issues/comments/9999", "", 404, noComment},
		{"alice", "POST", p + "/issues/1/pin", "", 204, ""},
		{"alice", "POST", p + "/issues/1/pin", "", 500, ""},
		{"alice", "GET", "/notifications/threads/9999", "", 404, "notification does not exist [id: 9999]"},
		{"alice", "GET", "/notifications?since=x", "", 422, `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`},
		{"alice", "PUT", "/notifications?last_read_at=x", "", 400, `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`},
	})
}

// TestGitMistakes makes the common mistakes with files, branches, tags and
// releases.
func TestGitMistakes(t *testing.T) {
	t.Parallel()
	s, alice := newNotes(t)
	const p = "/repos/alice/notes"
	writeFile(t, s, alice, "x.txt", "x", "main")
	send(s, alice, "POST", p+"/branches", `{"new_branch_name":"side"}`)
	send(s, alice, "POST", p+"/tags", `{"tag_name":"v1"}`)
	long := strings.Repeat("n", 101)
	zero := strings.Repeat("0", 40)
	checkRefusals(t, s, []refusal{
		{"bob", "POST", p + "/contents/b.txt", `{"content":"eA=="}`, 403, "user should have a permission to write to the target branch"},
		{"alice", "POST", p + "/contents/b.txt", `{"content":"eA==","new_branch":"bad name"}`, 422, "[NewBranchName]: GitRefName"},
		{"alice", "POST", p + "/contents/b.txt", `{"content":"eA==","branch":"bad name"}`, 422, "[BranchName]: GitRefName"},
		{"alice", "POST", p + "/contents", `{}`, 422, "[Files]: Required"},
		{"alice", "POST", p + "/contents", `{"files":[{"operation":"create","content":"eA=="}]}`, 422, "[Path]: Required"},
		{"alice", "POST", p + "/contents", `{"files":[{"path":"b.txt","content":"eA=="}]}`, 422, "[Operation]: Required"},
		{"alice", "POST", p + "/contents", `{"files":[{"operation":"update","path":"x.txt","content":"eQ==","sha":"` + zero + `"}]}`, 422,
			"sha does not match [given: " + zero + ", expected: c1b0730e0133447badcfd47fd144e254807b06e1]"},
		{"alice", "GET", p + "/commits?path=nope", "", 404, "FileCommitsCount"},
		{"alice", "POST", p + "/branches", `{"new_branch_name":"` + long + `"}`, 422, "[BranchName]: MaxSize"},
		{"alice", "POST", p + "/branches", `{"new_branch_name":"a..b"}`, 422, "[BranchName]: GitRefName"},
		{"alice", "DELETE", p + "/branches/nope", "", 404, "branch does not exist [name: nope]"},
		{"root1", "POST", p + "/tags", `{"tag_name":"bad name"}`, 500, "release tag name is not valid [tag_name: bad name]"},
		{"root1", "POST", p + "/releases", `{"tag_name":"bad name"}`, 500, "release tag name is not valid [tag_name: bad name]"},
		{"alice", "DELETE", p + "/contents/README.md", `{}`, 422, "[SHA]: Required"},
		{"alice", "POST", p + "/tags", `{"tag_name":"v1"}`, 409, "tag already exists [name: v1]"},
		{"alice", "POST", p + "/branch_protections", `{"rule_name":"main","push_whitelist_usernames":["nobody"]}`, 422, "user does not exist [uid: 0, name: nobody]"},
		{"alice", "POST", p + "/branch_protections", `{"rule_name":"main"}`, 201, ""},
		{"alice", "POST", p + "/contents/b.txt", `{"content":"eA=="}`, 403, "user cannot commit to repo [user: alice]"},
		{"alice", "DELETE", p + "/branches/main", "", 403, "can not delete default or pull request target branch"},
	})
	// Several files at once need no sha, and may be none at all.
	for _, body := range []string{`{"branch":"side","files":[{"operation":"update","path":"x.txt","content":"eQ=="}]}`, `{"branch":"side","files":[]}`} {
		if res := send(s, alice, "POST", p+"/contents", body); res.Code != 201 {
			t.Errorf("%s: %d %s", body, res.Code, res.Body)
		}
	}
	if res := get(s, alice, p+"/raw/x.txt?ref=nope"); res.Code != 200 || res.Body.String() != "x" {
		t.Errorf("raw with an unknown reference: %d %s", res.Code, res.Body)
	}
}

// TestPullMistakes makes the common mistakes with pull requests and reviews.
func TestPullMistakes(t *testing.T) {
	t.Parallel()
	s, alice := newNotes(t)
	const p = "/repos/alice/notes"
	repo := id(t, get(s, alice, p))
	branchNext(t, s, alice)
	writeFile(t, s, alice, "x.txt", "x\n", "next")
	const open = `{"head":"next","base":"main","title":"t"`
	noPull := fmt.Sprintf("pull request does not exist [id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: %d, head_branch: , base_branch: ]", repo)
	const merged = "cannot change state of this pull request, it was already merged"
	checkRefusals(t, s, []refusal{
		{"alice", "POST", p + "/pulls", open + `,"reviewers":["nobody"]}`, 404, "User 'nobody' not exist"},
		{"alice", "POST", p + "/pulls", open + `,"assignees":["nobody"]}`, 422, "Assignee does not exist: [name: user does not exist [uid: 0, name: nobody]]"},
		{"alice", "POST", p + "/pulls", open + `}`, 201, ""},
		{"alice", "PATCH", p + "/pulls/1", `{"assignees":["nobody"]}`, 422, "Assignee does not exist: [name: user does not exist [uid: 0, name: nobody]]"},
		{"alice", "PATCH", p + "/pulls/1", `{"milestone":99}`, 500, ""},
		{"alice", "POST", p + "/pulls/99/merge", `{"Do":"merge"}`, 404, noPull},
		{"alice", "GET", p + "/pulls/99/reviews", "", 404, noPull},
		{"alice", "GET", p + "/pulls/99/reviews/1", "", 404, noPull},
		{"alice", "POST", p + "/pulls/99/requested_reviewers", `{"reviewers":["bob"]}`, 404, noPull},
		{"alice", "GET", p + "/pulls/99", "", 404, "not found"},
		{"alice", "GET", p + "/pulls/1/reviews/99", "", 404, "review does not exist [id: 99]"},
		{"bob", "POST", p + "/pulls/1/reviews", `{}`, 422, "review event  requires a body"},
		{"bob", "POST", p + "/pulls/1/reviews", `{"event":"APPROVE"}`, 422, "review event APPROVE requires a body"},
		{"bob", "POST", p + "/pulls/1/reviews", `{"event":"COMMENT"}`, 422, "review event COMMENT requires a body or a comment"},
		{"bob", "POST", p + "/pulls/1/reviews", `{"event":"REQUEST_CHANGES","comments":[{"path":"x.txt","new_position":1,"body":"b"}]}`, 422,
			"review event REQUEST_CHANGES requires a body"},
		{"alice", "POST", p + "/pulls/1/requested_reviewers", `{"team_reviewers":["x"]}`, 201, ""},
		{"alice", "POST", p + "/pulls/1/merge", `{"Do":"merge"}`, 200, ""},
		{"alice", "POST", p + "/pulls/1/merge", `{"Do":"merge"}`, 405, "The PR is already merged"},
		{"alice", "PATCH", p + "/pulls/1", `{"state":"open"}`, 412, merged},
		{"alice", "PATCH", p + "/pulls/1", `{"state":"closed"}`, 412, merged},
		{"alice", "PATCH", p + "/issues/1", `{"state":"open"}`, 412, merged},
	})
}

// TestOwnerMistakes makes the common mistakes with repositories, people and
// organisations.
func TestOwnerMistakes(t *testing.T) {
	t.Parallel()
	s, alice := newNotes(t)
	const p = "/repos/alice/notes"
	org := id(t, send(s, alice, "POST", "/orgs", `{"username":"guild"}`))
	team := fmt.Sprint("/teams/", id(t, send(s, alice, "POST", "/orgs/guild/teams", `{"name":"dev","permission":"read","units":["repo.code"]}`)))
	long := func(n int) string { return strings.Repeat("n", n) }
	const hook = `{"type":"gitea","config":{"content_type":"json","url":`
	checkRefusals(t, s, []refusal{
		{"alice", "POST", "/user/repos", `{"name":"` + long(101) + `"}`, 422, "[Name]: MaxSize"},
		{"alice", "POST", "/user/repos", `{"name":"x","description":"` + long(2049) + `"}`, 422, "[Description]: MaxSize"},
		{"alice", "POST", "/user/repos", `{"name":"x","default_branch":"bad name"}`, 422, "[DefaultBranch]: GitRefName"},
		{"alice", "POST", "/user/repos", `{"name":"x","issue_labels":"no"}`, 422, `failed to load label template file "no": label template "no" not found`},
		{"alice", "POST", "/user/repos", `{"name":"x","auto_init":true,"readme":"no"}`, 400, "readme template does not exist, available templates: [Default]"},
		{"root1", "POST", "/user/repos", `{"name":".."}`, 500, "name is invalid [..]: must be valid alpha or numeric or dash(-_) or dot characters"},
		{"alice", "PATCH", p, `{"description":"` + long(2049) + `"}`, 422, "[Description]: MaxSize"},
		{"alice", "PATCH", p, `{"name":"bad name"}`, 422, "[Name]: AlphaDashDot"},
		{"alice", "POST", p + "/forks", `{}`, 409, "repository already exists [uname: alice, name: notes]"},
		{"alice", "POST", p + "/forks", `{"organization":"no"}`, 404, "not found"},
		{"alice", "GET", p + "/collaborators/nobody/permission", "", 404, "user does not exist [uid: 0, name: nobody]"},
		{"alice", "PUT", p + "/collaborators/alice", `{"permission":"write"}`, 204, ""},
		{"alice", "POST", p + "/hooks", hook + `"nonsense"}}`, 422, "Invalid url"},
		{"alice", "POST", p + "/hooks", hook + `"ftp://x.example"}}`, 422, "Invalid url"},
		{"alice", "POST", "/user/keys", `{"title":"t","key":"garbage"}`, 422,
			"Invalid key content: extractTypeFromBase64Key: invalid key format: illegal base64 data at input byte 4"},
		{"alice", "GET", p + "/wiki/page/no", "", 404, "no such file or directory"},
		{"alice", "PATCH", p + "/wiki/page/no", `{"title":"made","content_base64":"eA=="}`, 200, ""},
		{"alice", "GET", p + "/wiki/page/made", "", 200, ""},
		{"alice", "GET", p + "/wiki/page/no", "", 404, "not found"},
		{"alice", "DELETE", p + "/wiki/page/no", "", 404, "file does not exist"},
		{"alice", "POST", "/orgs", `{"username":"` + long(41) + `"}`, 422, "[UserName]: MaxSize"},
		{"alice", "POST", "/orgs", `{"username":"API"}`, 422, "name is reserved [name: API]"},
		{"alice", "POST", "/orgs", `{"username":"-x"}`, 422, "[UserName]: invalid username"},
		{"alice", "GET", "/orgs/no", "", 404, "user redirect does not exist [name: no]"},
		{"alice", "POST", "/orgs/guild/teams", `{"name":"Dev","permission":"read","units":["repo.code"]}`, 422, fmt.Sprintf("team already exists [org_id: %d, name: dev]", org)},
		{"alice", "PUT", team + "/members/nobody", "", 404, "user does not exist [uid: 0, name: nobody]"},
		{"alice", "GET", p + "/actions/runs/99", "", 404, "run with id 99: resource does not exist"},
		{"alice", "POST", p + "/actions/workflows/no.yml/dispatches", `{"ref":"main"}`, 404, `workflow "no.yml" doesn't exist`},
	})
}

// TestRefNames makes branches of names that git takes, and of those that it refuses.
func TestRefNames(t *testing.T) {
	t.Parallel()
	s, alice := newNotes(t)
	post := func(name string) int {
		body, err := json.Marshal(map[string]string{"new_branch_name": name})
		if err != nil {
			t.Fatal(err)
		}
		return send(s, alice, "POST", "/repos/alice/notes/branches", string(body)).Code
	}
	for _, name := range []string{"a.b", "a/b", "a-b", "ü/ß", "a.locked", "@", "a@b", "100%", "#1"} {
		if got := post(name); got != 201 {
			t.Errorf("%q: %d, want 201", name, got)
		}
	}
	for _, name := range []string{
		"", "/a", "a/", "b//a", ".a", "b/.a", "a.", "a./b", "a..b", "a.lock", "a.lock/b", "-a", "a b", "a~", "a^", "a:",
		"a?", "a*", "a[", "a\\", "a@{b", "a\x1f", "a\x7f",
	} {
		if got := post(name); got != 422 {
			t.Errorf("%q: %d, want 422", name, got)
		}
	}
}
