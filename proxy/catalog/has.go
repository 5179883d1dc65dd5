package catalog

import (
	"slices"

	"aegis/config"
)

// names returns the name of the raw tool and, sorted, those of all others.
func (s *Set) names() []string {
	names := make([]string, 1, len(s.tools)+1)
	names[0] = rawName
	for _, t := range s.tools {
		names = append(names, t.Name)
	}
	return names
}

// Has reports whether the set has a tool called exactly name, and otherwise the
// name that was probably meant, "" when none is close.
func (s *Set) Has(name string) (near string, ok bool) {
	if s.byName[name] != nil {
		return "", true
	}
	return config.Nearest(name, s.names()[1:]), false
}

// Matches reports whether a name or glob, in either spelling of names, is about at
// least one tool of the set, the raw tool included, and otherwise the name that was
// probably meant, "" when none is close.
func (s *Set) Matches(glob string) (near string, ok bool) {
	glob = wireName(glob)
	if slices.ContainsFunc(s.names(), func(name string) bool { return matchAny([]string{glob}, name) }) {
		return "", true
	}
	return config.Nearest(glob, s.names()), false
}
