package catalog

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"aegis/proxy"
)

// phraseShare is what the phrase that a tool is asked for with counts, against the
// words one by one.
const phraseShare = 1.7

// Factors: a tool about somebody's things that the question does not name, one
// about others' things than it names, one that writes when something is to be read
// or the other way round, and one that many need.
const (
	unsaidScope  = 0.85
	otherScope   = 0.75
	againstGrain = 0.85
	commonTool   = 1.05
)

// hit is one result of a search.
type hit struct {
	*doc
	score float64
}

// search ranks the tools for which keep holds. Equal scores are ordered by name, so the
// same question always has the same answer. Words rank by what tools have in common with
// the question, phrases by how people ask for them; each finds what the other misses.
func (ix *index) search(text string, keep func(*proxy.Tool) bool) []hit {
	q := ix.parse(text)
	scores := make([]float64, len(ix.docs))
	for _, word := range slices.Sorted(maps.Keys(q.terms)) {
		list := ix.terms[word]
		idf := math.Log(1 + (float64(len(ix.docs))-float64(len(list))+0.5)/(float64(len(list))+0.5))
		for _, p := range list {
			d := &ix.docs[p.doc]
			scores[p.doc] += q.terms[word] * idf * p.count * (bm25K + 1) / (p.count + bm25K*(1-bm25B+bm25B*d.length))
		}
	}
	if len(q.terms) == 0 && q.acted {
		for i := range ix.docs {
			scores[i] = ix.docs[i].verbFit(&q) // "delete everything" is all about the verb
		}
	}
	var hits []hit
	top := 0.0
	for i := range scores {
		d := &ix.docs[i]
		if keep(d.tool) { // what is hidden has no part in anything
			hits = append(hits, hit{d, scores[i] * d.fitness(&q)})
			top = max(top, hits[len(hits)-1].score)
		}
	}
	like := ix.phrases.match(q.said, len(ix.docs))
	named := strings.Fields(text)
	for i := range hits {
		h := &hits[i]
		// So that words and phrases can be weighed against each other.
		if top > 0 {
			h.score /= top
		}
		// The more a phrase is what was asked, the less else there is to guess from.
		scope, alike := h.scope(&q), min(like[h.n], 1)
		h.score = h.score*scope + phraseShare*like[h.n]*(scope+(1-scope)*alike)
		if slices.Contains(named, h.tool.Name) || slices.Contains(named, h.tool.OperationID) {
			// A question that names a tool or an operation is about that one.
			h.score += 1000
		}
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score <= 0 })
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.tool.Name, b.tool.Name))
	})
	return hits
}

// fitness says how well a tool's kind suits the question, as a factor: does it
// do what is asked to what is asked, and to no more than that.
func (d *doc) fitness(q *query) float64 {
	// The wrong verb costs much, but the right thing stays findable.
	f := 0.4 + 0.6*d.verbFit(q)
	covered := 0.0
	for _, w := range d.object {
		covered += min(q.terms[w], 1)
	}
	// A tool about more than was asked for loses for what it adds.
	f *= 0.5 + 0.5*covered/float64(len(d.object))
	if q.terms[d.domain] > 0 {
		f *= 1.1
	}
	if mustBeNamed[d.domain] && q.terms[d.domain] == 0 {
		f *= unnamedDomain
	}
	return f
}

// scope says how well suits whose things a tool is about, and whether it reads or writes,
// as a factor. These are nudges, never filters: whose things are meant is often not said.
func (d *doc) scope(q *query) float64 {
	f := 1.0
	if variants[d.domain] && d.domain != "repository" && q.terms[d.domain] == 0 && !q.mine {
		f *= 0.9
	}
	for _, v := range d.variant {
		switch {
		case q.terms[v] > 0:
			f *= 1.1
		case v != "repository":
			f *= unsaidScope
		}
	}
	if q.terms["organization"] >= 0.7 && !d.about("organization") {
		f *= otherScope
	}
	if q.mine && slices.Contains(d.variant, "my") {
		f *= 1.3
	}
	if q.reads && !d.tool.ReadOnly || q.writes && d.tool.ReadOnly {
		f *= againstGrain
	}
	// Last resorts are still found, behind what works.
	if d.tool.Deprecated {
		f *= 0.4
	}
	if d.tool.BasicAuthOnly {
		f *= 0.8
	}
	if len(d.tool.Example) > 0 {
		f *= commonTool
	}
	return f
}

// about reports whether a tool's name has a word for whose things it is about.
func (d *doc) about(w string) bool {
	return d.domain == w || slices.Contains(d.variant, w) || slices.Contains(d.object, w)
}

// verbFit is 1 when the tool does what the question asks for, less when it does something
// near or else. A verb of the tool's own, such as merge, is found among the words of the
// question.
func (d *doc) verbFit(q *query) float64 {
	if w, ok := q.verbs[d.verb]; ok {
		return w
	}
	if !genericVerbs[d.verb] {
		return min(q.terms[d.verb], 1) * 0.9
	}
	return 0
}

// unnamedDomain is the factor of a tool of a domain that a question would name.
const unnamedDomain = 0.8

// mustBeNamed reports whether who asks for something of a domain says its name:
// files of a package are not just "files", but people do not say "contents".
var mustBeNamed = wordSet("pull packag releas notification project")
