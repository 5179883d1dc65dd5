package catalog

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
	return nearest(name, names), false
}
