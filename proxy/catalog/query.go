package catalog

import "strings"

// Bounds of a question: words that are read, and unknown ones for which
// similar ones are looked for.
const (
	maxWords   = 40
	maxUnknown = 8
)

// query is a question taken apart.
type query struct {
	// terms are the words to look for, with their weights.
	terms map[string]float64
	// verbs are what tools may do to be the answer: 1 is what was asked for.
	verbs map[string]float64
	// acted says that there is a verb, mine that the caller's own things are
	// meant, reads and writes that all verbs only look, or all change something.
	acted, mine, reads, writes bool
}

// parse turns a question into the words of the catalog: its own words, what
// people also call them, and the known words that a misspelled one is like. Verbs
// that half of all tools have (list, create, delete) say little about the thing
// and everything about the tool, so they are kept apart.
func (ix *index) parse(text string) query {
	q := query{terms: map[string]float64{}, verbs: map[string]float64{}}
	list := words(strings.ReplaceAll(text, "'s", ""))
	list = list[:min(len(list), maxWords)]
	p := parser{ix: ix, q: &q, share: 1, several: plural(text)}
	for i, w := range list {
		if i+1 < len(list) {
			for _, s := range phrases[w+" "+list[i+1]] {
				q.addAny(s, p.share)
			}
		}
		if w == "my" && i > 0 && (list[i-1] == "show" || list[i-1] == "giv" || list[i-1] == "tell") {
			continue // "show me"
		}
		if preposition(w) && len(q.terms) > 0 {
			p.share = laterShare
		}
		q.mine = q.mine || w == "my"
		p.verb(list, i)
		if stopWord(w) || verbs[w] != nil && both[w] == nil && synonyms[w] == nil && !ix.verbs[w] {
			continue
		}
		p.thing(w)
	}
	q.acted = p.acted
	q.finish(p.several)
	return q
}

// laterShare is the weight of what stands behind a preposition when something
// stands before it: "labels of this repository" asks for labels.
const laterShare = 0.6

// parser goes through a question word by word.
type parser struct {
	ix      *index
	q       *query
	share   float64 // weight of the things that come now
	acted   bool    // a verb was seen
	several bool    // the question speaks of several things
	unknown int
}

// thing adds what a word may mean.
func (p *parser) thing(w string) {
	share := p.share
	if w == "repository" && share < 1 {
		share = 0.3 // nearly everything is in one
	}
	if len(w) > 1 && w[0] == 'v' && strings.Trim(w[1:], "0123456789") == "" {
		p.q.add("tag", 0.4*share) // v2
	}
	for _, s := range synonyms[w] {
		p.q.addAny(s, 0.7*share)
	}
	if p.ix.terms[w] != nil {
		p.q.add(w, share)
	} else if synonyms[w] == nil && p.unknown < maxUnknown {
		p.unknown++
		for _, s := range p.ix.similar(w) {
			p.q.addAny(s, 0.7*share)
		}
	}
}

// verb notes what the i-th word asks for. The first verb counts most: in "list
// open pull requests" nothing is to be opened.
func (p *parser) verb(list []string, i int) {
	w, weight := list[i], 1.0
	if p.acted {
		weight = 0.4
	}
	switch {
	case i > 0 && (w == "open" || both[w] != nil): // an adjective or a thing
	case nouns[w] != nil && (i+1 == len(list) || !determiner(list[i+1])): // "release notes"
	case w == "comment" && p.several: // "comments on an issue"
	default:
		for n, v := range verbs[w] {
			p.q.verbs[v] = max(p.q.verbs[v], weight*(1-0.2*float64(n)))
		}
		p.acted = p.acted || verbs[w] != nil || p.ix.verbs[w]
	}
	for _, v := range states[w] {
		p.q.verbs[v] = 1
	}
}

func preposition(w string) bool {
	switch w {
	case "in", "of", "on", "from", "to", "for", "by", "about", "acros", "with", "at", "into", "within":
		return true
	}
	return false
}

func determiner(w string) bool {
	switch w {
	case "a", "an", "on", "the", "this", "thi", "that", "it", "my", "some", "all", "two", "three", "thes", "those":
		return true
	}
	return strings.Trim(w, "0123456789") == ""
}

// plural reports whether a question speaks of several things.
func plural(text string) bool {
	for _, w := range strings.FieldsFunc(strings.ToLower(text), notWordRune) {
		if s := stem(w); len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(s, "s") && !stopWord(s) && (verbs[s] == nil || both[s] != nil) {
			return true
		}
	}
	return false
}

func notWordRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r < 0x80
}

func (q *query) add(word string, weight float64) {
	q.terms[word] = max(q.terms[word], weight)
}

// addAny adds a word that may be a generic verb.
func (q *query) addAny(word string, weight float64) {
	if genericVerb(word) {
		q.verbs[word] = max(q.verbs[word], weight)
		return
	}
	q.add(word, weight)
}

// finish adds what the question as a whole says: it asks for a list when it
// speaks of several things, and to look when it says nothing of what to do.
func (q *query) finish(plural bool) {
	get, many := q.verbs["get"], q.verbs["list"]
	switch {
	case get > many && many > 0 && plural:
		q.verbs["list"], q.verbs["get"] = get, 0.6*get
	case q.acted || len(q.verbs) != 0:
	case plural:
		q.verbs = map[string]float64{"list": 1, "search": 0.8, "get": 0.5}
	default:
		q.verbs = map[string]float64{"get": 1, "list": 0.9, "search": 0.7}
	}
	q.reads, q.writes = len(q.verbs) > 0, len(q.verbs) > 0
	for v := range q.verbs {
		switch v {
		case "list", "get", "search", "check", "count", "download":
			q.writes = false
		default:
			q.reads = false
		}
	}
}

// similar returns the known words closest to an unknown one.
func (ix *index) similar(w string) []string {
	limit := 2
	if len(w) >= 7 {
		limit = 3
	}
	if len(w) < 3 || len(w) > 40 {
		return nil
	}
	var out []string
	for _, v := range ix.vocab {
		if v[0] != w[0] { // the first letter is rarely the wrong one
			continue
		}
		if len(w) == 3 && len(v) != 4 { // of so short a word, a letter can only be missing
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
