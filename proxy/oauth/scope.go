package oauth

import (
	"slices"
	"strings"
)

// level is what a scope permits in one area: write includes read, and nothing
// else is implied.
type level uint8

const (
	none level = iota
	read
	write
)

// area is one of Gitea's scope categories, in words for people.
type area struct {
	// Word is Gitea's word for it.
	Word string
	// Title names it; Read and Write say what the two levels permit.
	Title, Read, Write string
	// Risky areas are marked.
	Risky bool
}

// areas are Gitea's scope categories in the order in which people see them and
// in which scopes are written.
var areas = []area{
	{Word: "repository", Title: "Repositories", Read: "See code, branches, pull requests, releases and builds", Write: "See and change code, branches, pull requests, releases and builds; create and delete repositories"},
	{Word: "issue", Title: "Issues", Read: "See issues, comments, labels and milestones", Write: "See, write and change issues, comments, labels and milestones"},
	{Word: "notification", Title: "Notifications", Read: "See your notifications", Write: "See your notifications and mark them as read"},
	{Word: "package", Title: "Packages", Read: "See packages", Write: "See, publish and delete packages"},
	{Word: "organization", Title: "Organizations", Read: "See your organizations, teams and their members", Write: "See and change your organizations, teams and their members"},
	{Word: "user", Title: "Your account", Read: "See your profile, e-mail addresses, keys and settings", Write: "See and change your profile, e-mail addresses, keys and settings", Risky: true},
	{Word: "misc", Title: "Helpers", Read: "Use helpers such as templates and text rendering", Write: "Use helpers such as templates and text rendering"},
	{Word: "activitypub", Title: "Federation", Read: "See federation data", Write: "See and send federation data"},
	{Word: "admin", Title: "Administration", Read: "See everything that administrators see", Write: "Administer the whole Gitea server: people, repositories, settings", Risky: true},
}

// parseScope takes one of Gitea's scope words apart; ok is false for any other.
func parseScope(word string) (index int, l level, ok bool) {
	verb, name, _ := strings.Cut(word, ":")
	switch verb {
	case "read":
		l = read
	case "write":
		l = write
	default:
		return 0, none, false
	}
	index = slices.IndexFunc(areas, func(a area) bool { return a.Word == name })
	return index, l, index >= 0
}

func (a area) scope(l level) string {
	if l == write {
		return "write:" + a.Word
	}
	return "read:" + a.Word
}

// levels is what a set of scopes permits, by the index of the area.
type levels [9]level

// levelsOf reads scopes and skips words that are none.
func levelsOf(scopes []string) (have levels) {
	for _, word := range scopes {
		if i, l, ok := parseScope(word); ok {
			have[i] = max(have[i], l)
		}
	}
	return have
}

// within returns the scopes of words that allowed permits: a word that goes too
// far is replaced by what is left of it, a word that is none is dropped. Each
// comes once, in the order of areas, read before write.
func within(words []string, allowed levels) []string {
	var has [len(levels{})][3]bool
	for _, word := range words {
		if i, l, ok := parseScope(word); ok {
			has[i][min(l, allowed[i])] = true
		}
	}
	kept := []string{}
	for i, a := range areas {
		for _, l := range []level{read, write} {
			if has[i][l] {
				kept = append(kept, a.scope(l))
			}
		}
	}
	return kept
}

// Covers reports whether the scopes in have permit all of needs: write includes
// read of the same area. A word that is no scope is permitted by itself alone.
func Covers(have, needs []string) bool {
	for _, need := range needs {
		if !slices.Contains(have, need) && !(strings.HasPrefix(need, "read:") && slices.Contains(have, "write:"+need[len("read:"):])) {
			return false
		}
	}
	return true
}

// union returns both lists' scopes, each once, in the order of areas.
func union(a, b []string) []string {
	everything := levels{}
	for i := range everything {
		everything[i] = write
	}
	return within(slices.Concat(a, b), everything)
}
