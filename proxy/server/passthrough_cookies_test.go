package server_test

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestCookiesOfAegisStayFromGitea: its pages share the host with Gitea's.
func TestCookiesOfAegisStayFromGitea(t *testing.T) {
	var mu sync.Mutex
	var cookies []string
	h := newHouse(t, houseOptions{front: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			cookies = append(cookies, r.Header.Values("Cookie")...)
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	}})
	text, err := os.ReadFile(h.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file, []byte(strings.Replace(string(text), "gitea: {url:", "gitea: {passthrough: true, url:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.restart()
	p := h.person("alice")
	p.open(h.url + "/account")
	p.goOn(p.press("/account", "do", "sign_in"))
	mu.Lock()
	cookies = nil
	mu.Unlock()
	p.open(h.url + "/alice")
	q, err := http.NewRequest(http.MethodGet, h.url+"/alice", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header["Cookie"] = []string{"a=1; __Host-aegis-account=x; b=aegis-account", "aegis-browser=y"}
	p.visit(q)
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(cookies, " | ")
	for _, own := range []string{"aegis-account=", "aegis-browser=", "aegis-flow"} {
		if strings.Contains(all, own) {
			t.Errorf("Gitea was sent %s", all)
		}
	}
	if len(cookies) == 0 || !strings.Contains(all, "a=1;") || !strings.Contains(all, "b=aegis-account") {
		t.Errorf("other cookies are missing: %s", all)
	}
}
