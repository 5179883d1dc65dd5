package members_test

import (
	"context"
	"fmt"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy/members"
)

// A gate asks Gitea only about people whom no list names.
func ExampleGate() {
	asked := lookupFunc(func(proxy.Credential) (orgs, teams []string, err error) {
		fmt.Println("Gitea is asked")
		return []string{"acme"}, []string{"acme/developers"}, nil
	})
	gate := members.NewGate(members.NewDirectory(asked, nil), config.Members{
		Logins: []string{"alice"}, Teams: []string{"acme/owners"},
	})
	for _, login := range []string{"Alice", "bob"} {
		err := gate.Enter(context.Background(), &proxy.Identity{Login: login})
		fmt.Println(login, err == nil)
	}
	// Output:
	// Alice true
	// Gitea is asked
	// bob false
}

type lookupFunc func(proxy.Credential) (orgs, teams []string, err error)

func (f lookupFunc) Memberships(_ context.Context, cred proxy.Credential) (orgs, teams []string, err error) {
	return f(cred)
}
