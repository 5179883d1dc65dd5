package catalog

import "aegis/proxy"

// PresetGlobs returns every glob of every preset.
func PresetGlobs() []string {
	var out []string
	for _, p := range presets() {
		out = append(append(out, p.add...), p.remove...)
	}
	return out
}

// Route returns the name of the tool that the raw tool takes a request for; ""
// for none.
func (s *Set) Route(method, path string) string {
	if t, _ := s.routes().find(method, path); t != nil {
		return t.Name
	}
	return ""
}

// Enabled returns every enabled operation, sorted by name, whether the list
// shows it or not.
func (sel *Selection) Enabled() []*proxy.Tool {
	out := make([]*proxy.Tool, 0, len(sel.names))
	for _, n := range sel.names {
		out = append(out, sel.enabled[n])
	}
	return out
}

// ListEntry returns a tool as [Selection.Cost] counts it.
func ListEntry(t *proxy.Tool) []byte {
	entry, _ := proxy.Encode(t.Entry(true))
	return entry
}
