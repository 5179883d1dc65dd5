package catalog_test

import (
	"strings"
	"testing"

	"aegis/config"
)

// TestNothingDestructiveIsProposed for a name that is merely similar.
func TestNothingDestructiveIsProposed(t *testing.T) {
	t.Parallel()
	sel, problems := builtin(t).Select(config.Default().Tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, want := range map[string]string{
		"gitea_repository_compare": "", "gitea_repository_remote": "", "gitea_pull_mergee": "gitea_pull_merge", "gitea_isue_get": "gitea_issue_get",
		"gitea_repository_delte": "gitea_repository_delete",
	} {
		_, err := sel.Lookup(name)
		if err == nil {
			t.Fatalf("%s is a tool", name)
		}
		_, proposed, _ := strings.Cut(err.Error(), "did you mean ")
		proposed = strings.TrimSuffix(proposed, "?")
		if want != "" && proposed != want {
			t.Errorf("%s: proposes %q, want %q (%v)", name, proposed, want, err)
		}
		if tool, err := sel.Lookup(proposed); want == "" && err == nil && tool.Destructive {
			t.Errorf("%s: proposes %s", name, proposed)
		}
	}
}
