package build

import (
	"bytes"
	"fmt"
	"slices"

	"aegis/spec"
)

// Encode writes a catalog with one operation, definition and shared argument a
// line. The same catalog gives the same bytes.
func Encode(cat *spec.Catalog) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"version\": %s, \"source\": %s, \"gitea_version\": %s,\n",
		quote(cat.Version), quote(cat.Source), quote(cat.GiteaVersion))
	if err := writeMap(&b, "arguments", cat.Arguments); err != nil {
		return nil, err
	}
	b.WriteString(",\n")
	if err := writeMap(&b, "definitions", cat.Definitions); err != nil {
		return nil, err
	}
	b.WriteString(",\n\"operations\": [\n")
	if err := writeList(&b, cat.Operations); err != nil {
		return nil, err
	}
	b.WriteString("]}\n")
	return b.Bytes(), nil
}

// compare fills the report with what differs from the built-in catalog.
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
