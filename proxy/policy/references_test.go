package policy_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/policy"
)

// reference is a row of what Gitea 28.1.0 at http://git.example/, or at http://git.example/git/
// when mounted, found in a text: Plain as the title of an issue or the message of a commit,
// Body as the text of an issue. Each is owner/name#index, perhaps with what is done to it.
type reference struct {
	Text        string
	Mounted     bool
	Plain, Body []string
	// Strict says that it is refused although Gitea found no repository but acme/web.
	Strict bool
}

// outside returns the repositories but acme/web that Gitea found.
func (r *reference) outside() (names []string) {
	for _, ref := range slices.Concat(r.Plain, r.Body) {
		name, _, _ := strings.Cut(ref, "#")
		if name != "/" && name != "acme/web" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func tableOfReferences(t testing.TB) (rows []reference) {
	t.Helper()
	file, err := os.Open("testdata/references.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row reference
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) < 100 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	return rows
}

// judge makes a policy of an endpoint whose Gitea is git.example.
func judge(t testing.TB, cfg config.Policy, mounted bool) *policy.Policy {
	t.Helper()
	p, err := policy.New(cfg, policy.Options{Hosts: []string{"git.example"}, Mounted: mounted})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func bound() config.Policy { return config.Policy{Bind: config.Bind{Owner: "acme", Repo: "web"}} }

// TestReferences: whatever Gitea reads as a reference is refused where the repository is
// out of reach, by a binding and by a rule that denies it alone.
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, row := range tableOfReferences(t) {
		names := row.outside()
		if len(names) > 0 && judge(t, bound(), row.Mounted).Refers(row.Text) == "" {
			t.Errorf("mounted %v: %q refers to %v and passes a binding", row.Mounted, row.Text, names)
		}
		for _, name := range names {
			if judge(t, rules(t, repos(nil, []string{name})), row.Mounted).Refers(row.Text) == "" {
				t.Errorf("mounted %v: %q passes a rule that denies %s", row.Mounted, row.Text, name)
			}
		}
	}
}

// TestReferencesHonest: what Gitea does not read as a reference passes, but for what the table marks
// as strict: what it does read in other surroundings, or nobody writes without intent.
func TestReferencesHonest(t *testing.T) {
	t.Parallel()
	for _, row := range tableOfReferences(t) {
		if len(row.outside()) > 0 {
			continue
		}
		if rule := judge(t, bound(), row.Mounted).Refers(row.Text); (rule != "") != row.Strict {
			t.Errorf("mounted %v: %q: %q", row.Mounted, row.Text, rule)
		}
	}
}

// TestReferencesEverywhere: the texts of every kind of write are judged, wherever they are in it.
func TestReferencesEverywhere(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, bound(), world{})
	const attack, safe = "closes other/vault\\\n#1", "closes acme/web\\\n#1"
	file := args{"operation": "create", "path": "a", "content": "eA=="}
	for _, c := range []struct {
		method, path string
		body         func(text string) args
	}{
		{"POST", "issues", func(s string) args { return args{"title": s} }},
		{"POST", "issues", func(s string) args { return args{"title": "t", "body": s} }},
		{"PATCH", "issues/1", func(s string) args { return args{"body": s} }},
		{"POST", "issues/1/comments", func(s string) args { return args{"body": s} }},
		{"PATCH", "issues/comments/1", func(s string) args { return args{"body": s} }},
		{"POST", "pulls", func(s string) args { return args{"title": "t", "head": "x", "base": "main", "body": s} }},
		{"PATCH", "pulls/1", func(s string) args { return args{"title": s} }},
		{"POST", "pulls/1/reviews", func(s string) args { return args{"body": s} }},
		{"POST", "pulls/1/reviews", func(s string) args { return args{"comments": []any{args{"path": "a", "body": s}}} }},
		{"POST", "pulls/1/reviews/1", func(s string) args { return args{"body": s} }},
		{"POST", "pulls/1/merge", func(s string) args { return args{"do": "merge", "merge_message_field": s} }},
		{"POST", "pulls/1/merge", func(s string) args { return args{"do": "squash", "merge_title_field": s} }},
		{"POST", "contents/a", func(s string) args { return args{"content": "eA==", "message": s} }},
		{"DELETE", "contents/a", func(s string) args { return args{"sha": "1", "message": s} }},
		{"POST", "contents", func(s string) args { return args{"files": []any{file}, "message": s} }},
		{"POST", "diffpatch", func(s string) args { return args{"content": "x", "message": s} }},
		{"POST", "releases", func(s string) args { return args{"tag_name": "v1", "body": s} }},
		{"POST", "wiki/new", func(s string) args { return args{"title": "x", "message": s} }},
	} {
		call := func(text string) policy.Verdict {
			return tr.try("raw", args{"method": c.method, "path": "/repos/acme/web/" + c.path, "body": c.body(text)})
		}
		if v := call(attack); v.Allowed || v.Rule != "bind.owner" {
			t.Errorf("%s %s: %+v", c.method, c.path, v)
		}
		if v := call(safe); !v.Allowed {
			t.Errorf("%s %s is refused: %+v", c.method, c.path, v)
		}
	}
	// Gitea puts the names of files and branches into messages of its own.
	for path, body := range map[string]args{
		"contents/x%20other/vault%231": {"content": "eA=="}, "branches": {"new_branch_name": "other/vault#1"},
		"contents": {"files": []any{args{"operation": "create", "path": "x other/vault#1", "content": "eA=="}}},
	} {
		if v := tr.try("raw", args{"method": "POST", "path": "/repos/acme/web/" + path, "body": body}); v.Allowed {
			t.Errorf("%s: %+v", path, v)
		}
	}
}

// TestMergeTemplates: a template of merge messages becomes the message of a later merge, so
// it could close what it may not refer to.
func TestMergeTemplates(t *testing.T) {
	t.Parallel()
	bind, free := newTrial(t, bound(), world{}), newTrial(t, rules(t, branches([]string{"**"}, nil, false)), world{})
	const path = ".gitea/default_merge_message/MERGE_TEMPLATE.md"
	for _, name := range []string{path, "./" + path, "x/../" + path, strings.ToUpper(path)} {
		file := args{"operation": "create", "path": name, "content": "eA=="}
		call := args{"method": "POST", "path": "/repos/acme/web/contents", "body": args{"message": "m", "files": []any{file}}}
		if v := bind.try("raw", call); v.Allowed || v.Rule != "bind.owner" {
			t.Errorf("%s: %+v", name, v)
		}
	}
	for patch, want := range map[string]bool{
		"diff --git a/" + path + " b/" + path + "\n": false, "+++ b/" + path: false,
		"+++ \"b/\\056gitea/default\\137merge_message/MERGE_TEMPLATE.md\"": false,
		"diff --git a/x b/x\n+++ b/x\n+a \"b\"\n":                          true,
	} {
		call := args{"method": "POST", "path": "/repos/acme/web/diffpatch", "body": args{"content": patch}}
		if v := bind.try("raw", call); v.Allowed != want {
			t.Errorf("%q: %+v", patch, v)
		}
	}
	if v := free.try("repoCreateFile", with(args{"filepath": path, "content_text": "x", "message": "m",
		"branch": "x"})); !v.Allowed {
		t.Errorf("without a rule about repositories: %+v", v)
	}
	if v := bind.try("repoCreateFile", with(args{"filepath": "docs/default_merge_message.md", "content_text": "x",
		"message": "m"})); !v.Allowed {
		t.Errorf("another file: %+v", v)
	}
}
