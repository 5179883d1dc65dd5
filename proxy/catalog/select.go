package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"aegis/config"
	"aegis/proxy"
)

// Problem is something in config.Tools that does not mean what its author
// thinks.
type Problem struct {
	// Path is the key below the tools block, such as "toolsets[1]".
	Path string
	// Message says what is wrong and what to do.
	Message string
	// Warning marks problems that need not stop the start.
	Warning bool
}

// Selection is what one team may use of a [Set]. It never changes. A reload makes new ones;
// calls under way go on with the one that they began with.
type Selection struct {
	set     *Set
	mode    string
	raw     *proxy.Tool // nil when switched off
	open    bool        // the raw tool reaches routes that the catalog lacks
	enabled map[string]*proxy.Tool
	names   []string // of enabled, sorted
	pinned  map[string]bool
	sudo    func() []*proxy.Tool // made by the first identity that may act as others
}

// rules are the filters, ready to decide. They decide about one tool at a time and know
// nothing of the set, so the same decision serves lists, look-ups and warnings.
type rules struct {
	toolsets        []func(*proxy.Tool) bool
	enable, disable []string
	readOnly        bool
	maxRisk         proxy.Risk
	raised          map[string]proxy.Risk // max_risk of single tools
}

// allow is the one decision about a tool. read_only and max_risk win over everything, then
// disable, then enable, then the toolsets. With enable and no toolsets, only what enable
// names is allowed. What forbids comes first, so that no order of entries in the file opens
// what one of them closes.
func (r *rules) allow(t *proxy.Tool) bool {
	switch {
	case r.readOnly && !t.ReadOnly, t.Risk > max(r.maxRisk, r.raised[t.Name]), matchAny(r.disable, t.Name):
		return false
	case matchAny(r.enable, t.Name):
		return true
	case len(r.toolsets) == 0:
		return len(r.enable) == 0
	}
	return slices.ContainsFunc(r.toolsets, func(has func(*proxy.Tool) bool) bool { return has(t) })
}

// Select applies the filters of a team. The selection is usable even with
// problems, then without what they are about; a caller refuses to start unless
// all of them are warnings.
func (s *Set) Select(cfg config.Tools) (*Selection, []Problem) {
	c := checker{set: s}
	r := rules{readOnly: cfg.ReadOnly, maxRisk: proxy.R4}
	if cfg.MaxRisk != "" {
		risk, ok := proxy.ParseRisk(cfg.MaxRisk)
		if !ok {
			c.add("max_risk", "unknown risk class; use R0, R1, R2, R3 or R4")
		}
		r.maxRisk = risk // R0 when unknown: the strictest
	}
	r.raised = c.raised(cfg.AllowRiskByTool)
	for i, name := range cfg.Toolsets {
		r.toolsets = append(r.toolsets, c.toolset(fmt.Sprintf("toolsets[%d]", i), name))
	}
	r.enable = c.globs("enable", cfg.Enable)
	r.disable = c.globs("disable", cfg.Disable)
	sel := &Selection{
		set: s, mode: cmp.Or(cfg.Mode, "full"), enabled: map[string]*proxy.Tool{}, pinned: map[string]bool{},
	}
	sel.sudo = sync.OnceValue(sel.sudoTools)
	for _, t := range s.tools {
		if r.allow(t) {
			sel.enabled[t.Name] = t
			sel.names = append(sel.names, t.Name)
		}
	}
	sel.hideReferences()
	c.shadowed(cfg.Enable, &r)
	// The raw tool reaches what is enabled, so a toolset that lacks it does not take it
	// away; disable does.
	if cfg.Raw && !matchAny(r.disable, rawName) {
		sel.raw = rawTool(cfg.ReadOnly, r.maxRisk)
		// Gitea serves some operations on further, undocumented routes. Where
		// anything is switched off, a route that is not in the catalog is too.
		sel.open = s.bind.Owner == "" && len(cfg.Toolsets)+len(cfg.Enable)+len(cfg.Disable) == 0 &&
			!cfg.ReadOnly && r.maxRisk == proxy.R4
	}
	for i, name := range cfg.Pinned {
		sel.pin(&c, fmt.Sprintf("pinned[%d]", i), name)
	}
	// An endpoint without a tool is a mistake, unless another problem has already said
	// so.
	if len(sel.enabled) == 0 && !slices.ContainsFunc(c.problems, func(p Problem) bool { return !p.Warning }) {
		c.add("toolsets", "no tool is left with these filters; widen toolsets, enable, max_risk or read_only")
	}
	return sel, c.problems
}

// pin marks a tool that search mode lists too. A pin enables nothing: the list of search
// mode would otherwise be a way around the filters.
func (sel *Selection) pin(c *checker, at, name string) {
	wire := wireName(name)
	switch {
	case wire == rawName && sel.raw != nil:
	case sel.enabled[wire] != nil:
		sel.pinned[wire] = true
	case c.set.byName[wire] != nil || c.set.outside[wire] || wire == rawName:
		c.add(at, "the tool is not enabled, so it cannot be pinned; enable it or remove the pin")
	default:
		c.unknownTool(at, name)
	}
}

// checker gathers problems. All of them are reported at once, each with its key, before
// anything listens.
type checker struct {
	set      *Set
	problems []Problem
}

// add notes a problem that stops the start.
func (c *checker) add(at, message string) {
	c.problems = append(c.problems, Problem{Path: at, Message: message})
}

// unknown reports a name that means nothing, with what may have been meant, or
// else where to find what there is.
func (c *checker) unknown(at, what, name, near, otherwise string) {
	if near != "" {
		otherwise = fmt.Sprintf("did you mean %q?", near)
	}
	c.add(at, fmt.Sprintf("unknown %s %q; %s", what, name, otherwise))
}

// unknownTool reports a name, or a glob, that no tool has.
func (c *checker) unknownTool(at, name string) {
	c.unknown(at, "tool", name, config.Nearest(wireName(name), c.set.names()), `"aegis tools" lists them`)
}

// raised returns the tools whose max_risk is higher than that of all.
func (c *checker) raised(entries map[string]string) map[string]proxy.Risk {
	out := map[string]proxy.Risk{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		at, wire := "allow_risk_by_tool."+name, wireName(name)
		risk, ok := proxy.ParseRisk(entries[name])
		switch {
		case !ok:
			c.add(at, "unknown risk class; use R0, R1, R2, R3 or R4")
		case c.set.outside[wire]: // a list from the top of the file, for other teams too
		case c.set.byName[wire] == nil:
			c.unknownTool(at, name)
		// Of two spellings of one name the higher class counts.
		default:
			out[wire] = max(risk, out[wire])
		}
	}
	return out
}

// toolset returns the decision of a domain or preset. An unknown name selects
// nothing.
func (c *checker) toolset(at, name string) func(*proxy.Tool) bool {
	if p, ok := presets()[name]; ok {
		return p.has
	}
	if slices.Contains(Toolsets(), name) {
		return func(t *proxy.Tool) bool { return t.Domain == name }
	}
	c.unknown(at, "toolset", name, config.Nearest(name, Toolsets()), "use one of "+strings.Join(Toolsets(), ", "))
	return func(*proxy.Tool) bool { return false }
}

// globs checks the entries of enable or disable and returns them as globs of wire names.
// One that matches nothing is a mistake: disable with a misspelled name would leave on what
// was to be off.
func (c *checker) globs(key string, entries []string) []string {
	var out []string
	for i, e := range entries {
		at, g := fmt.Sprintf("%s[%d]", key, i), wireName(e)
		matches := func(name string) bool { return matchAny([]string{g}, name) }
		_, err := path.Match(g, "")
		switch {
		case err != nil:
			c.add(at, fmt.Sprintf("%q is no glob; * stands for any characters, ? for one", e))
		case g == rawName, slices.ContainsFunc(c.set.names()[1:], matches),
			slices.ContainsFunc(slices.Collect(maps.Keys(c.set.outside)), matches): // of teams without the binding
			out = append(out, g)
		default:
			c.unknownTool(at, e)
		}
	}
	return out
}

// shadowed warns of entries of enable without effect. A warning only, as one file serves
// teams of different classes.
func (c *checker) shadowed(entries []string, r *rules) {
	for i, e := range entries {
		g := wireName(e)
		matched, left := 0, 0
		for _, t := range c.set.tools {
			if matchAny([]string{g}, t.Name) {
				matched++
				if r.allow(t) {
					left++
				}
			}
		}
		if matched > 0 && left < matched {
			what := "disable, read_only or max_risk wins over it"
			if left > 0 {
				what = fmt.Sprintf("%d of its %d tools stay off: %s", matched-left, matched, what)
			}
			c.problems = append(c.problems, Problem{Path: fmt.Sprintf("enable[%d]", i), Message: what, Warning: true})
		}
	}
}

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

// wireName turns a canonical name or glob (gitea.issue.list_comments) into that of the
// wire; anything else stays. Both spellings are in documents of MCP clients, so the
// configuration takes either.
func wireName(name string) string {
	if strings.HasPrefix(name, "gitea.") {
		return strings.ReplaceAll(name, ".", "_")
	}
	return name
}
