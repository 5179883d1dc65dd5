package policy_test

import (
	"strings"
	"testing"

	"aegis/proxy/policy"
)

// TestLinksInTexts: Gitea marks the issue that a link leads to, whatever the
// link's scheme, and without a host too. Each of these texts, written into an
// issue of an allowed repository, would leave a mark in a hidden one.
func TestLinksInTexts(t *testing.T) {
	t.Parallel()
	set := builtin(t).Tools()
	for _, hosts := range [][]string{nil, {"git.example"}} {
		p, err := policy.New(rules(t, repos([]string{"acme/*"}, nil)), policy.Options{Operations: set, Hosts: hosts})
		if err != nil {
			t.Fatal(err)
		}
		tr := newTrial(t, rules(t, repos([]string{"acme/*"}, nil)), world{})
		tr.ready = p
		for _, body := range []string{
			"[x](/other/secret/issues/3)", "[x]( </other/secret/issues/3> )", "[x](\n/other/secret/pulls/3)",
			"> [x](\n> /other/secret/issues/3)", "[x]\n\n[x]: /other/secret/issues/3", "[x]:\n  </other/secret/issues/3>",
			"[x](//git.example/other/secret/issues/3)", "<ftp://git.example/other/secret/issues/3>",
			"[x](http:/other/secret/issues/3)", "<foo:/other/secret/issues/3>", "[x](foo:///other/secret/issues/3)", "[x](foo://@/other/secret/issues/3)",
			"[a]: <foo:/other/secret/issues/3>\n\n[a]", "https://git.example/other/secret/issues/3", "HTTPS://me@GIT.example/other/secret/pulls/3",
			"http://a.example/(http://git.example/other/secret/issues/3)", "foo://a.example/x*http://git.example/other/secret/issues/3",
			"//a.example/" + strings.Repeat("x/", 2000) + " [x](/other/secret/issues/3)",
		} {
			if v := tr.try("issueCreateIssue", with(args{"title": "t", "body": body})); v.Rule != "repos.allow" {
				t.Errorf("hosts %v, %.60q: %v", hosts, body, v)
			}
		}
		for _, body := range []string{
			"[x](/acme/web/issues/3)", "[x](issues/3)", "[x](../issues/3)", "GET /api/v1/issues/3", "see docs/x/issues/3", "a // b/c/issues/3",
			"<b>x</b> C:/x/y/issues/3", "https://git.example/acme/api/pulls/3",
		} {
			if v := tr.try("issueCreateIssue", with(args{"title": "t", "body": body})); !v.Allowed {
				t.Errorf("hosts %v, %q is refused: %v", hosts, body, v)
			}
		}
	}
}
