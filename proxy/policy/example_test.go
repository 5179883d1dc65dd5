package policy_test

import (
	"context"
	"encoding/json"
	"fmt"

	"aegis/config"
	"aegis/proxy/policy"
)

// Rules can be tried without a server: nothing is sent anywhere.
func ExampleTry() {
	set, err := loadBuiltin()
	if err != nil {
		fmt.Println(err)
		return
	}
	sel, _ := set.Select(config.Default().Tools)
	team := policy.Endpoint{
		Catalog: sel.Stage(), Operations: set.Tools(),
		Rules: config.Policy{Repos: config.Patterns{Allow: []string{"acme/*"}}},
	}
	for _, owner := range []string{"acme", "other"} {
		args, _ := json.Marshal(map[string]any{"owner": owner, "repo": "web", "index": 1})
		v, err := policy.Try(context.Background(), team, nil, policy.Request{Tool: "gitea_issue_get", Args: args})
		if err != nil { // the rules themselves are wrong
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: allowed %v, rule %q\n", owner, v.Allowed, v.Rule)
	}
	// Output:
	// acme: allowed true, rule ""
	// other: allowed false, rule "repos.allow"
}
