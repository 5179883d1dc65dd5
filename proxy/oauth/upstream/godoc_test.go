package upstream_test

import (
	"fmt"

	"aegis/config"
	"aegis/proxy/oauth/upstream"
)

// A word that is no scope of Gitea's never reaches it: it would grant everything.
func ExampleNew() {
	_, err := upstream.New(upstream.Options{Config: config.OAuth{Scopes: []string{"read:issue", "offline_access"}}})
	fmt.Println(err != nil)
	// Output: true
}
