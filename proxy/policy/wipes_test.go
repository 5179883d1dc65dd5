package policy_test

import (
	"testing"

	"aegis/config"
)

// TestDeletingARepository deletes branches and files that agents may not write.
func TestDeletingARepository(t *testing.T) {
	t.Parallel()
	for rule, edit := range map[string]func(*config.Policy){
		"branches.allow": branches([]string{"ai/**"}, nil, false), "branches.deny": branches(nil, []string{"release/**"}, false),
		"branches.protect_default": branches(nil, nil, true),
		"paths.deny":               paths(nil, []string{".gitea/workflows/**"}), "paths.allow": paths([]string{"docs/**"}, nil),
		"": repos([]string{"acme/*"}, nil), // this rule is about other things
	} {
		check(t, rules(t, edit), []decision{
			{"repoDelete", with(), rule},
			{"raw", args{"method": "DELETE", "path": "/repos/acme/web"}, rule},
			{"orgDeleteRepos", args{"org": "acme"}, rule},
			{"raw", args{"method": "DELETE", "path": "/orgs/acme/repos"}, rule},
		})
	}
}
