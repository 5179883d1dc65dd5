package server_test

import (
	"os"
	"strings"
	"testing"

	"aegis/proxy/oauth/grant"
	"aegis/proxy/server"
)

// TestOAuthSwitchedOnByAReload: operators reach the running server, and unused
// credentials are looked for, as if it had been on from the start.
func TestOAuthSwitchedOnByAReload(t *testing.T) {
	h := newHouse(t, houseOptions{})
	on, err := os.ReadFile(h.file)
	if err != nil {
		t.Fatal(err)
	}
	off := strings.Replace(string(on), "enabled: true", "enabled: false", 1)
	off = strings.Replace(off, "auth:\n", "auth:\n  tokens: [{name: alice, token: "+aliceToken+", gitea_token: "+h.double.Token("alice")+"}]\n", 1)
	if err := os.WriteFile(h.file, []byte(off), 0o600); err != nil {
		t.Fatal(err)
	}
	h.restart()
	if err := os.WriteFile(h.file, on, 0o600); err != nil {
		t.Fatal(err)
	}
	h.reload()
	h.newApp().connect("alice")
	var list []grant.Grant
	eventually(t, func() (err error) {
		list, err = server.Operator(h.load()).List(t.Context())
		return err
	})
	if len(list) != 1 || list[0].Login != "alice" {
		t.Errorf("%v", list)
	}
}
