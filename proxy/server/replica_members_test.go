package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestMembershipLossAcrossReplicas: when one replica sees that a person left a team,
// all shut the door as soon as Gitea may be asked again, which is after five seconds,
// long before each would have asked by itself.
func TestMembershipLossAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{
		oauth: "scopes: [read:user, read:organization, write:repository]\n",
		top:   "members: {teams: [acme/developers]}\n",

		timely: true, env: []string{replicaHaste + "=1"},
	})
	a := f.newApp()

	token := a.connect("bob").field("access_token")
	f.each(func(*replica) { f.works(token, "bob") })
	if !f.double.SetTeamMember("acme", "developers", "bob", false) {
		t.Fatal("the double has no such team")
	}
	f.add(5 * time.Second)
	f.each(func(x *replica) { // each believes what it was told
		if r, _ := f.whoami(token); r.status != http.StatusOK {
			t.Errorf("%s has asked again already, so this test shows nothing: %d", x.name, r.status)
		}
	})
	f.through(1) // a denial of Gitea's makes this one doubt
	eventually(t, func() error {
		if r, _ := f.tool(token, "gitea_repository_get", `{"owner":"acme","repo":"no-such-repository"}`); r.status != http.StatusForbidden {
			return fmt.Errorf("still let in: %d %s", r.status, r.body)
		}
		return nil
	})
	f.each(func(x *replica) {
		eventually(t, func() error {
			if r, _ := f.whoami(token); r.status != http.StatusForbidden {
				return fmt.Errorf("%s lets in: %d %s", x.name, r.status, r.body)
			}
			return nil
		})
	})
}
