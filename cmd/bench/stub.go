package main

import (
	"fmt"
	"net/http"
	"strings"
)

// payload is one kind of answer: the Gitea path that has it and the tool call
// that asks for it.
type payload struct {
	name string
	path string // below /api/v1
	tool string
	args string // of the call, a JSON object
	body string
	mime string // Aegis goes by it: text comes as a string, JSON as it is
	mark string // near the end of the body, so that a cut answer is noticed
	cut  bool   // Aegis's bounds cut it
	// calls divides the number of calls of a round, for answers that take long.
	calls int
}

// text reports whether the answer is text, which a result holds as a string.
func (p *payload) text() bool { return strings.HasPrefix(p.mime, "text/") }

// payloads have the sizes and shapes of real answers: one issue with a long
// text, a page of 50 issues, a source file, and the log of a job.
func payloads() []payload {
	one := issue(1, 1900)
	// Fifty is the most that Gitea gives by default; the texts are shorter than a single issue's.
	list := make([]string, 50)
	for i := range list {
		list[i] = issue(i+1, 420)
	}
	const at = `"owner":"acme","repo":"infra"`
	const json, text = "application/json;charset=utf-8", "text/plain; charset=utf-8"
	return []payload{
		{name: "4 kB issue", path: "/repos/acme/infra/issues/1", tool: "gitea_issue_get", args: `{` + at + `,"index":1}`, body: one, mime: json, mark: "mark-1-end", calls: 1},
		{name: "120 kB list", path: "/repos/acme/infra/issues", tool: "gitea_issue_list", args: `{` + at + `,"limit":50}`, body: "[" + strings.Join(list, ",") + "]", mime: json, mark: "mark-50-end", calls: 1},
		{name: "1 MiB text", path: "/repos/acme/infra/raw/main.go", tool: "gitea_contents_get_raw", args: `{` + at + `,"filepath":"main.go"}`, body: source(1 << 20), mime: text, mark: "// end of the file", calls: 5},
		{name: "16 MiB log", path: "/repos/acme/infra/actions/jobs/7/logs", tool: "gitea_actions_get_job_log", args: `{` + at + `,"job_id":7}`, body: jobLog(16 << 20), mime: text, mark: "line 0", cut: true, calls: 30},
	}
}

// issue is an issue with Gitea's members and a text of about n characters.
func issue(number, n int) string {
	user := func(id int, login string) string {
		return fmt.Sprintf(`{"id":%d,"login":%q,"login_name":"","source_id":0,"full_name":"","email":"%s@example.org","avatar_url":"https://git.example.org/avatars/%032x","html_url":"https://git.example.org/%s","language":"","is_admin":false,"last_login":"0001-01-01T00:00:00Z","created":"2026-01-02T03:04:05Z","restricted":false,"active":false,"prohibit_login":false,"location":"","website":"","description":"","visibility":"public","followers_count":0,"following_count":0,"starred_repos_count":0,"username":%q}`, id, login, login, id*7919, login, login)
	}
	text := strings.Repeat(`Steps to reproduce:\n\n1. open the \"settings\" page\n2. press save \u0026 wait\n\n`, n/80)
	return fmt.Sprintf(`{"id":%d,"url":"https://git.example.org/api/v1/repos/acme/infra/issues/%d","html_url":"https://git.example.org/acme/infra/issues/%d","number":%d,"user":%s,"original_author":"","original_author_id":0,"title":"Settings are lost after an upgrade (%d)","body":"%s","ref":"","assets":[],"labels":[{"id":3,"name":"kind/bug","exclusive":false,"is_archived":false,"color":"ee0701","description":"Something is not working","url":"https://git.example.org/api/v1/repos/acme/infra/labels/3"}],"milestone":null,"assignee":%s,"assignees":null,"state":"open","is_locked":false,"comments":4,"created_at":"2026-03-01T10:00:00Z","updated_at":"2026-03-02T11:30:00Z","closed_at":null,"due_date":null,"time_estimate":0,"pull_request":null,"repository":{"id":5,"name":"infra","owner":"acme","full_name":"acme/infra"},"pin_order":0,"x":"mark-%d-end"}`,
		1000+number, number, number, number, user(number+10, "alice"), number, text, user(7, "bob"), number)
}

// source is a program text of n bytes or a little less.
func source(n int) string {
	const end = "// end of the file\n"
	var b strings.Builder
	// A step takes less than 300 bytes, so the end still fits.
	for i := 0; b.Len() < n-300; i++ {
		fmt.Fprintf(&b, "// step%d counts what is left, as the caller wants it.\nfunc step%d(ctx context.Context, left map[string]int) (int, error) {\n\tif left == nil {\n\t\treturn 0, errors.New(\"nothing left\")\n\t}\n\treturn len(left) + %d, nil\n}\n\n", i, i, i*31)
	}
	return b.String() + end
}

// jobLog is the log of a job, n bytes or a little more.
func jobLog(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "2026-03-01T10:%02d:%02d.%07dZ ok  \texample.org/infra/pkg%d\t0.%03ds line %d\n", i/60%60, i%60, i%9999999, i%97, i%1000, i)
	}
	return b.String()
}

// stub serves the payloads as Gitea would.
func stub(list []payload) http.Handler {
	mux := http.NewServeMux()
	answer := func(path, mime, body string) {
		mux.HandleFunc("GET /api/v1"+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mime)
			// Gitea has it in lists; elsewhere it is not looked at.
			w.Header().Set("X-Total-Count", "50")
			_, _ = w.Write([]byte(body)) // a client that went away shows in its own error
		})
	}
	// What Aegis asks for itself, at its start and to know whose token it has.
	answer("/version", "application/json", `{"version":"28.1.0"}`)
	answer("/user", "application/json", `{"id":17,"login":"alice","is_admin":false}`)
	answer("/settings/api", "application/json", `{"max_response_items":50,"default_paging_num":30,"default_git_trees_per_page":1000,"default_max_blob_size":10485760,"default_max_response_size":104857600}`)
	for i := range list {
		answer(list[i].path, list[i].mime, list[i].body)
	}
	return mux
}
