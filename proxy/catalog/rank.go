package catalog

import (
	"math"
	"slices"
	"strings"

	"aegis/proxy"
)

// hit is one result of a search.
type hit struct {
	tool  *proxy.Tool
	score float64
}

// search ranks the tools for which keep holds. Equal scores are ordered by
// name, so the same question always has the same answer.
func (ix *index) search(text string, keep func(*proxy.Tool) bool) []hit {
	q := ix.parse(text)
	scores := make([]float64, len(ix.docs))
	for _, word := range sortedKeys(q.terms) {
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
	named := strings.Fields(text)
	for i, s := range scores {
		d := &ix.docs[i]
		byName := slices.Contains(named, d.tool.Name) || slices.Contains(named, d.tool.OperationID)
		if byName {
			s += 1000
		}
		if s > 0 && keep(d.tool) {
			hits = append(hits, hit{d.tool, s * d.fitness(&q)})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return compareNames(a.tool.Name, b.tool.Name)
	})
	return hits
}

// fitness says how well a tool's kind suits the question, as a factor: does it
// do what is asked to what is asked, and to no more than that.
func (d *doc) fitness(q *query) float64 {
	f := 0.4 + 0.6*d.verbFit(q)
	covered := 0.0
	for _, w := range d.object {
		covered += min(q.terms[w], 1)
	}
	f *= 0.5 + 0.5*covered/float64(len(d.object))
	if q.terms[d.domain] > 0 {
		f *= 1.1
	}
	if isVariant(d.domain) && d.domain != "repository" && q.terms[d.domain] == 0 && !q.mine {
		f *= 0.9
	}
	if mustBeNamed(d.domain) && q.terms[d.domain] == 0 {
		f *= unnamedDomain
	}
	for _, v := range d.variant {
		switch {
		case q.terms[v] > 0:
			f *= 1.1
		case v != "repository":
			f *= 0.75
		}
	}
	if q.mine && slices.Contains(d.variant, "my") {
		f *= 1.3
	}
	if q.reads && !d.tool.ReadOnly || q.writes && d.tool.ReadOnly {
		f *= 0.7
	}
	if d.tool.Deprecated {
		f *= 0.4
	}
	if d.tool.BasicAuthOnly {
		f *= 0.8
	}
	return f
}

// verbFit is 1 when the tool does what the question asks for, less when it does
// something near or else.
func (d *doc) verbFit(q *query) float64 {
	if w, ok := q.verbs[d.verb]; ok {
		return w
	}
	if !genericVerb(d.verb) {
		return min(q.terms[d.verb], 1) * 0.9
	}
	return 0
}

// unnamedDomain is the factor of a tool of a domain that a question would name.
const unnamedDomain = 0.8

// mustBeNamed reports whether who asks for something of a domain says its name:
// files of a package are not just "files", but nobody says "contents".
func mustBeNamed(domain string) bool {
	switch domain {
	case "pull", "packag", "releas", "notification", "project":
		return true
	}
	return false
}
