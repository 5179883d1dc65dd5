package policy_test

import (
	"strings"
	"testing"
)

// TestMergedFiles: what a merge, or a branch at any commit, brings in is written too.
func TestMergedFiles(t *testing.T) {
	t.Parallel()
	merge := func(n int) args { return with(args{"index": n, "do": "merge"}) }
	check(t, rules(t, paths(nil, []string{".gitea/workflows/**"})), []decision{
		{"repoMergePullRequest", merge(1), "paths.deny[0]"},
		{"repoMergePullRequest", merge(2), ""},
		{"repoMergePullRequest", merge(3), "paths.deny[0]"}, // moved away from there
		{"repoMergePullRequest", merge(9), "paths.deny"},    // nobody knows
		{"repoMergePullRequest", with(args{"index": 2, "do": "merge", "merge_when_checks_succeed": true}), "paths.deny"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/pulls/1/merge", "body": args{"do": "merge"}}, "paths.deny[0]"},
		{"repoUpdateBranch", with(args{"branch": "ai/x", "new_commit_id": strings.Repeat("a", 40)}), "paths.deny"},
		{"repoMergeUpstream", with(args{"branch": "ai/x"}), "paths.deny"},
		{"repoCreateBranch", with(args{"new_branch_name": "ai/x", "old_ref_name": "refs/pull/1/head"}), "paths.deny"},
		{"repoCreateBranch", with(args{"new_branch_name": "ai/x", "old_branch_name": "main"}), ""},
		{"repoCreateBranch", with(args{"new_branch_name": "ai/x"}), ""},
	})
	check(t, rules(t, paths([]string{"docs/**"}, nil)), []decision{
		{"repoMergePullRequest", merge(1), "paths.allow"}, {"repoMergePullRequest", merge(2), ""},
	})
}
