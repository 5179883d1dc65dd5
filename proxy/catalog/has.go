package catalog

import (
	"path"

	"aegis/config"
)

// Has reports whether the set has a tool called exactly name, and otherwise the
// name that was probably meant, "" when none is close.
func (s *Set) Has(name string) (near string, ok bool) {
	names := make([]string, 0, len(s.tools))
	for _, t := range s.tools {
		if t.Name == name {
			return "", true
		}
		names = append(names, t.Name)
	}
	return config.Nearest(name, names), false
}

// Matches reports whether a name or glob, in either spelling of names, is about at
// least one tool of the set, the raw tool included, and otherwise the name that was
// probably meant, "" when none is close.
func (s *Set) Matches(glob string) (near string, ok bool) {
	glob = wireName(glob)
	names := []string{rawName}
	for _, t := range s.tools {
		names = append(names, t.Name)
	}
	for _, name := range names {
		if ok, err := path.Match(glob, name); ok && err == nil {
			return "", true
		}
	}
	return config.Nearest(glob, names), false
}
