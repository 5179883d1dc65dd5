package build

import (
	"fmt"
	"slices"
	"strings"

	"aegis/spec"
)

// Report says what a build made of an API description.
type Report struct {
	// Built is the number of operations in the catalog.
	Built int
	// Left are operations that no tool could be made of, Notes smaller things
	// that were dropped or derived, each as "METHOD path: reason".
	Left, Notes []string
	// Added are operations that the built-in catalog lacks, Missing are those
	// of the built-in catalog that the description lacks, Changed are those
	// whose arguments differ; all by operation.
	Added, Missing, Changed []string
}

// left notes an operation that no tool is made of.
func (r *Report) left(method, path, reason string) {
	r.Left = append(r.Left, entry(method, path, reason))
}

// note bounds what a hostile description can make the report hold.
func (r *Report) note(method, path, what string) {
	if len(r.Notes) < 10*maxOperations {
		r.Notes = append(r.Notes, entry(method, path, what))
	}
}

func entry(method, path, text string) string {
	return strings.TrimSpace(method+" "+clean(path, 200)) + ": " + text
}

// compare fills the report with what differs from the built-in catalog. It shows an
// operator what another version of Gitea would mean for the tools of a team before the
// catalog is put to use.
func (r *Report) compare(base, cat *spec.Catalog) {
	if base == nil {
		return
	}
	// By route, not by id or name: these are what may have changed.
	have := map[string]*spec.Operation{}
	for i := range cat.Operations {
		o := &cat.Operations[i]
		have[o.Method+" "+o.Path] = o
	}
	want := map[string]bool{}
	for i := range base.Operations {
		o := &base.Operations[i]
		route := o.Method + " " + o.Path
		want[route] = true
		switch other := have[route]; {
		case other == nil:
			r.Missing = append(r.Missing, route)
		case !slices.Equal(wireNames(o), wireNames(other)):
			r.Changed = append(r.Changed, route)
		}
	}
	for _, route := range sortedKeys(have) {
		if !want[route] {
			r.Added = append(r.Added, route)
		}
	}
	slices.Sort(r.Missing)
	slices.Sort(r.Changed)
}

// wireNames lists what an operation takes, as the server calls it: our own names of
// arguments change without the API changing.
func wireNames(o *spec.Operation) []string {
	var out []string
	for i := range o.Params {
		out = append(out, o.Params[i].In+" "+o.Params[i].WireName())
	}
	slices.Sort(out)
	return out
}

// String renders the report for a terminal.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations built, %d left out\n", r.Built, len(r.Left))
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"left out", r.Left},
		{"not in the built-in catalog", r.Added},
		{"only in the built-in catalog", r.Missing},
		{"other arguments than in the built-in catalog", r.Changed},
		{"notes", r.Notes},
	} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s (%d):\n", part.title, len(part.lines))
		for _, l := range part.lines {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	return b.String()
}
