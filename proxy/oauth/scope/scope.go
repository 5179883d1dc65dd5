// Package scope knows the scopes of Gitea: words such as write:issue, each a [Level] in one area.
// Write includes read of the same area, and nothing else is implied. Gitea grants everything
// for a word that it does not know, so there are none but its own.
//
// A new area is also in oauth/scope.go (what people read), the patterns of config/oauth.go,
// spec/scopes.yaml (which operations need it) and fakegitea/scopes.go.
package scope

import (
	"cmp"
	"slices"
	"strings"
)

// Level is what a scope permits in one area.
type Level uint8

// The levels, each with those before it.
const (
	None Level = iota
	Read
	Write
)

// The areas: Gitea's scope categories (models/auth/access_token_scope.go, the same from 1.23 on),
// in the order in which people see them. They index a [Set].
const (
	Repository = iota
	Issue
	Notification
	Package
	Organization
	User
	Misc
	ActivityPub
	Admin
	// Areas is how many there are.
	Areas
)

// areas are Gitea's words for the areas.
var areas = [Areas]string{
	"repository", "issue", "notification", "package", "organization", "user", "misc", "activitypub", "admin",
}

// verbs are Gitea's words for the levels; there is none for [None].
var verbs = [...]string{None: "", Read: "read", Write: "write"}

// Area returns Gitea's word for an area, which must be one of the constants.
func Area(i int) string { return areas[i] }

// Names returns the words of all areas in the order of the alphabet, as Gitea lists them.
func Names() []string { return slices.Sorted(slices.Values(areas[:])) }

// Parse takes a word of Gitea's apart; ok is false for any other.
func Parse(word string) (area int, l Level, ok bool) {
	verb, name, _ := strings.Cut(word, ":")
	i, area := slices.Index(verbs[:], verb), slices.Index(areas[:], name)
	if i <= int(None) || area < 0 {
		return 0, None, false
	}
	return area, Level(i), true
}

// word is the inverse of Parse.
func word(area int, l Level) string {
	return verbs[l] + ":" + areas[area]
}

// Set is what a list of scopes permits, by area.
type Set [Areas]Level

// Of reads scopes and skips words that are none.
func Of(words []string) (s Set) {
	for _, w := range words {
		s.Add(w)
	}
	return s
}

// Add adds a word of Gitea's and reports whether it is one.
func (s *Set) Add(word string) bool {
	i, l, ok := Parse(word)
	if ok {
		s[i] = max(s[i], l)
	}
	return ok
}

// Words returns the set in Gitea's words, write standing for read too, in the order of [Names].
func (s Set) Words() (words []string) {
	for i, l := range s {
		if l != None {
			words = append(words, word(i, l))
		}
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(after(a), after(b)) })
	return words
}

func after(word string) string { return word[strings.IndexByte(word, ':'):] }

// Within returns what of s t permits as well.
func (s Set) Within(t Set) Set {
	for i := range s {
		s[i] = min(s[i], t[i])
	}
	return s
}

// Beyond returns what of s t does not permit.
func (s Set) Beyond(t Set) Set {
	for i := range s {
		if s[i] <= t[i] {
			s[i] = None
		}
	}
	return s
}

// Within returns the scopes of words that allowed permits: a word that goes too far is replaced
// by what is left of it, a word that is none is dropped. Each comes once, in the order of the
// areas, read before write. The list is never nil.
func Within(words []string, allowed Set) []string {
	var has [Areas][Write + 1]bool
	for _, w := range words {
		if i, l, ok := Parse(w); ok {
			has[i][min(l, allowed[i])] = true
		}
	}
	kept := []string{}
	for i := range has {
		for _, l := range []Level{Read, Write} {
			if has[i][l] {
				kept = append(kept, word(i, l))
			}
		}
	}
	return kept
}

// Union returns both lists' scopes, each once, in the order of the areas.
func Union(a, b []string) []string {
	all := slices.Concat(a, b)
	return Within(all, Of(all))
}

// Covers reports whether the scopes in have permit all of need. A word that is no scope is
// permitted by itself alone.
func Covers(have, need []string) bool {
	return !slices.ContainsFunc(need, func(n string) bool {
		area, reads := strings.CutPrefix(n, "read:")
		return !slices.Contains(have, n) && !(reads && slices.Contains(have, "write:"+area))
	})
}

// Missing returns what of need have does not permit, each word once.
func Missing(have, need []string) (list []string) {
	for _, n := range need {
		if !Covers(have, []string{n}) && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// Narrow returns what of the asked scopes was granted: of write where only read was granted,
// read is left. When nothing of it was granted, which clients that ask for words of other
// servers run into, it returns all that was granted; the answer names them.
func Narrow(granted, asked []string) (left []string) {
	for _, a := range asked {
		if area, writes := strings.CutPrefix(a, "write:"); writes && !slices.Contains(granted, a) {
			a = "read:" + area
			if !slices.Contains(granted, a) {
				continue
			}
		}
		if Covers(granted, []string{a}) && !slices.Contains(left, a) {
			left = append(left, a)
		}
	}
	if left == nil {
		return append([]string{}, granted...)
	}
	return left
}
