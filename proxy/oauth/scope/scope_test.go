package scope_test

import (
	"slices"
	"strings"
	"testing"

	"aegis/proxy/oauth/scope"
)

func list(words string) []string { return strings.Fields(words) }

func TestLists(t *testing.T) {
	t.Parallel()
	granted := list("write:issue read:repository")
	for asked, want := range map[string][3]string{ // within, narrowed, missing
		"":                                {"", "write:issue read:repository", ""},
		"read:issue":                      {"read:issue", "read:issue", ""},
		"write:issue read:issue":          {"read:issue write:issue", "write:issue read:issue", ""},
		"write:repository":                {"read:repository", "read:repository", "write:repository"},
		"read:user write:repository":      {"read:repository", "read:repository", "read:user write:repository"},
		"read:user":                       {"", "write:issue read:repository", "read:user"},
		"openid read: :issue READ:ISSUE":  {"", "write:issue read:repository", "openid read: :issue READ:ISSUE"},
		"read:issue read:issue read:what": {"read:issue", "read:issue", "read:what"},
	} {
		got := [3]string{
			strings.Join(scope.Within(list(asked), scope.Of(granted)), " "),
			strings.Join(scope.Narrow(granted, list(asked)), " "),
			strings.Join(scope.Missing(granted, list(asked)), " "),
		}
		if got != want {
			t.Errorf("%q: %q, want %q", asked, got, want)
		}
		if scope.Covers(granted, list(asked)) != (want[2] == "") {
			t.Errorf("%q: covered and missing differ", asked)
		}
	}
}

// TestSets: what is within and what is beyond make the whole, and words come in Gitea's order.
func TestSets(t *testing.T) {
	t.Parallel()
	names := scope.Names()
	if len(names) != scope.Areas || !slices.IsSorted(names) {
		t.Fatal(names)
	}
	var all []string
	for i := range scope.Areas {
		for verb, level := range map[string]scope.Level{"read:": scope.Read, "write:": scope.Write} {
			word := verb + scope.Area(i)
			if area, l, ok := scope.Parse(word); !ok || area != i || l != level {
				t.Errorf("%s: %d, %d, %v", word, area, l, ok)
			}
			all = append(all, word)
		}
	}
	if got := scope.Of(all).Words(); len(got) != scope.Areas || got[0] != "write:activitypub" || got[8] != "write:user" {
		t.Error(got)
	}
	a, b := scope.Of(list("write:issue read:user")), scope.Of(list("read:issue read:user read:admin"))
	if in, out := a.Within(b).Words(), a.Beyond(b).Words(); strings.Join(in, " ") != "read:issue read:user" || strings.Join(out, " ") != "write:issue" {
		t.Error(in, out)
	}
	if got := scope.Union(list("read:user write:issue"), list("read:issue x")); strings.Join(got, " ") != "read:issue write:issue read:user" {
		t.Error(got)
	}
}
