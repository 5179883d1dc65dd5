package fakegitea_test

import (
	"net/http"
	"strings"
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// TestRepoWalk edits, renames, archives, transfers and deletes a repository.
func TestRepoWalk(t *testing.T) {
	t.Parallel()
	walk(t, []step{
		repoStep,
		{do: "PATCH /repos/alice/r", body: `{"description":"d","private":true,"has_wiki":false}`, status: 200, has: `"has_wiki":false`},
		{as: "bob", do: "GET /repos/alice/r", status: 404},
		{do: "PUT /repos/alice/r/collaborators/bob", body: `{"permission":"read"}`, status: 204},
		{as: "bob", do: "GET /repos/alice/r", status: 200, has: `"permissions":{"admin":false,"push":false,"pull":true}`},
		{as: "bob", do: "PATCH /repos/alice/r", body: `{"description":"x"}`, status: 403},
		{as: "bob", do: "PUT /user/starred/alice/r", status: 204},
		{do: "GET /repos/alice/r/stargazers", status: 200, has: "bob"},
		{do: "PUT /repos/alice/r/topics", body: `{"topics":["one","two"]}`, status: 204},
		{do: "PUT /repos/alice/r/topics", body: `{"topics":["Two"]}`, status: 204},
		{do: "PUT /repos/alice/r/topics", body: `{"topics":["ok","not ok"]}`, status: 422, has: `"invalidTopics":["not ok"]`},
		{do: "GET /repos/alice/r/topics", status: 200, has: `{"topics":["two"]}`},
		{do: "PATCH /repos/alice/r", body: `{"archived":true}`, status: 200, has: `"archived":true`},
		{do: "POST /repos/alice/r/issues", body: `{"title":"x"}`, status: 423},
		{do: "PATCH /repos/alice/r", body: `{"archived":false}`, status: 200},
		{do: "PATCH /repos/alice/r", body: `{"name":"s"}`, status: 200, has: "alice/s"},
		{do: "GET /repos/alice/r/issues?state=all", status: 301, has: `href="/api/v1/repos/alice/s/issues?state=all"`},
		{do: "POST /repos/alice/r/issues", body: `{"title":"x"}`, status: 301},
		{do: "GET /repos/ALICE/S", status: 200},
		{do: "POST /repos/alice/s/transfer", body: `{"new_owner":"bob"}`, status: 201},
		{as: "bob", do: "POST /repos/alice/s/transfer/accept", status: 202, has: "bob/s"},
		{do: "GET /repos/alice/s", status: 301},
		{as: "bob", do: "GET /repos/bob/s", status: 200},
		{as: "bob", do: "DELETE /repos/bob/s", status: 204},
		{as: "bob", do: "GET /repos/alice/r", status: 404},
	})
}

// TestOrgWalk runs an organisation with a team.
func TestOrgWalk(t *testing.T) {
	t.Parallel()
	walk(t, []step{
		{do: "POST /orgs", body: `{"username":"walkers"}`, status: 201},
		{do: "POST /orgs/walkers/repos", body: `{"name":"r","private":true,"auto_init":true}`, status: 201},
		{as: "bob", do: "GET /repos/walkers/r", status: 404},
		{do: "POST /orgs/walkers/teams", body: `{"name":"dev","permission":"write","units":["repo.code"]}`, status: 201, save: "t=id"},
		{do: "PUT /teams/<t>/members/bob", status: 204},
		{as: "bob", do: "GET /repos/walkers/r", status: 404},
		{do: "PUT /teams/<t>/repos/walkers/r", status: 204},
		{as: "bob", do: "POST /repos/walkers/r/branches", body: `{"new_branch_name":"b"}`, status: 201},
		{as: "bob", do: "PATCH /repos/walkers/r", body: `{"description":"x"}`, status: 403},
		{as: "bob", do: "GET /user/orgs", status: 200, has: `"name":"walkers"`},
		{do: "GET /orgs/walkers/members", status: 200, has: "bob"},
		{do: "POST /orgs/walkers/hooks", body: `{"type":"gitea","config":{"url":"http://127.0.0.1:9/x","content_type":"json"},"authorization_header":"Bearer secret"}`, status: 201, has: "!secret", save: "h=id"},
		{do: "DELETE /orgs/walkers/hooks/<h>", status: 204},
		{do: "DELETE /teams/<t>/members/bob", status: 204},
		{as: "bob", do: "GET /repos/walkers/r", status: 404},
		{do: "DELETE /teams/<t>", status: 204},
		{do: "DELETE /orgs/walkers/repos", status: 204},
		{do: "DELETE /orgs/walkers", status: 204},
		{do: "GET /orgs/walkers", status: 404},
	})
}

// TestWikiWalk writes and renames pages.
func TestWikiWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r/wiki"
	walk(t, []step{
		repoStep,
		{do: "GET " + p + "/pages", status: 404},
		{do: "POST " + p + "/new", body: `{"title":"a b","content_base64":"b25l"}`, status: 201, has: `"sub_url":"a-b"`},
		{do: "POST " + p + "/new", body: `{"title":"a b","content_base64":"b25l"}`, status: 400},
		{do: "GET " + p + "/page/a%20b", status: 200, has: `"content_base64":"b25l"`},
		{do: "PATCH " + p + "/page/a-b", body: `{"title":"c/d","content_base64":"dHdv"}`, status: 200, has: `"sub_url":"c%2Fd"`},
		{do: "GET " + p + "/page/a-b", status: 404},
		{do: "DELETE " + p + "/page/c%2Fd", status: 204},
		{do: "GET " + p + "/page/c%2Fd", status: 404},
	})
}

// TestActionsWalk keeps secrets, variables and runs.
func TestActionsWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r/actions"
	walk(t, []step{
		repoStep,
		{do: "PUT " + p + "/secrets/key", body: `{"data":"hidden"}`, status: 201},
		{do: "PUT " + p + "/secrets/KEY", body: `{"data":"hidden2"}`, status: 204},
		{do: "GET " + p + "/secrets", status: 200, has: `"name":"KEY"`},
		{do: "GET " + p + "/secrets", status: 200, has: "!hidden"},
		{do: "DELETE " + p + "/secrets/KEY", status: 204},
		{do: "POST " + p + "/variables/v", body: `{"value":"1"}`, status: 201},
		{do: "PUT " + p + "/variables/V", body: `{"value":"2","name":"w"}`, status: 204},
		{do: "GET " + p + "/variables/W", status: 200, has: `"data":"2"`},
		{do: "POST " + p + "/variables/W", body: `{"value":"1"}`, status: 409, has: "variable name W already exists"},
		{do: "DELETE " + p + "/variables/W", status: 204},
		{do: "POST /repos/alice/r/contents/.gitea/workflows/ci.yaml", body: `{"content":"bmFtZTogY2kK"}`, status: 201},
		{do: "GET " + p + "/workflows", status: 200, has: `"name":"ci"`},
		{do: "POST " + p + "/workflows/ci.yaml/dispatches?return_run_details=true", body: `{"ref":"main"}`, status: 200, save: "run=workflow_run_id"},
		{do: "GET " + p + "/runs/<run>/jobs", status: 200, has: `"status":"queued"`},
		{do: "POST " + p + "/runs/<run>/cancel", status: 200, has: `"conclusion":"cancelled"`},
		{do: "POST " + p + "/runs/<run>/rerun", status: 201, has: `"run_attempt":2`},
		{do: "POST " + p + "/runs/<run>/cancel", status: 200},
	})
}

// sshKey is a public key of the right form.
const sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me"

// TestUserWalk keeps keys and applications.
func TestUserWalk(t *testing.T) {
	t.Parallel()
	walk(t, []step{
		{do: "POST /user/keys", body: `{"title":"k","key":"` + sshKey + `"}`, status: 201, has: "SHA256:", save: "k=id"},
		{do: "POST /user/keys", body: `{"title":"k","key":"garbage"}`, status: 422},
		{as: "bob", do: "GET /users/alice/keys", status: 200, has: "ssh-ed25519"},
		{do: "DELETE /user/keys/<k>", status: 204},
		{do: "GET /user/emails", status: 200, has: "alice@example.com"},
		{do: "POST /user/applications/oauth2", body: `{"name":"a","redirect_uris":["http://127.0.0.1/cb"]}`, status: 201, has: `"client_secret":"gto_`},
		{do: "GET /user/applications/oauth2", status: 200, has: `"client_secret":""`},
	})
}

// TestAdminWalk looks around as the site administrator, gives a key to a user and
// runs a task.
func TestAdminWalk(t *testing.T) {
	t.Parallel()
	walk(t, []step{
		{do: "GET /admin/cron", status: 403},
		{as: "root", do: "GET /admin/cron", status: 200, has: "update_mirrors"},
		{as: "root", do: "POST /admin/cron/update_mirrors", status: 204},
		{as: "root", do: "POST /admin/cron/nothing", status: 404},
		{as: "root", do: "GET /admin/users", status: 200, has: "bob@example.com"},
		{as: "root", do: "POST /admin/users/bob/keys", body: `{"title":"k","key":"` + sshKey + `"}`, status: 201, save: "k=id"},
		{as: "bob", do: "GET /user/keys", status: 200, has: `"id":<k>,`},
		{do: "GET /users/bob/keys", status: 200, has: "ssh-ed25519"},
	})
}

// TestEmptyLists: what nobody can make here is an empty page, where the path is
// known.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	walk(t, []step{
		repoStep,
		{do: "POST /orgs", body: `{"username":"walkers"}`, status: 201},
		{do: "GET /repos/alice/r/projects", status: 200, has: "[]"},
		{do: "GET /orgs/walkers/projects", status: 200, has: "[]"},
		{do: "GET /users/bob/projects", status: 200, has: "[]"},
		{do: "GET /users/nobody/projects", status: 404},
		{do: "GET /repos/alice/r/keys", status: 200, has: "[]"},
		{as: "bob", do: "GET /repos/alice/r/keys", status: 403},
		{do: "GET /user/gpg_keys", status: 200, has: "[]"},
		{do: "GET /repos/alice/r/projects/1", status: 501, has: "not in the demo"},
	})
}

// TestTaskWalk takes the steps of the demo's tasks that no other walk takes.
func TestTaskWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r"
	steps := append([]step{repoStep}, pullSteps("next", "next.txt")...)
	walk(t, append(steps, []step{
		{do: "POST " + p + "/issues", body: `{"title":"t"}`, status: 201, save: "i=number"},
		{do: "POST " + p + "/issues/<i>/pin", status: 204},
		{do: "DELETE " + p + "/issues/<i>/pin", status: 204},
		{do: "GET " + p + "/issues/pinned", status: 200, has: "[]"},
		{do: "POST " + p + "/issues/<i>/reactions", body: `{"content":"heart"}`, status: 201},
		{do: "GET " + p + "/issues/<i>/reactions", status: 200, has: "heart"},
		{do: "POST " + p + "/labels", body: `{"name":"kind/x","color":"#fff","exclusive":true}`, status: 501},
		{do: "POST " + p + "/labels", body: `{"name":"bug","color":"#fff"}`, status: 201, save: "l=id"},
		{do: "POST " + p + "/issues/<i>/labels", body: `{"labels":["bug"]}`, status: 200, has: "bug"},
		{do: "DELETE " + p + "/issues/<i>/labels/<l>", status: 204},
		{do: "GET " + p + "/issues/<i>/labels", status: 200, has: "[]"},
		{do: "POST " + p + "/milestones", body: `{"title":"m"}`, status: 201, save: "m=id"},
		{do: "PATCH " + p + "/milestones/<m>", body: `{"title":"m2","state":"closed"}`, status: 200, has: `"state":"closed"`},
		{do: "POST " + p + "/pulls/<next>/requested_reviewers", body: `{"reviewers":["bob"]}`, status: 201, has: "REQUEST_REVIEW"},
		{do: "DELETE " + p + "/pulls/<next>/requested_reviewers", body: `{"reviewers":["bob"]}`, status: 204},
		{as: "bob", do: "POST " + p + "/pulls/<next>/reviews", body: `{"body":"wait"}`, status: 200, has: `"state":"PENDING"`, save: "v=id"},
		{as: "bob", do: "POST " + p + "/pulls/<next>/reviews/<v>", body: `{"event":"APPROVED"}`, status: 200, has: `"state":"APPROVED"`},
		{do: "POST " + p + "/push_mirrors", body: `{"remote_address":"https://mirror.example/r.git","interval":"8h"}`, status: 200, save: "r=remote_name"},
		{do: "POST " + p + "/push_mirrors-sync", status: 200},
		{do: "GET " + p + "/push_mirrors", status: 200, has: "<r>"},
		{do: "DELETE " + p + "/push_mirrors/<r>", status: 204},
		{do: "POST " + p + "/hooks", body: `{"type":"gitea","config":{"url":"http://127.0.0.1:9/x","content_type":"json","secret":"hush"}}`, status: 201, has: `"events":["push"]`, save: "h=id"},
		{do: "PATCH " + p + "/hooks/<h>", body: `{"active":true,"type":"slack","authorization_header":"hush","config":{"content_type":"form"}}`, status: 200, has: `"active":true`},
		{do: "GET " + p + "/hooks/<h>", status: 200, has: `"type":"gitea","branch_filter":"","config":{"content_type":"form","url":"http://127.0.0.1:9/x"},"events":["push"]`},
		{do: "GET " + p + "/hooks", status: 200, has: "!hush"},
		{do: "POST " + p + "/hooks", body: `{"type":"gitea","config":{"url":"ftp://x","content_type":"json"}}`, status: 422, has: "Invalid url"},
		{do: "POST " + p + "/hooks/<h>/tests", status: 204},
	}...))
}

// TestPackageWalk lists and deletes a package, as one of the demo's tasks does; only
// owners may delete.
func TestPackageWalk(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	alice, bob := s.Token("alice"), s.Token("bob")
	const version = "/packages/acme/generic/garden/1.0.0"
	for i, st := range []struct {
		token, method, path string
		status              int
	}{
		{bob, "GET", "/packages/acme?type=generic", 200},
		{bob, "DELETE", version, 403},
		{alice, "DELETE", version, 204},
		{alice, "GET", version, 404},
		{alice, "DELETE", version, 404},
	} {
		if res := send(s, st.token, st.method, st.path, ""); res.Code != st.status {
			t.Errorf("step %d, %s %s: %d, want %d: %s", i, st.method, st.path, res.Code, st.status, res.Body)
		}
	}
}

// TestNotices tells watchers, and lets them read.
func TestNotices(t *testing.T) {
	t.Parallel()
	walk(t, []step{
		repoStep,
		{as: "bob", do: "POST /repos/alice/r/issues", body: `{"title":"news"}`, status: 201},
		{do: "GET /notifications", status: 200, has: "news", save: "n=0.id"},
		{do: "GET /notifications/new", status: 200, has: `{"new":1}`},
		{as: "bob", do: "GET /notifications/threads/<n>", status: 403},
		{do: "PATCH /notifications/threads/<n>", status: 205, has: `"unread":false`},
		{do: "GET /notifications/new", status: 200, has: `{"new":0}`},
		{do: "GET /repos/alice/r/activities/feeds", status: 200, has: "create_issue"},
	})
}

// TestUploads takes files as forms and as bytes, and refuses too big ones.
func TestUploads(t *testing.T) {
	t.Parallel()
	s := fakegitea.New(fakegitea.Options{})
	alice := s.Token("alice")
	form := http.Header{"Content-Type": {"multipart/form-data; boundary=XX"}}
	body := "--XX\r\nContent-Disposition: form-data; name=\"attachment\"; filename=\"a.txt\"\r\n\r\nhello\r\n--XX--\r\n"
	const p = "/api/v1/repos/acme/garden/issues/1/assets"
	res := call(s, request{method: "POST", target: p, token: alice, body: body, header: form})
	if res.Code != 201 {
		t.Fatalf("upload: %d %s", res.Code, res.Body)
	}
	if size := pick(t, res.Body.Bytes(), "size"); size != "5" {
		t.Errorf("size: %s", size)
	}
	sudo := "--XX\r\nContent-Disposition: form-data; name=\"sudo\"\r\n\r\nbob\r\n" + body
	if res := call(s, request{method: "POST", target: p, token: alice, body: sudo, header: form}); res.Code != 403 {
		t.Errorf("sudo in the form: %d", res.Code)
	}
	big := http.Header{"Content-Type": {"application/octet-stream"}}
	res = call(s, request{method: "POST", target: p + "?name=big.bin", token: alice, body: strings.Repeat("x", 104857601), header: big})
	if res.Code != 413 || message(res) != "attachment exceeds limit 104857600" {
		t.Errorf("too big: %d %s", res.Code, res.Body)
	}
}

// TestProtectedMerge merges under a rule that wants an approval.
func TestProtectedMerge(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r/pulls"
	steps := append([]step{repoStep}, pullSteps("good", "good.txt")...)
	steps = append(steps, pullSteps("bad", "bad.txt")...)
	walk(t, append(steps, []step{
		{do: "POST /repos/alice/r/branch_protections", body: `{"rule_name":"main","required_approvals":1,"block_on_rejected_reviews":true}`, status: 201},
		{do: "POST " + p + "/<good>/merge", body: `{"Do":"merge"}`, status: 405, has: "Does not have enough approvals"},
		{as: "bob", do: "POST " + p + "/<good>/reviews", body: `{"event":"APPROVED"}`, status: 200},
		{do: "POST " + p + "/<good>/merge", body: `{"Do":"squash"}`, status: 200},
		{as: "bob", do: "POST " + p + "/<bad>/reviews", body: `{"event":"REQUEST_CHANGES","body":"no"}`, status: 200},
		{do: "POST " + p + "/<bad>/merge", body: `{"Do":"merge"}`, status: 405, has: "There are requested changes"},
		{do: "POST " + p + "/<bad>/merge", body: `{"Do":"merge","force_merge":true}`, status: 200},
	}...))
}

// TestTriageWalk edits, sorts and filters issues and pull requests.
func TestTriageWalk(t *testing.T) {
	t.Parallel()
	const p = "/repos/alice/r"
	steps := append([]step{repoStep}, pullSteps("next", "next.txt")...)
	for _, title := range []string{"one", "two", "three", "four"} {
		steps = append(steps, step{do: "POST " + p + "/issues", body: `{"title":"` + title + `"}`, status: 201})
	}
	walk(t, append(steps, []step{
		{do: "POST " + p + "/labels", body: `{"name":"bug","color":"#fff"}`, status: 201, save: "l=id"},
		{do: "PATCH " + p + "/issues/2", body: `{"body":"text","ref":"main","assignee":"alice","due_date":"2031-01-01T00:00:00Z"}`, status: 201, has: `"due_date":"2031-01-01T00:00:00Z"`},
		{do: "PATCH " + p + "/issues/2", body: `{"assignees":[],"unset_due_date":true}`, status: 201, has: `"due_date":null`},
		{do: "POST " + p + "/issues/2/assignees", body: `{"assignees":["alice"]}`, status: 201, has: `"assignee":{`},
		{do: "DELETE " + p + "/issues/2/assignees", body: `{"assignees":["alice"]}`, status: 200, has: `"assignee":null`},
		{do: "POST " + p + "/issues/2/comments", body: `{"body":"about Tomatoes"}`, status: 201},
		{do: "GET " + p + "/issues?q=tomatoes", status: 200, has: `"title":"one"`},
		{do: "GET " + p + "/issues?type=pulls", status: 200, has: `!"title":"one"`},
		{do: "GET " + p + "/issues?sort=oldest&limit=1", status: 200, has: `"number":1,`},
		{do: "GET " + p + "/issues?sort=recentupdate&limit=1", status: 200, has: `"number":2,`},
		{do: "GET " + p + "/issues?sort=leastupdate&limit=1", status: 200, has: `"number":1,`},
		{do: "GET " + p + "/issues?sort=mostcomment&limit=1", status: 200, has: `"number":2,`},
		{do: "GET " + p + "/issues?sort=leastcomment&type=issues&limit=1", status: 200, has: `!"number":2,`},
		{do: "POST " + p + "/issues/2/dependencies", body: `{"owner":"alice","repo":"r","index":3}`, status: 201},
		{do: "POST " + p + "/issues/2/dependencies", body: `{"owner":"alice","repo":"r","index":3}`, status: 500},
		{do: "POST " + p + "/issues/3/dependencies", body: `{"owner":"alice","repo":"r","index":2}`, status: 500},
		{do: "GET " + p + "/issues/2/timeline", status: 200, has: `"dependent_issue":{`},
		{do: "DELETE " + p + "/issues/2/dependencies", body: `{"owner":"alice","repo":"r","index":3}`, status: 201},
		{do: "DELETE " + p + "/issues/2/dependencies", body: `{"owner":"alice","repo":"r","index":3}`, status: 404},
		{do: "POST " + p + "/issues/2/pin", status: 204},
		{do: "POST " + p + "/issues/3/pin", status: 204},
		{do: "POST " + p + "/issues/4/pin", status: 204},
		{do: "POST " + p + "/issues/5/pin", status: 400, has: "max number of pinned issues"},
		{do: "DELETE " + p + "/issues/2/pin", status: 204},
		{do: "GET " + p + "/issues/4", status: 200, has: `"pin_order":2`},
		{do: "POST " + p + "/branches", body: `{"new_branch_name":"base"}`, status: 201},
		{do: "PATCH " + p + "/pulls/1", body: `{"base":"nope"}`, status: 404},
		{do: "PATCH " + p + "/pulls/1", body: `{"base":"base","labels":[<l>]}`, status: 201, has: `"ref":"base"`},
		{do: "GET " + p + "/pulls?labels=<l>&poster=alice&base_branch=base", status: 200, has: `"number":1,`},
		{do: "GET " + p + "/pulls?labels=0", status: 200, has: `!"number":1,`},
		{do: "GET " + p + "/pulls?poster=nobody", status: 400},
		{do: "POST " + p + "/pulls", body: `{"head":"next","base":"base","title":"again"}`, status: 409},
		{do: "POST " + p + "/pulls", body: `{"head":"main","base":"main","title":"same"}`, status: 422},
		{do: "POST " + p + "/issues", body: `{"title":5}`, status: 422, has: `within \"/title\"`},
		{do: "POST " + p + "/pulls", body: `{"head":"next","base":"main","title":5}`, status: 422, has: `within \"/title\"`},
	}...))
}
