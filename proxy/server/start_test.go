package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/server"
)

const described = `{"swagger":"2.0","basePath":"/api/v1","paths":{"/user":{"get":{}},"/repos/{owner}/{repo}":{"get":{},"delete":{}}}}`

// TestStartWaitsForTheStore: a process that still has the store open holds up the
// next one. What that learns of Gitea meanwhile must not serve tools that stand on
// the store in memory.
func TestStartWaitsForTheStore(t *testing.T) {
	var held atomic.Bool // somebody else has the store
	h := newHouse(t, houseOptions{
		oauth: "scopes: [write:repository, read:user]\n",
		top:   "policy: {confirm: {tools: [R3], fallback: token}}\n",
		front: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/swagger.v1.json" {
					_, _ = w.Write([]byte(described))
					if held.Load() {
						t.Error("Gitea was asked before the store was open")
					}
					return
				}
				next.ServeHTTP(w, r)
			})
		},
	})
	token := h.newApp().connect("alice").field("access_token")
	text, err := os.ReadFile(h.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file, []byte(strings.Replace(string(text), "gitea: {url:", "gitea: {hide_missing: true, url:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	settled(t, h.live.Server())
	h.stop()
	store, err := kv.OpenFile(filepath.Join(h.dir, "aegis.db"), kv.FileOptions{Sweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	h.o.tune = func(s *server.Process) { server.WaitForStore(s, patience) }
	held.Store(true)
	time.AfterFunc(300*time.Millisecond, func() { // it waits, as it should
		held.Store(false)
		_ = store.Close()
	})
	h.serve(h.listen(h.addr))
	p := h.person("alice")
	p.open(h.url + "/account")
	p.goOn(p.press("/account", "do", "sign_in"))
	var a answer
	eventually(t, func() error {
		var r reply
		if r, a = h.tool(token, "gitea_repository_delete", `{"owner":"acme","repo":"issues-lab"}`); a.Error.Kind == "" {
			return fmt.Errorf("the call is not decided: %d %s", r.status, r.body)
		}
		return nil
	})
	if p.open(h.url + "/account"); !strings.Contains(p.page, "gitea_repository_delete") {
		t.Errorf("%+v, and no code on %s: %s", a, p.at, p.page)
	}
}
