package policy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy"
)

const suite = `
login: alice
repositories:
  acme/web: {default_branch: main}
pulls:
  Acme/web#7: {base: main, head: ai/x, head_repo: acme/web}
releases:
  acme/web#2: {tag: v1, target: main}
calls:
  - name: write to the default branch
    team: robots
    tool: gitea_contents_create_file
    args: {owner: acme, repo: web, filepath: a.txt, content_text: x, message: m}
    expect: deny
    rule: branches
  - team: robots
    tool: gitea_contents_create_file
    args: {owner: acme, repo: web, filepath: a.txt, content_text: x, message: m, branch: ai/x}
    expect: allow
  - team: robots
    tool: gitea_pull_merge
    args: {owner: acme, repo: web, index: 7, do: merge}
    expect: deny
    rule: branches.allow
  - team: robots
    tool: gitea_release_edit
    args: {owner: acme, repo: web, id: 2, draft: false}
    expect: deny
  - team: robots
    tool: gitea_nothing
    expect: deny
    rule: tools
  - team: robots
    tool: gitea_issue_get
    args: {owner: acme}
    expect: deny
    rule: arguments
  - tool: gitea_issue_get
    args: {owner: acme, repo: web, index: 1}
    expect: allow
`

func endpoints(t testing.TB) func(string) (policy.Endpoint, bool) {
	set := builtin(t)
	sel, problems := set.Select(config.Default().Tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return func(name string) (policy.Endpoint, bool) {
		e := policy.Endpoint{Catalog: sel.Stage(), Operations: set.Tools()}
		if name == "robots" {
			e.Rules.Branches.Allow = []string{"ai/**"}
			e.Confirms = func(c *proxy.Call) bool { return c.Tool.Name == "gitea_issue_create" }
		}
		return e, name == "" || name == "robots"
	}
}

// TestSuite runs a file of calls, and one whose expectations are all wrong.
func TestSuite(t *testing.T) {
	t.Parallel()
	s, err := policy.ParseSuite([]byte(suite))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Run(t.Context(), endpoints(t)) {
		if !o.OK || o.Err != nil {
			t.Errorf("%s: want %s, got %v, %v", o.Name, o.Want, o.Got, o.Err)
		}
	}
	swap := strings.NewReplacer("expect: deny\n    rule: branches", "expect: allow\n    name: branches",
		"expect: deny", "expect: allow", "expect: allow", "expect: deny", "rule:", "login:")
	if s, err = policy.ParseSuite([]byte(strings.ReplaceAll(swap.Replace(suite), "    name: branches\n",
		"\n"))); err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Run(t.Context(), endpoints(t)) {
		if o.OK {
			t.Errorf("%s: %v is taken for %s", o.Name, o.Got, o.Want)
		}
	}
	if s, err = policy.ParseSuite([]byte("calls: [{team: nobody, tool: x, expect: deny}]")); err != nil {
		t.Fatal(err)
	}
	if o := s.Run(t.Context(), endpoints(t)); o[0].OK || o[0].Err == nil {
		t.Errorf("a team that there is not: %+v", o)
	}
}

// TestSuiteKnowsConfirmations: a call that waits for a person is neither allowed nor
// denied, and a denied one is not asked about.
func TestSuiteKnowsConfirmations(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]string{
		"confirm": `team: robots, tool: gitea_issue_create, args: {owner: acme, repo: web, title: x}`,
		"allow":   `tool: gitea_issue_create, args: {owner: acme, repo: web, title: x}`,
		"deny":    `team: robots, tool: gitea_issue_create, args: {}`,
	} {
		for _, expect := range []string{"allow", "confirm", "deny"} {
			s, err := policy.ParseSuite([]byte("calls: [{" + call + ", expect: " + expect + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			if o := s.Run(t.Context(), endpoints(t))[0]; o.OK != (want == expect) {
				t.Errorf("%s, expected %s: %v", call, expect, o.Got)
			}
		}
	}
}

func TestSuiteIsStrict(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"unknown key": "calls: [{tool: x, expect: deny, wants: y}]", "no calls": "login: a", "empty": "",
		"two documents": "calls: [{tool: x, expect: deny}]\n---\ncalls: []", "no tool": "calls: [{expect: deny}]", "odd expectation": "calls: [{tool: x, expect: maybe}]",
		"rule of an allowed call": "calls: [{tool: x, expect: allow, rule: repos}]", "no YAML": "calls: [",
	} {
		if _, err := policy.ParseSuite([]byte(text)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestTry explains one call.
func TestTry(t *testing.T) {
	t.Parallel()
	e, _ := endpoints(t)("robots")
	v, err := policy.Try(t.Context(), e, nil, policy.Request{Tool: "gitea_contents_create_file",
		Args: json.RawMessage(`{"owner":"acme","repo":"web","filepath":"a","content_text":"x","message":"m","branch":"main"}`)})
	if err != nil || v.Allowed || v.Rule != "branches.allow" ||
		!strings.HasPrefix(v.String(), "deny by branches.allow: ") {
		t.Errorf("%v, %v", v, err)
	}
	e.Rules.Repos.Deny = []string{strings.Repeat("x", 1000)}
	if _, err := policy.Try(t.Context(), e, nil, policy.Request{Tool: "x"}); err == nil ||
		!strings.Contains(err.Error(), "repos.deny[0]") {
		t.Errorf("a pattern that is none: %v", err)
	}
}

// TestTheManualsSuiteWorks: the example of docs/teams.md is a suite.
func TestTheManualsSuiteWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/teams.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n# policy-test.yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(examples) != 1 {
		t.Fatalf("%d examples", len(examples))
	}
	s, err := policy.ParseSuite(examples[0][1])
	if err != nil {
		t.Fatal(err)
	}
	set := builtin(t)
	bound, err := set.Bind(config.Bind{Owner: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	sel, problems := bound.Select(config.Default().Tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var rules config.Policy
	rules.Bind.Owner = "acme"
	rules.Branches = config.BranchRules{Allow: []string{"ai/**"}}
	rules.Paths.Deny = []string{".gitea/workflows/**", ".github/workflows/**"}
	for _, o := range s.Run(t.Context(), func(string) (policy.Endpoint, bool) {
		return policy.Endpoint{Catalog: sel.Stage(), Operations: bound.Tools(), Rules: rules}, true
	}) {
		if !o.OK {
			t.Errorf("%s: want %s, got %v %v", o.Name, o.Want, o.Got, o.Err)
		}
	}
}
