package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// payload is one kind of answer: the Gitea path that has it and the tool call
// that asks for it.
type payload struct {
	name string
	path string // below /api/v1
	call string // params of tools/call
	body string
	mark string // stands near the end of the body, so a cut answer is noticed
}

// payloads have the sizes of real answers: one issue with a long text, and a
// page of 50 issues.
func payloads() []payload {
	one := issue(1, 1900)
	list := make([]string, 50)
	for i := range list {
		list[i] = issue(i+1, 420)
	}
	return []payload{
		{"4 kB issue", "/repos/acme/infra/issues/1", `{"name":"gitea_issue_get","arguments":{"owner":"acme","repo":"infra","index":1}}`, one, "mark-1-end"},
		{"120 kB list", "/repos/acme/infra/issues", `{"name":"gitea_issue_list","arguments":{"owner":"acme","repo":"infra","limit":50}}`, "[" + strings.Join(list, ",") + "]", "mark-50-end"},
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

// newStub serves the payloads as Gitea would.
func newStub(list []payload) *httptest.Server {
	mux := http.NewServeMux()
	answer := func(path, body string) {
		mux.HandleFunc("GET /api/v1"+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json;charset=utf-8")
			w.Header().Set("X-Total-Count", "50")
			_, _ = w.Write([]byte(body)) // a client that went away shows in its own error
		})
	}
	answer("/version", `{"version":"28.1.0"}`)
	answer("/user", `{"login":"alice","is_admin":false}`)
	answer("/settings/api", `{"max_response_items":50,"default_paging_num":30,"default_git_trees_per_page":1000,"default_max_blob_size":10485760,"default_max_response_size":104857600}`)
	for _, p := range list {
		answer(p.path, p.body)
	}
	return httptest.NewServer(mux)
}
