package policy_test

import (
	"context"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy"
)

func branches(allow, deny []string, protect bool) func(*config.Policy) {
	return func(p *config.Policy) {
		p.Branches = config.BranchRules{Allow: allow, Deny: deny, ProtectDefault: protect}
	}
}

func paths(allow, deny []string) func(*config.Policy) {
	return func(p *config.Policy) { p.Paths = config.Patterns{Allow: allow, Deny: deny} }
}

// over makes a policy over some tools.
func over(t testing.TB, tools []*proxy.Tool, edit func(*config.Policy)) *policy.Policy {
	t.Helper()
	p, err := policy.New(rules(t, edit), policy.Options{Operations: tools})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// world is a lookup with fixed answers.
type world struct{}

func (world) Repository(_ context.Context, _ *proxy.Call, at policy.Place) (policy.Repository, error) {
	if strings.EqualFold(at.Owner, "acme") {
		return policy.Repository{DefaultBranch: "main", Parent: map[string]string{"fork": "other/secret"}[at.Repo]}, nil
	}
	return policy.Repository{}, errUnknown
}

func (world) Pull(_ context.Context, _ *proxy.Call, at policy.Place) (policy.Pull, error) {
	pulls := map[int64]policy.Pull{
		1: {Base: "main", Head: "ai/x", HeadRepo: "acme/web"},
		2: {Base: "ai/base", Head: "ai/x", HeadRepo: "acme/web"},
		3: {Base: "ai/base", Head: "feature", HeadRepo: "acme/web"},
		4: {Base: "ai/base", Head: "ai/x", HeadRepo: "other/web"},
		5: {Base: "ai/base", Head: "ai/x"},
		6: {Base: "ai/base", Head: "release/1", HeadRepo: "acme/web"},
	}
	if p, ok := pulls[at.Number]; ok {
		return p, nil
	}
	return policy.Pull{}, errUnknown
}

func (world) Files(_ context.Context, _ *proxy.Call, at policy.Place) ([]string, error) {
	files := map[int64][]string{1: {"docs/a.md", ".gitea/workflows/ci.yaml"}, 2: {"docs/a.md", "docs/b.md"},
		3: {"docs/ci.yaml", ".Gitea/Workflows/old.yaml"}}
	if list, ok := files[at.Number]; ok {
		return list, nil
	}
	return nil, errUnknown
}

func (world) Release(_ context.Context, _ *proxy.Call, at policy.Place) (policy.Release, error) {
	if at.Number == 1 {
		return policy.Release{Tag: "v1", Target: "main"}, nil
	}
	return policy.Release{Tag: "ai/v1", Target: "ai/x"}, nil
}

// decision is one line of a table: an operation, its arguments, and the rule that
// refuses it, "" when none does.
type decision struct {
	op   string
	args args
	rule string
}

func with(more ...args) args {
	out := args{"owner": "acme", "repo": "web"}
	for _, m := range more {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func check(t *testing.T, cfg config.Policy, table []decision) {
	t.Helper()
	tr := newTrial(t, cfg, world{})
	for _, d := range table {
		v := tr.try(d.op, d.args)
		if v.Allowed != (d.rule == "") || v.Rule != d.rule {
			t.Errorf("%s %v: %v; want rule %q", d.op, d.args, v, d.rule)
		}
	}
}

// TestBound is a team bound to one owner, attacked with every spelling of another
// one (case 1 of the policy cases).
func TestBound(t *testing.T) {
	t.Parallel()
	raw := func(method, path string, more args) args {
		out := args{"method": method, "path": path}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	check(t, rules(t, func(p *config.Policy) { p.Bind.Owner = "Acme" }), []decision{
		{"repoGet", with(), ""},
		{"repoGet", with(args{"owner": "ACME"}), ""},
		{"repoGet", with(args{"repo": "web.git"}), ""},
		{"repoGet", with(args{"owner": "other"}), "bind.owner"},
		{"raw", raw("GET", "/repos/acme/web", nil), ""},
		{"raw", raw("GET", "/repos/ACME/web", nil), ""},
		{"raw", raw("GET", "/repos/other/web", nil), "bind.owner"},
		{"raw", raw("GET", "/repos/acme", nil), "bind.owner"},
		{"raw", raw("GET", "/repos/acme/../other/web", nil), "arguments"},
		{"raw", raw("GET", "/repos/acme%2Fweb", nil), "arguments"},
		{"raw", raw("GET", "/repos/аcme/web", nil), "bind.owner"},
		{"raw", raw("GET", "/repos/acme /web", nil), "bind.owner"},
		{"raw", raw("GET", "/user/repos", nil), ""}, // its rows are filtered
		{"createFork", with(args{"organization": "other"}), "bind.owner"},
		{"createFork", with(args{"organization": "acme", "name": "copy"}), ""},
		{"createFork", with(), "bind.owner"}, // into the caller's account
		{"raw", raw("POST", "/repos/acme/web/forks", args{"body": args{"organization": "other"}}), "bind.owner"},
		{"raw", raw("POST", "/repos/acme/web/forks", args{"body": args{"Organization": "other"}}), "arguments"},
		{"raw", raw("POST", "/repos/acme/web/forks", args{"body": args{"organization": "acme", "ORGANIZATION": "other"}}), "arguments"},
		{"raw", raw("POST", "/repos/acme/web/forks", args{"body": args{"organization": []any{"other"}}}), "bind.owner"},
		{"repoTransfer", with(args{"new_owner": "other"}), "bind.owner"},
		{"repoTransfer", with(args{"new_owner": "acme/"}), "bind.owner"},
		{"acceptRepoTransfer", with(), "bind.owner"},
		{"repoCreatePullRequest", with(args{"title": "t", "base": "main", "head": "other:branch"}), "bind.owner"},
		{"repoCreatePullRequest", with(args{"title": "t", "base": "main", "head": "other/web:branch"}), "bind.owner"},
		{"repoCreatePullRequest", with(args{"title": "t", "base": "main", "head": "acme:branch"}), ""},
		{"repoCreatePullRequest", with(args{"title": "t", "base": "main", "head": "branch"}), ""},
		{"repoCompareDiff", with(args{"basehead": "main...other:main"}), "bind.owner"},
		{"repoCompareDiff", with(args{"basehead": "other/web:main..main"}), "bind.owner"},
		{"repoCompareDiff", with(args{"basehead": "main...dev"}), ""},
		{"repoGetPullRequestByBaseHead", with(args{"base": "main", "head": "other:x"}), "bind.owner"},
		{"issueCreateIssueDependencies", with(args{"index": 1, "dependency_index": 2, "dependency_owner": "other", "dependency_repo": "web"}), "bind.owner"},
		{"issueCreateIssueDependencies", with(args{"index": 1, "dependency_index": 2, "dependency_owner": "acme", "dependency_repo": "api"}), ""},
		{"issueCreateIssueBlocking", with(args{"index": 1, "blocked_index": 2, "blocked_owner": "other", "blocked_repo": "web"}), "bind.owner"},
		{"generateRepo", args{"template_owner": "other", "template_repo": "t", "owner": "acme", "name": "new"}, "bind.owner"},
		{"generateRepo", args{"template_owner": "acme", "template_repo": "t", "owner": "other", "name": "new"}, "bind.owner"},
		{"repoMigrate", args{"clone_addr": "https://git.example/other/web.git", "repo_name": "x", "repo_owner": "acme"}, "bind.owner"},
		{"repoMigrate", args{"clone_addr": "git@git.example:other/web.git", "repo_name": "x", "repo_owner": "acme"}, "bind.owner"},
		{"repoMigrate", args{"clone_addr": "https://git.example/acme/web.git", "repo_name": "x", "repo_owner": "acme"}, ""},
		{"repoMigrate", args{"clone_addr": "https://git.example/acme/web.git", "repo_name": "x", "uid": 7}, "bind.owner"},
		{"repoMigrate", args{"clone_addr": "https://git.example/sub/acme/web.git", "repo_name": "x", "repo_owner": "acme", "service": "git"}, ""},
		{"repoMigrate", args{"clone_addr": "https://git.example/other/web/acme/web", "repo_name": "x", "repo_owner": "acme", "service": "gogs"}, "bind.owner"},
		{"repoMigrate", args{"clone_addr": "https://git.example/other/web/acme/web", "repo_name": "x", "repo_owner": "acme", "service": "github"}, "bind.owner"},
		{"repoMigrate", args{"clone_addr": "https://git.example/acme/web", "repo_name": "x", "repo_owner": "acme", "service": "github"}, ""},
		{"repoAddPushMirror", with(args{"remote_address": "https://elsewhere.example/other/web.git", "interval": "8h"}), "bind.owner"},
		{"createCurrentUserRepo", args{"name": "mine"}, "bind.owner"},
		{"createOrgRepo", args{"org": "other", "name": "x"}, "bind.owner"},
		{"createOrgRepo", args{"org": "acme", "name": "x"}, ""},
		{"renameOrg", args{"org": "acme", "new_name": "other"}, "bind.owner"},
		{"orgDeleteRepos", args{"org": "other"}, "bind.owner"},
		{"listPackages", args{"owner": "other"}, "bind.owner"},
		{"linkPackage", args{"owner": "acme", "type": "npm", "name": "p", "repo_name": "web"}, ""},
		{"userCurrentPutStar", args{"owner": "other", "repo": "web"}, "bind.owner"},
		{"notifyReadList", args{}, "bind.owner"},
		{"topicSearch", args{"q": "x"}, "bind.owner"},
		{"adminCreateRepo", args{"username": "other", "name": "x"}, "bind.owner"},
		{"adminCronRun", args{"task": "x"}, "bind.owner"},
		{"userCreateHook", args{"type": "gitea", "config": args{"url": "https://x"}}, "bind.owner"},
		{"userCurrentPostKey", args{"title": "x", "key": "ssh-ed25519 AAAA"}, "bind.owner"},
		{"renderMarkdown", args{"Text": "x", "Mode": "gfm", "Context": "other/web"}, "bind.owner"},
		{"renderMarkdown", args{"Text": "x", "Mode": "gfm", "Context": "acme/web"}, ""},
		{"issueCreateIssue", with(args{"title": "see other/web#3"}), "bind.owner"},
		{"issueCreateIssue", with(args{"title": "t", "body": "https://git.example/sub/other/web/issues/3"}), "bind.owner"},
		{"issueCreateIssue", with(args{"title": "see acme/api#3 and 1/2 and and/or"}), ""},
		{"issueCreateIssue", with(args{"title": "t", "body": "[x](https://git.example/acme/web/src/branch/main/src/issues/x.go), https://example.org/a/b/c"}), ""},
		{"issueCreateIssue", with(args{"title": "t", "body": "(https://git.example/other/web/commit/0123abc)"}), "bind.owner"},
		{"repoMergeUpstream", with(args{"repo": "fork", "branch": "ai/x"}), "bind.owner"},
		{"repoEdit", with(args{"name": "renamed"}), ""},
	})
	check(t, rules(t, func(p *config.Policy) { p.Bind = config.Bind{Owner: "acme", Repo: "web"} }), []decision{
		{"repoGet", with(), ""},
		{"repoGet", with(args{"repo": "WEB"}), ""},
		{"repoGet", with(args{"repo": "api"}), "bind.repo"},
		{"repoEdit", with(args{"name": "renamed"}), "bind.repo"},
		{"orgDelete", args{"org": "acme"}, "bind.repo"},
		{"orgGet", args{"org": "acme"}, "bind.repo"},
		{"orgCreateHook", args{"org": "acme", "type": "gitea", "config": args{"url": "https://x"}}, "bind.repo"},
		{"issueCreateIssueDependencies", with(args{"index": 1, "dependency_index": 2, "dependency_owner": "acme", "dependency_repo": "api"}), "bind.repo"},
	})
}

// TestRepos: globs on repositories, for one repository, one owner and all.
func TestRepos(t *testing.T) {
	t.Parallel()
	check(t, rules(t, repos(nil, []string{"acme/secret-*", "evil/*"})), []decision{
		{"repoGet", with(), ""},
		{"repoGet", with(args{"repo": "Secret-plans"}), "repos.deny[0]"},
		{"repoGet", with(args{"repo": "secret-plans.git"}), "repos.deny[0]"},
		{"repoGet", with(args{"repo": "secret-plans.git.GIT"}), "repos.deny[0]"},
		{"repoGet", with(args{"owner": "evil"}), "repos.deny[1]"},
		{"orgGet", args{"org": "evil"}, "repos.deny[1]"},
		{"orgGet", args{"org": "acme"}, ""},
		{"orgDeleteRepos", args{"org": "acme"}, "repos.deny[0]"},
		{"orgDeleteRepos", args{"org": "other"}, ""},
		{"orgAddIssueToProjectColumn", args{"org": "other", "id": 1, "column_id": 1, "issue_id": 9}, "repos.deny"},
		{"repoAddIssueToProjectColumn", with(args{"id": 1, "column_id": 1, "issue_id": 9}), ""},
		{"orgCreateHook", args{"org": "acme", "type": "gitea", "config": args{"url": "https://x"}}, "repos.deny[0]"},
		{"createFork", with(args{"owner": "other", "organization": "acme", "name": "secret-copy"}), "repos.deny[0]"},
		{"createFork", with(args{"owner": "other"}), ""},
		{"repoCreatePullRequest", with(args{"owner": "other", "title": "t", "base": "main", "head": "acme:x"}), "repos.deny[0]"},
		{"repoCreatePullRequest", with(args{"owner": "other", "title": "t", "base": "main", "head": "acme/web:x"}), ""},
		{"createCurrentUserRepo", args{"name": "mine"}, ""},
		{"deletePackage", args{"owner": "acme", "type": "npm", "name": "p"}, "repos.deny[0]"},
		{"listPackageFiles", args{"owner": "acme", "type": "npm", "name": "p", "version": "1"}, "repos.deny[0]"},
		{"userListRepos", args{"username": "acme"}, ""},
		{"repoGetByID", args{"id": 7}, ""},
		{"orgGetTeam", args{"id": 7}, ""},
		{"orgEditTeam", args{"id": 7, "name": "x"}, "repos.deny"},
		{"orgAddTeamRepository", args{"id": 7, "org": "acme", "repo": "secret-x"}, "repos.deny[0]"},
		{"ActionsDispatchWorkflow", with(args{"workflow_id": "x.yml", "ref": "main", "scoped_workflow_source_repo_id": 9}), "repos.deny"},
		{"adminUnadoptedList", args{}, ""},
		{"adminAdoptRepository", args{"owner": "acme", "repo": "secret-x"}, "repos.deny[0]"},
		{"userGetHeatmapData", args{"username": "alice"}, "repos.deny"},
		{"issueCreateComment", with(args{"index": 1, "body": "as in ACME/Secret-Plans#12"}), "repos.deny[0]"},
		{"repoCreateFile", with(args{"filepath": "a", "content_text": "acme/secret-x#1", "message": "m"}), ""},
		{"repoCreateFile", with(args{"filepath": "a", "content_text": "x", "message": "closes acme/secret-x#1"}), "repos.deny[0]"},
	})
	check(t, rules(t, repos([]string{"acme/*", "bob/web"}, nil)), []decision{
		{"repoGet", with(), ""},
		{"repoGet", args{"owner": "bob", "repo": "web"}, ""},
		{"repoGet", args{"owner": "bob", "repo": "api"}, "repos.allow"},
		{"orgGet", args{"org": "bob"}, ""},
		{"orgDeleteRepos", args{"org": "bob"}, "repos.allow"},
		{"orgDeleteRepos", args{"org": "acme"}, ""},
		{"orgGet", args{"org": "carol"}, "repos.allow"},
		{"repoTransfer", with(args{"new_owner": "bob"}), ""},
		{"repoTransfer", with(args{"repo": "api", "new_owner": "bob"}), "repos.allow"},
		{"createCurrentUserRepo", args{"name": "mine"}, "repos.allow"},
		{"getVersion", args{}, ""},
		{"raw", args{"method": "GET", "path": "/nowhere"}, "repos.allow"},
	})
}

// TestBranches is case 3 of the policy cases.
func TestBranches(t *testing.T) {
	t.Parallel()
	file := func(more args) args {
		return with(args{"filepath": "a.txt", "content_text": "x", "message": "m"}, more)
	}
	check(t, rules(t, branches([]string{"ai/**"}, []string{"ai/closed/**"}, false)), []decision{
		{"repoCreateFile", file(nil), "branches.allow"}, // the default branch is main
		{"repoCreateFile", file(args{"branch": ""}), "branches.allow"},
		{"repoCreateFile", file(args{"branch": "ai/x"}), ""},
		{"repoCreateFile", file(args{"branch": "main", "new_branch": "ai/x"}), ""},
		{"repoCreateFile", file(args{"branch": "ai/x", "new_branch": "main"}), "branches.allow"},
		{"repoCreateFile", file(args{"branch": "ai/closed/x"}), "branches.deny[0]"},
		{"repoCreateFile", file(args{"branch": "AI/x"}), "branches.allow"},
		{"repoCreateFile", file(args{"branch": "ai/../main"}), "branches.allow"},
		{"repoCreateFile", file(args{"branch": "refs/heads/main"}), "branches.allow"},
		{"repoCreateFile", file(args{"branch": "ai/x\u200b"}), "branches.allow"},
		{"repoCreateFile", args{"owner": "unknown", "repo": "web", "filepath": "a", "content_text": "x", "message": "m"}, "branches.allow"},
		{"repoChangeFiles", with(args{"files": []any{args{"operation": "create", "path": "a", "content": "eA=="}}, "message": "m"}), "branches.allow"},
		{"repoDeleteFile", with(args{"filepath": "a", "sha": "0000000000000000000000000000000000000000", "message": "m"}), "branches.allow"},
		{"repoApplyDiffPatch", with(args{"content": "x", "message": "m", "branch": "ai/x"}), ""},
		{"repoApplyDiffPatch", with(args{"content": "x", "message": "m"}), "branches.allow"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/a", "body": args{"content": "eA==", "message": "m"}}, "branches.allow"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/a", "body": args{"content": "eA==", "message": "m", "branch": "main", "NEW_branch": "ai/x"}}, "arguments"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/a", "body": args{"content": "eA==", "message": "m", "branch": "main", "new-branch": "ai/x"}}, "branches.allow"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/a", "body": args{"content": "eA==", "message": "m", "branch": "main", "new_branch": "ai/x"}}, ""},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/a", "body": args{"content": "eA==", "message": "m", "branch": "ai/x", "BRANCH": "main"}}, "arguments"},
		{"repoMergePullRequest", with(args{"index": 1, "do": "merge"}), "branches.allow"},
		{"repoMergePullRequest", with(args{"index": 2, "do": "merge"}), ""},
		{"repoMergePullRequest", with(args{"index": 3, "do": "merge"}), ""},
		{"repoMergePullRequest", with(args{"index": 3, "do": "merge", "delete_branch_after_merge": true}), "branches.allow"},
		{"repoMergePullRequest", with(args{"index": 9, "do": "merge"}), "branches.allow"},
		{"repoUpdatePullRequest", with(args{"index": 3}), "branches.allow"},
		{"repoUpdatePullRequest", with(args{"index": 2}), ""},
		{"repoUpdatePullRequest", with(args{"index": 5}), "branches.allow"},
		{"repoEditPullRequest", with(args{"index": 2, "base": "main"}), "branches.allow"},
		{"repoEditPullRequest", with(args{"index": 2, "title": "t"}), ""},
		{"repoCreatePullRequest", with(args{"title": "t", "base": "main", "head": "ai/x"}), ""},
		{"repoCreateBranch", with(args{"new_branch_name": "ai/y", "old_ref_name": "main"}), ""},
		{"repoCreateBranch", with(args{"new_branch_name": "y"}), "branches.allow"},
		{"repoDeleteBranch", with(args{"branch": "main"}), "branches.allow"},
		{"repoDeleteBranch", with(args{"branch": "ai/x"}), ""},
		{"repoRenameBranch", with(args{"branch": "ai/x", "name": "main2"}), "branches.allow"},
		{"repoRenameBranch", with(args{"branch": "main", "name": "ai/x"}), "branches.allow"},
		{"repoUpdateBranch", with(args{"branch": "main", "new_commit_id": "0000000000000000000000000000000000000000"}), "branches.allow"},
		{"repoCreateBranchProtection", with(args{"rule_name": "ai/x"}), ""},
		{"repoCreateBranchProtection", with(args{"rule_name": "ai/*"}), "branches.allow"},
		{"repoEditBranchProtection", with(args{"name": "main", "enable_push": true}), "branches.allow"},
		{"repoDeleteBranchProtection", with(args{"name": "main"}), "branches.allow"},
		{"repoUpdateBranchProtectionPriories", with(args{"ids": []any{1}}), "branches.allow"},
		{"repoCreateRelease", with(args{"tag_name": "ai/v1"}), "branches.allow"}, // of the default branch
		{"repoCreateRelease", with(args{"tag_name": "ai/v1", "target_commitish": "ai/x"}), ""},
		{"repoCreateRelease", with(args{"tag_name": "ai/v1", "target_commitish": "main"}), "branches.allow"},
		{"repoCreateRelease", with(args{"tag_name": "v1", "target_commitish": "ai/x"}), "branches.allow"},
		{"repoCreateRelease", with(args{"tag_name": "ai/v1", "target_commitish": "0123456789abcdef0123456789abcdef01234567"}), "branches.allow"},
		{"repoEditRelease", with(args{"id": 1, "draft": false}), "branches.allow"},
		{"repoEditRelease", with(args{"id": 2, "draft": false}), ""},
		{"repoEditRelease", with(args{"id": 1, "body": "notes"}), ""},
		{"repoCreateTag", with(args{"tag_name": "main", "target": "ai/x"}), "branches.allow"},
		{"repoCreateTag", with(args{"tag_name": "ai/v1", "target": "main"}), "branches.allow"},
		{"repoCreateTag", with(args{"tag_name": "ai/v1", "target": "ai/x"}), ""},
		{"repoDeleteTag", with(args{"tag": "v1"}), "branches.allow"},
		{"repoDeleteReleaseByTag", with(args{"tag": "v1"}), ""},
		{"repoEdit", with(args{"default_branch": "ai/x"}), "branches.allow"},
		{"repoEdit", with(args{"description": "d"}), ""},
		{"repoMirrorSync", with(), "branches.allow"},
		{"repoCreateKey", with(args{"title": "t", "key": "ssh-ed25519 AAAA"}), "branches.allow"}, // git would push anywhere
		{"repoMergeUpstream", with(args{"branch": "main"}), "branches.allow"},
		{"issueCreateIssue", with(args{"title": "t", "ref": "main"}), ""},
		{"repoGetBranch", with(args{"branch": "main"}), ""},
	})
	check(t, rules(t, branches(nil, nil, true)), []decision{
		{"repoCreateFile", file(nil), "branches.protect_default"},
		{"repoCreateFile", file(args{"branch": "main"}), "branches.protect_default"},
		{"repoCreateFile", file(args{"branch": "Main"}), "branches.protect_default"},
		{"repoCreateFile", file(args{"branch": "refs/heads/main"}), "branches.protect_default"},
		{"repoCreateFile", file(args{"branch": "dev"}), ""},
		{"repoMergePullRequest", with(args{"index": 1, "do": "merge"}), "branches.protect_default"},
		{"repoUpdatePullRequest", with(args{"index": 4}), "branches.protect_default"},
		{"repoDeleteBranch", with(args{"branch": "main"}), "branches.protect_default"},
	})
}

// TestPaths is case 4 of the policy cases: code that CI runs is a file like any
// other, and a rule on paths closes it.
func TestPaths(t *testing.T) {
	t.Parallel()
	write := func(path string, more ...args) args {
		return with(append([]args{{"filepath": path, "content_text": "x", "message": "m", "branch": "b"}}, more...)...)
	}
	check(t, rules(t, paths(nil, []string{".gitea/workflows/**", ".github/workflows/**", "**/Makefile"})), []decision{
		{"repoCreateFile", write("docs/a.md"), ""},
		{"repoCreateFile", write(".gitea/workflows/ci.yaml"), "paths.deny[0]"},
		{"repoCreateFile", write(".Gitea/Workflows/ci.yaml"), "paths.deny[0]"},
		{"repoCreateFile", write(".github/workflows/deep/er/ci.yaml"), "paths.deny[1]"},
		{"repoCreateFile", write("Makefile"), "paths.deny[2]"},
		{"repoCreateFile", write("a/b/makefile"), "paths.deny[2]"},
		{"repoCreateFile", write("x/../.gitea/workflows/ci.yaml"), "paths.deny"},
		{"repoCreateFile", write(".gitea//workflows/ci.yaml"), "paths.deny"},
		{"repoCreateFile", write("/.gitea/workflows/ci.yaml"), "paths.deny"},
		{"repoCreateFile", write(`.gitea\workflows\ci.yaml`), "paths.deny"},
		{"repoUpdateFile", write("docs/a.md", args{"sha": "x", "from_path": ".gitea/workflows/ci.yaml"}), "paths.deny[0]"},
		{"repoChangeFiles", with(args{"message": "m", "files": []any{args{"operation": "create", "path": "a", "content": "eA=="},
			args{"operation": "create", "path": ".gitea/workflows/x.yml", "content": "eA=="}}}), "paths.deny[0]"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents", "body": args{"message": "m", "FILES": []any{args{"operation": "create", "path": ".gitea/workflows/x.yml"}}}}, "arguments"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents", "body": args{"message": "m", "files": []any{args{"operation": "create", "path": "a", "PATH": ".gitea/workflows/x.yml"}}}}, "paths.deny"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents", "body": args{"message": "m", "files": []any{args{"operation": "update", "path": "a", "fromPath": ".gitea/workflows/x.yml"}}}}, "paths.deny"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents", "body": args{"message": "m", "files": []any{args{"operation": "create", "path": ".gitea/workflows/x.yml"}}}}, "paths.deny[0]"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents", "body": args{"message": "m", "files": args{"path": "x"}}}, "paths.deny"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/.gitea/workflows/x.yml", "body": args{"message": "m", "content": "eA=="}}, "paths.deny[0]"},
		{"repoApplyDiffPatch", with(args{"content": "x", "message": "m"}), "paths.deny"},
		{"repoGetContents", with(args{"filepath": ".gitea/workflows/ci.yaml"}), ""},
		{"userCurrentPostKey", args{"title": "t", "key": "ssh-ed25519 AAAA"}, "paths.deny"},
	})
	check(t, rules(t, paths([]string{"docs/**"}, nil)), []decision{
		{"repoCreateFile", write("docs/a/b.md"), ""},
		{"repoCreateFile", write("Docs/a.md"), "paths.allow"},
		{"repoCreateFile", write("docs"), "paths.allow"},
		{"repoDeleteFile", with(args{"filepath": "main.go", "sha": "x", "message": "m", "branch": "b"}), "paths.allow"},
	})
}

// TestBudgets: how much one write may carry.
func TestBudgets(t *testing.T) {
	t.Parallel()
	long, short := strings.Repeat("x", 11), strings.Repeat("x", 10)
	file := func(more args) args { return with(args{"filepath": "a", "message": "m"}, more) }
	check(t, rules(t, func(p *config.Policy) {
		p.Budgets = config.Budgets{MaxFileBytes: 20, MaxBodyBytes: 10, MaxBatch: 2}
	}), []decision{
		{"issueCreateIssue", with(args{"title": "t", "body": short}), ""},
		{"issueCreateIssue", with(args{"title": "t", "body": long}), "budgets.max_body_bytes"},
		{"issueCreateIssue", with(args{"title": "t", "labels": []any{1, 2, 3}}), "budgets.max_batch"},
		{"repoCreateFile", file(args{"content_text": strings.Repeat("x", 20)}), ""},
		{"repoCreateFile", file(args{"content_text": strings.Repeat("x", 21)}), "budgets.max_file_bytes"},
		{"repoCreateFile", file(args{"content": "MDEyMzQ1Njc4OTAxMjM0NTY3ODk="}), ""}, // 20 bytes
		{"repoCreateFile", file(args{"content": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkw"}), "budgets.max_file_bytes"},
		{"repoCreateFile", file(args{"content": "MDEyMzQ1Njc4OTAxMjM0NTY3ODk=", "message": long}), "budgets.max_body_bytes"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/a", "body": args{"content": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkw", "message": "m"}}, "budgets.max_file_bytes"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/contents/a", "body": args{"CONTENT": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkw", "message": "m"}}, "arguments"},
		{"raw", args{"method": "POST", "path": "/repos/acme/web/issues", "body": args{"title": long}}, "budgets.max_body_bytes"},
		{"raw", args{"method": "POST", "path": "/some/thing", "body": args{"title": long}}, "budgets.max_body_bytes"},
		{"issueListIssues", with(args{"q": strings.Repeat("x", 100)}), ""},
	})
}
