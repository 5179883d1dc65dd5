package server_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy/kv"
	"aegis/proxy/kv/open"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/server"
)

// TestGrantsOutlive a restart, a reload, and new keys of the store, before and
// after each of which everything works: tokens, refreshes, and client ids that
// were given out earlier.
func TestGrantsOutlive(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	tokens := a.connect("alice")
	access, refresh := tokens.field("access_token"), tokens.field("refresh_token")
	check := func(after string) {
		t.Helper()
		h.works(access, "alice")
		r := a.refresh(refresh)
		if r.status != http.StatusOK {
			t.Fatalf("after %s: %d %s", after, r.status, r.body)
		}
		access, refresh = r.field("access_token"), r.field("refresh_token")
		h.works(access, "alice")
		if got := h.person("bob").allow(a.address("state", after)); got.Get("code") == "" {
			t.Errorf("after %s the client is not known: %v", after, got)
		}
	}
	check("nothing")
	h.restart()
	check("a restart")
	h.write(h.secret, "default_scopes: [read:repository]\naccess_ttl: 30m\n")
	h.reload()
	check("a reload")

	before := h.keys()
	rotated, err := open.RotateKeys(t.Context(), h.load())
	if err != nil || !rotated.InUse {
		t.Fatalf("rotation beside a running Aegis: %+v, %v", rotated, err)
	}
	check("a new key, not yet loaded")
	h.reload()
	check("a new key")
	h.stop()
	rotated, err = open.RotateKeys(t.Context(), h.load())
	if err != nil || rotated.InUse || rotated.Resealed == 0 {
		t.Fatalf("rotation with no Aegis running: %+v, %v", rotated, err)
	}
	if after := h.keys(); len(after) <= len(before) || !strings.HasSuffix(after, before) {
		t.Error("the older keys are gone from the file")
	}
	h.serve(h.listen(h.addr))
	check("another key and a restart")
}

// keys returns the keys of the key file, without comments.
func (h *house) keys() string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, "store.keys"))
	if err != nil {
		h.t.Fatal(err)
	}
	var keys []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			keys = append(keys, line)
		}
	}
	return strings.Join(keys, "\n")
}

// TestSecondProcess: only one may have the store.
func TestSecondProcess(t *testing.T) {
	h := newHouse(t, houseOptions{})
	cfg := h.load()
	cfg.Audit.Path = "off"
	second, err := server.Look(cfg)
	if err != nil {
		t.Fatalf("checking a configuration beside a running Aegis: %v", err)
	}
	if err := second.Serve(t.Context(), h.listen("127.0.0.1:0")); err == nil {
		t.Error("what was made for looking serves")
	}
	second.Close()
	_, err = server.Build(cfg, zerolog.Nop(), func(p *server.Process) { server.WaitForStore(p, time.Millisecond) }) // the first keeps it
	if err == nil || !strings.Contains(err.Error(), "store") {
		t.Fatalf("a second process serves: %v", err)
	}
	t.Log(err)
	h.works(h.newApp().connect("alice").field("access_token"), "alice")
}

// TestOperatorMeetsAStart: a command that comes while a server has the store and not yet
// its socket asks it again.
func TestOperatorMeetsAStart(t *testing.T) {
	h := newHouse(t, houseOptions{})
	h.stop()
	store, err := kv.OpenFile(filepath.Join(h.dir, "aegis.db"), kv.FileOptions{Sweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var ln net.Listener
	eventually(t, func() (err error) { // the one before ends with its server, and not in order
		ln, err = net.Listen("unix", filepath.Join(h.dir, "control.sock"))
		return err
	})
	defer ln.Close()
	go func() {
		if c, err := ln.Accept(); err == nil { // as if nobody served it yet
			_ = c.Close()
		}
		_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"grants":[{"id":"g1"}]}`)
		}))
	}()
	list, err := server.Operator(h.load()).List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "g1" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestOperatorListsAndRevokes, over the control socket and without a process.
func TestOperatorListsAndRevokes(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	alice, bob := a.connect("alice", "scope", "read:repository read:user"), a.connect("bob")
	again := a.connect("alice", "state", "again")
	list, err := server.Operator(h.load()).List(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%d grants, %v", len(list), err)
	}
	for _, g := range list {
		if g.Login == "alice" && g.ClientName == "Test client" && len(g.Scopes) == 2 {
			n, err := server.Operator(h.load()).Revoke(t.Context(), grant.Revocation{Grant: g.ID})
			if n != 1 || err != nil {
				t.Fatalf("revoked %d, %v", n, err)
			}
		}
	}
	if r, _ := h.whoami(alice.field("access_token")); r.status != http.StatusUnauthorized {
		t.Errorf("a revoked grant: %d %s", r.status, r.body)
	}
	if r := a.refresh(alice.field("refresh_token")); r.status != http.StatusBadRequest || r.field("error") != "invalid_grant" {
		t.Errorf("refresh of a revoked grant: %d %s", r.status, r.body)
	}
	h.works(again.field("access_token"), "alice")
	h.works(bob.field("access_token"), "bob")
	h.stop()
	if n, err := server.Operator(h.load()).Revoke(t.Context(), grant.Revocation{Login: "BOB"}); n != 1 || err != nil {
		t.Errorf("without a process: %d, %v", n, err)
	}
	if list, err := server.Operator(h.load()).List(t.Context()); len(list) != 1 || err != nil {
		t.Errorf("without a process: %d grants, %v", len(list), err)
	}
	h.serve(h.listen(h.addr))
	if r, _ := h.whoami(bob.field("access_token")); r.status != http.StatusUnauthorized {
		t.Errorf("a grant that was revoked without a process: %d", r.status)
	}
	h.works(again.field("access_token"), "alice")
}

// TestWhatHappensInGitea: case 10.
func TestWhatHappensInGitea(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	tokens := a.connect("alice")
	access := tokens.field("access_token")

	// A new name changes nothing for the person.
	h.double.RenameUser("alice", "alicia")
	if r, got := h.whoami(access); r.status != 200 || got.Error.Kind != "" || !strings.Contains(string(got.Data), `"login":"alicia"`) {
		t.Errorf("after the rename: %d %s", r.status, r.body)
	}
	if r := a.refresh(tokens.field("refresh_token")); r.status != 200 {
		t.Errorf("refresh after the rename: %d %s", r.status, r.body)
	}

	// Who is deactivated can do nothing, and gets back in when that is over.
	h.double.SetUserActive("alicia", false)
	if r, got := h.whoami(access); r.status == 200 && got.Error.Kind == "" {
		t.Errorf("after the deactivation: %d %s", r.status, r.body)
	}
	h.double.SetUserActive("alicia", true)
	if r, got := h.whoami(access); r.status != 200 || got.Error.Kind != "" {
		t.Errorf("after the reactivation: %d %s", r.status, r.body)
	}

	// A new secret of the application is the operator's to bring: nobody is logged
	// out, and whoever signs in is told whom to tell.
	secret := h.double.RotateOAuthSecret(h.app)
	h.works(access, "alice")
	p := h.person("bob")
	if to := p.goOn(p.open(a.address("state", "bob"))); to != nil || !strings.Contains(p.page, "not set up right") && !strings.Contains(p.page, "did not accept") {
		t.Errorf("signing in with the old secret: %v %d %s", to, p.status, bodyOf(p.page))
	}
	h.write(secret, "")
	h.reload()
	h.works(access, "alice")
	if got := h.person("bob").allow(a.address("state", "bob again")); got.Get("code") == "" {
		t.Errorf("signing in with the new secret: %v", got)
	}
}

// TestRevokedInGitea: case 10. Who revokes Aegis in Gitea must sign in again, and
// then can.
func TestRevokedInGitea(t *testing.T) {
	// The credential is renewed at its first use, which is when Gitea says so.
	h := newHouse(t, houseOptions{front: tamper("authorization_code", func(m map[string]any) { m["expires_in"] = 1 })})
	a := h.newApp()
	tokens := a.connect("alice")
	h.double.RevokeGrant("alice", h.app)
	for range 2 {
		if r, _ := h.whoami(tokens.field("access_token")); r.status != http.StatusUnauthorized || !strings.Contains(r.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("a call: %d %s", r.status, r.body)
		}
	}
	if r := a.refresh(tokens.field("refresh_token")); r.status != http.StatusBadRequest || r.field("error") != "invalid_grant" {
		t.Errorf("a refresh: %d %s", r.status, r.body)
	}
	tokens = a.connect("alice", "state", "again")
	h.works(tokens.field("access_token"), "alice")

	// Right after Aegis got a token, a refusal may be Gitea's own trouble: nobody
	// is logged out at once.
	h.double.RevokeGrant("alice", h.app)
	if r, got := h.whoami(tokens.field("access_token")); r.status != 200 || got.Error.Kind != "upstream_unavailable" || got.Error.RetryAfter == nil {
		t.Errorf("a call with a token that is refused at once: %d %s", r.status, r.body)
	}
}

// TestAccountEndsAGrant, through the whole server.
func TestAccountEndsAGrant(t *testing.T) {
	h := newHouse(t, houseOptions{})
	a := h.newApp()
	tokens := a.connect("alice")
	p := h.person("alice")
	p.open(h.url + "/account")
	p.goOn(p.press("/account", "do", "sign_in"))
	if p.at.Path != "/account" || !strings.Contains(p.page, "Test client") {
		t.Fatalf("at %s: %s", p.at, bodyOf(p.page))
	}
	p.press("/account", "do", "revoke")
	if strings.Contains(p.page, "Test client") {
		t.Errorf("still there: %s", bodyOf(p.page))
	}
	if r, _ := h.whoami(tokens.field("access_token")); r.status != http.StatusUnauthorized {
		t.Errorf("the client still works: %d", r.status)
	}
}

// TestSubPaths: Aegis and Gitea are both below a path, and browsers know Gitea by
// another name than Aegis does.
func TestSubPaths(t *testing.T) {
	h := newHouse(t, houseOptions{path: "/tools/aegis", sub: "/git"})
	r := h.ask(http.MethodPost, "/mcp", "")
	if want := `resource_metadata="` + h.root + resourceDoc + `/tools/aegis/mcp"`; r.status != http.StatusUnauthorized || !strings.Contains(r.header.Get("WWW-Authenticate"), want) {
		t.Errorf("%d %s", r.status, r.header.Get("WWW-Authenticate"))
	}
	for path, issuer := range map[string]bool{resourceDoc + "/tools/aegis/mcp": false, resourceDoc: false, serverDoc + "/tools/aegis": true} {
		r := h.ask(http.MethodGet, path, "")
		if r.status != 200 || issuer && r.field("issuer") != h.url || !issuer && r.field("resource") != h.endpoint {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	a := h.newApp()
	tokens := a.connect("alice")
	h.works(tokens.field("access_token"), "alice")
	if r := a.refresh(tokens.field("refresh_token")); r.status != 200 {
		t.Errorf("refresh: %d %s", r.status, r.body)
	}
	p := h.person("alice")
	p.open(h.url + "/account")
	p.goOn(p.press(h.o.path+"/account", "do", "sign_in"))
	if p.at.Path != "/tools/aegis/account" || !strings.Contains(p.page, "Test client") || !strings.Contains(p.page, h.browsers+"/user/settings/applications") {
		t.Errorf("at %s: %s", p.at, bodyOf(p.page))
	}
}
