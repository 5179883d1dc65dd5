package catalog

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"aegis/internal/jsonscan"
	"aegis/proxy"
)

// Weights of the places where a word is found, and the constants of BM25.
const (
	weightName        = 3.0
	weightTitle       = 2.5
	weightDescription = 1.0
	weightArgument    = 0.5
	bm25K             = 1.2
	bm25B             = 0.5
)

// Bounds of a question: words that are read, and unknown ones for which
// similar ones are looked for.
const (
	maxWords   = 40
	maxUnknown = 8
)

// index answers free-text questions about tools by BM25 over weighted fields
// (Robertson et al., "Simple BM25 extension to multiple weighted fields").
type index struct {
	docs  []doc
	terms map[string][]posting
	vocab []string // sorted
}

type doc struct {
	tool   *proxy.Tool
	length float64
	words  map[string]bool // of the name
}

// posting is one document that has a term, with the term's weighted count.
type posting struct {
	doc   int
	count float64
}

// get returns the index of tools, building it at the first call.
func (l *lazyIndex) get(tools []*proxy.Tool) *index {
	l.once.Do(func() { l.ix = newIndex(tools) })
	return l.ix
}

func newIndex(tools []*proxy.Tool) *index {
	ix := &index{terms: map[string][]posting{}}
	total := 0.0
	for n, t := range tools {
		counts := map[string]float64{}
		d := doc{tool: t, words: map[string]bool{}}
		for _, w := range words(strings.TrimPrefix(t.Name, "gitea_")) {
			counts[w] += weightName
			d.words[w] = true
		}
		for _, f := range []struct {
			text   string
			weight float64
		}{{t.Title, weightTitle}, {t.Description, weightDescription}, {argumentText(t), weightArgument}} {
			for _, w := range words(f.text) {
				counts[w] += f.weight
			}
		}
		for w, c := range counts {
			d.length += c
			ix.terms[w] = append(ix.terms[w], posting{n, c})
		}
		total += d.length
		ix.docs = append(ix.docs, d)
	}
	for i := range ix.docs {
		ix.docs[i].length /= total / float64(len(tools))
	}
	ix.vocab = sortedKeys(ix.terms)
	return ix
}

// argumentText returns the names and words of a tool's arguments but the ones
// that nearly every tool has.
func argumentText(t *proxy.Tool) string {
	var b strings.Builder
	for name, schema := range jsonscan.Members(jsonscan.Member(t.InputSchema, "properties")) {
		switch n := unquote(name); n {
		case "owner", "repo", "org", "page", "limit", "fields", "cursor":
		default:
			b.WriteString(n + " ")
			if d := jsonscan.Member(schema, "description"); d != nil {
				b.WriteString(unquote(d) + " ")
			}
			b.Write(bytes.ReplaceAll(jsonscan.Member(schema, "enum"), []byte(`"`), []byte(" ")))
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// hit is one result of a search.
type hit struct {
	tool  *proxy.Tool
	score float64
}

// search ranks the tools for which keep holds. Equal scores are ordered by
// name, so the same question always has the same answer.
func (ix *index) search(query string, keep func(*proxy.Tool) bool) []hit {
	scores := make([]float64, len(ix.docs))
	terms := ix.expand(query)
	for _, t := range terms {
		list := ix.terms[t.word]
		idf := math.Log(1 + (float64(len(ix.docs))-float64(len(list))+0.5)/(float64(len(list))+0.5))
		for _, p := range list {
			d := &ix.docs[p.doc]
			scores[p.doc] += t.weight * idf * p.count * (bm25K + 1) / (p.count + bm25K*(1-bm25B+bm25B*d.length))
		}
	}
	asked := map[string]bool{}
	for _, t := range terms {
		asked[t.word] = true
	}
	var hits []hit
	named := strings.Fields(query)
	for i, s := range scores {
		if d := &ix.docs[i]; s > 0 && keep(d.tool) {
			if slices.Contains(named, d.tool.Name) || slices.Contains(named, d.tool.OperationID) {
				s += 1000 // asked for by name
			}
			hits = append(hits, hit{d.tool, s * d.fitness(asked)})
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

// fitness lowers tools that are second choice: deprecated ones, those that no
// token opens, and variants (of the site, an organization, the caller) that the
// question did not ask for.
func (d *doc) fitness(asked map[string]bool) float64 {
	f := 1.0
	if d.tool.Deprecated {
		f *= 0.4
	}
	if d.tool.BasicAuthOnly {
		f *= 0.6
	}
	for _, variant := range []string{"admin", "org", "my", "user"} {
		if d.words[variant] && !asked[variant] {
			f *= 0.8
		}
	}
	// Of two tools with the words of the question, the one whose name says
	// less else is the one that is meant.
	covered := 0
	for w := range d.words {
		if asked[w] {
			covered++
		}
	}
	return f * (1 + 0.5*float64(covered)/float64(len(d.words)))
}

// term is a word of a question with its importance.
type term struct {
	word   string
	weight float64
}

// expand turns a question into terms: its words, what people also call them,
// and the known words that a misspelled one is like.
func (ix *index) expand(query string) []term {
	best := map[string]float64{}
	add := func(w string, weight float64) {
		if weight > best[w] {
			best[w] = weight
		}
	}
	list := words(query)
	list = list[:min(len(list), maxWords)]
	unknown := 0
	for i, w := range list {
		if stopWord(w) {
			continue
		}
		if i+1 < len(list) {
			for _, s := range phrase(w + " " + list[i+1]) {
				add(s, 1)
			}
		}
		synonyms := synonym(w)
		for _, s := range synonyms {
			add(s, 0.7)
		}
		if ix.terms[w] != nil {
			add(w, 1)
		} else if len(synonyms) == 0 && unknown < maxUnknown {
			unknown++
			for _, s := range ix.similar(w) {
				add(s, 0.7)
			}
		}
	}
	terms := make([]term, 0, len(best))
	for _, w := range sortedKeys(best) {
		terms = append(terms, term{w, best[w]})
	}
	return terms
}

// similar returns the known words closest to an unknown one.
func (ix *index) similar(w string) []string {
	limit := 2
	if len(w) >= 7 {
		limit = 3
	}
	if len(w) < 4 || len(w) > 40 {
		return nil
	}
	var out []string
	for _, v := range ix.vocab {
		if v[0] != w[0] { // the first letter is rarely the wrong one
			continue
		}
		switch d := distance(w, v, limit); {
		case d < limit-1:
			limit, out = d+1, append(out[:0], v)
		case d < limit:
			out = append(out, v)
		}
	}
	return out
}
