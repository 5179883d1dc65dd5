package catalog

import "slices"

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
	// one says that a thing is named by its number, who that people are asked for.
	one, who bool
	// said are the words of the question for comparing it with phrases.
	said []said
}

// parse turns a question into the words of the catalog: its own words, what
// people also call them, and the known words that a misspelled one is like. Verbs
// that half of all tools have (list, create, delete) say little about the thing
// and everything about the tool, so they are kept apart.
func (ix *index) parse(text string) query {
	q := query{terms: map[string]float64{}, verbs: map[string]float64{}}
	text = clean(text)
	list := words(text)
	list = list[:min(len(list), maxWords)]
	// Before halves are joined: a half may be the misspelled one.
	ix.correct(list)
	list = joinRequests(ix.joinHalves(list))
	p := parser{
		ix: ix, q: &q, share: 1, several: plural(text), passive: participles(text), behind: map[string]bool{},
		marks: map[string]bool{},
	}
	if len(list) > 1 {
		for _, s := range imperatives[list[0]+" "+list[1]] {
			q.addAny(s, 1)
			p.acted = true
		}
	}
	for i, w := range list {
		if (subordinates[w] || w == "say" && p.passive[w]) && i > 0 && p.things > 0 {
			p.share, p.aside = asideShare, true
		}
		p.phrases(list, i)
		if p.prep = p.prep || prepositions[w]; prepositions[w] && p.things > 0 {
			p.share = min(p.share, laterShare)
		}
		p.word(list, i)
		q.said = append(q.said, p.said(w)...)
	}
	p.named()
	p.people()
	q.acted = p.acted
	q.finish(p.several)
	return q
}

// said returns a word as phrases have it.
func (p *parser) said(w string) []said {
	weight := 1.0
	if p.aside {
		weight = asideShare
	}
	switch w {
	// That a repository or file was named says little: nearly every question could name
	// one.
	case markRepo:
		return []said{{"repository", 0.3 * weight}}
	case markFile:
		return []said{{"file", 0.5 * weight}}
	case markMail:
		return []said{{"email", 0.5 * weight}}
	case markNumber, markStop, markText:
		return nil
	}
	if filler(w) || isNumber(w) {
		return nil
	}
	return []said{{w, weight}}
}

// word adds what the i-th word says. The cases are in the order of certainty: what is
// certainly no thing must not be looked up as one.
func (p *parser) word(list []string, i int) {
	w := list[i]
	// Only in what the question is about, not behind a preposition or in a reason.
	mine := w == "my" && p.share == 1 && !p.common(list[i+1:])
	p.q.mine = p.q.mine || mine
	deed := !p.aside && p.verb(list, i)
	switch {
	case p.mark(w):
	case deed && deeds[w] != nil:
	case w == "my" && !mine:
	// A name that is none of the catalog's words is a value, as in "a label called
	// urgent".
	case i > 0 && (list[i-1] == "named" || list[i-1] == "call" || list[i-1] == "titl") && p.ix.terms[w] == nil:
	case isNumber(w):
		p.q.one = true
	case stopWords[w], verbs[w] != nil && both[w] == nil && synonyms[w] == nil && !p.ix.verbs[w]:
	case nouns[w] != nil && synonyms[w] == nil && p.ix.terms[w] == nil:
	default:
		before := p.things
		p.thing(w)
		p.behind[w] = p.prep
		if deed && i+1 < len(list) && prepositions[list[i+1]] {
			p.things = before // "subscribe to a repository"
		}
	}
}

// phrases adds what the i-th word means together with the next one, and with the
// next one that is no article or the like: "subscribe to the repository".
func (p *parser) phrases(list []string, i int) {
	if p.passive[list[i]] {
		return
	}
	// Three words ahead at most: further on it is another thought.
	for j := i + 1; j < len(list) && j <= i+3; j++ {
		for _, s := range phrases[list[i]+" "+list[j]] {
			p.q.addAny(s, p.share)
		}
		if !determiner(list[j]) && !prepositions[list[j]] && !p.passive[list[j]] {
			return
		}
	}
}

// mark takes note of the name of an object.
func (p *parser) mark(w string) bool {
	switch w {
	case markNumber, markRepo, markFile, markMail:
		p.marks[w] = true
		p.q.one = p.q.one || w == markNumber
	case "who":
		p.q.who = true
		return false
	case markStop:
		p.endClause()
	case markText: // "open a ticket: it crashes"
		if p.acted && !p.asked && p.things > 0 {
			p.share, p.aside = asideShare, true
		}
		p.endClause()
	default:
		return false
	}
	return true
}

// endClause lets what comes next be what is asked for, if until now there was but
// a question or an explanation: "why did it fail? show the log".
func (p *parser) endClause() {
	if p.aside || p.acted && !p.asked {
		return
	}
	for v := range p.q.verbs {
		// The first clause was a question or an explanation; its verbs may still be
		// what is wanted.
		p.q.verbs[v] *= 0.4
	}
	p.acted, p.asked, p.share = false, false, 1
}

// named adds what the named objects are. They matter most when nothing else was said of
// what the question is about. A question such as "close #12" names its thing by the number
// alone.
func (p *parser) named() {
	alone := 1.0
	if p.things > 0 {
		alone = 0.3
	}
	if p.marks[markFile] {
		p.q.add(stem("contents"), max(alone, 0.5))
		p.q.add("file", max(alone, 0.5))
	} else if p.marks[markRepo] {
		p.q.add("repository", alone)
	}
	if p.marks[markMail] {
		p.q.add("email", alone)
	}
	if p.marks[markNumber] && p.q.terms[stem("issue")] == 0 && p.q.terms["pull"] == 0 {
		p.q.add(stem("issue"), max(alone, 0.6))
		p.q.add("pull", max(alone*0.8, 0.6))
	}
}

// people adds members when a question asks who is in a team or an organization, or
// puts somebody unnamed into or out of one.
func (p *parser) people() {
	// "Add bob to the team": nothing says that bob is a member to be.
	moves := p.q.verbs["add"] == 1 || p.q.verbs[stem("remove")] >= 0.8
	for _, group := range []string{"team", "organization"} {
		if p.q.terms[group] > 0 && p.things <= 1 && (p.q.who || moves && p.behind[group]) {
			p.q.add("member", 1)
		}
	}
}

// laterShare is the weight of what comes behind a preposition when something
// comes before it: "labels of this repository" asks for labels. asideShare is
// that of what follows "because", attributeShare that of the title, the state and
// the like of something, passiveShare that of participles, and
// looseShare that of words which no tool is named after.
const (
	laterShare     = 0.7
	asideShare     = 0.25
	attributeShare = 0.15
	passiveShare   = 0.5
	looseShare     = 0.6
)

// parser goes through a question word by word.
type parser struct {
	ix      *index
	q       *query
	share   float64         // weight of the things that come now
	acted   bool            // a verb was seen
	asked   bool            // the verb seen is but a question's
	several bool            // the question speaks of several things
	prep    bool            // a preposition was seen
	aside   bool            // what comes now only says why or when
	passive map[string]bool // stems that the question has as participles
	things  int             // seen until now
	behind  map[string]bool // things that stand behind a preposition
	unknown int
	marks   map[string]bool // of the names of objects that were seen
}

// thing adds what a word may mean. Weights are shares of what the question says at that
// place; the retrieval test holds what they do together.
func (p *parser) thing(w string) {
	share := p.share
	switch {
	case w == "repository" && share < 1:
		share = 0.3 // nearly everything is in one
	case attributes[w]:
		share *= attributeShare
	case p.passive[w]:
		share *= passiveShare
	case verbs[w] != nil && p.ix.verbs[w]:
		share *= 0.5 // change
	case states[w] != nil:
		share *= 0.4
	case p.ix.named[w] || synonyms[w] != nil:
		p.things++
	}
	if len(w) > 1 && w[0] == 'v' && isNumber(w[1:]) {
		p.q.one = true
		p.q.add("tag", 0.4*share) // v2
	}
	for _, s := range synonyms[w] {
		p.q.addAny(s, 0.7*share)
	}
	if p.ix.terms[w] != nil {
		if !p.ix.named[w] {
			share *= looseShare // no tool is about it
		}
		p.q.add(w, share)
	} else if synonyms[w] == nil && p.unknown < maxUnknown {
		p.unknown++
		for _, s := range p.ix.similar(w) {
			p.q.addAny(s, 0.4*share)
		}
	}
}

// verb notes what the i-th word asks for, and reports whether it is a verb. The
// first verb counts most: in "list open pull requests" nothing is to be opened.
func (p *parser) verb(list []string, i int) bool {
	w, deed := list[i], false
	wanted := p.passive[w] && !p.acted && i > 0 && list[i-1] == "be" // "should be closed"
	determined := i+1 < len(list) && determiner(list[i+1])
	switch {
	case w == "do" && determined: // "do a merge"
	case !wanted && (p.passive[w] || (w == "open" || both[w] != nil) && !p.begins(list, i)): // an adjective or a thing
	case nouns[w] != nil && !determined && (w != "new" || p.several): // "release notes"
	case w == "comment" && p.several: // "comments on an issue"
	case w == "list" && i > 0: // "show the label list"
		p.several = true
	default:
		weight := 1.0
		// A second verb is mostly part of what the first is about: "request to merge".
		if p.acted {
			weight = 0.4
		}
		for n, v := range verbs[w] {
			p.q.verbs[v] = max(p.q.verbs[v], weight*(1-0.2*float64(n)))
		}
		if deed = verbs[w] != nil || p.begins(list, i) && (p.ix.verbs[w] || p.meansVerb(w)); deed && !p.acted {
			p.acted, p.asked = true, questionWords[w] != nil
		}
	}
	p.state(w)
	return deed
}

// begins reports whether the i-th word can be the verb that a question begins with.
func (p *parser) begins(list []string, i int) bool {
	return i == 0 || nouns[list[i]] == nil && p.things == 0 && !p.acted &&
		!determiner(list[i-1]) && !prepositions[list[i-1]]
}

// state notes a state that something is to have: to make it private is to edit it,
// but to create it private is to create it.
func (p *parser) state(w string) {
	for _, v := range states[w] {
		if p.q.verbs["creat"] > 0 && p.q.verbs[v] == 0 {
			continue
		}
		p.q.verbs[v] = 1
		delete(p.q.verbs, "creat")
		delete(p.q.verbs, "add")
	}
}

// meansVerb reports whether a word is another one for a verb of the catalog:
// retry for rerun.
func (p *parser) meansVerb(w string) bool {
	list := synonyms[w]
	return len(list) > 0 && !p.several && p.ix.verbs[list[0]]
}

// joinHalves makes one word of two that are one in the names of tools: "mile
// stones", "work flow".
func (ix *index) joinHalves(list []string) []string {
	out := list[:0]
	for _, w := range list {
		if n := len(out); n > 0 && len(w) > 3 && len(out[n-1]) > 2 && out[n-1] != "stop" && ix.named[out[n-1]+w] {
			out[n-1] += w
			continue
		}
		out = append(out, w)
	}
	return out
}

// common reports whether "my" says nothing of what comes next: there are no other
// tools for my branches than for all, and "I spent" is what I did.
func (p *parser) common(next []string) bool {
	if len(next) > 1 && (next[0] == "open" || p.passive[next[0]]) {
		next = next[1:]
	}
	if len(next) == 0 {
		return false
	}
	w := next[0]
	if shared[w] || verbs[w] != nil && both[w] == nil && !p.passive[w] {
		return true
	}
	return !p.ix.owned[w] && !slices.ContainsFunc(synonyms[w], func(s string) bool { return p.ix.owned[s] })
}

// shared are things that are found by the same tools, no matter who has them.
var shared = wordSet("branch pull chang comment review fork commit code file work build issu ticket bug")

// add adds a word. The greatest weight counts, not the sum: saying a thing twice does
// not make it twice as wanted.
func (q *query) add(word string, weight float64) {
	q.terms[word] = max(q.terms[word], weight)
}

// addAny adds a word that may be a generic verb.
func (q *query) addAny(word string, weight float64) {
	if genericVerbs[word] {
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
	// "Show" is to get one and to list many; the plural says which.
	case get >= many && many > 0 && plural:
		q.verbs["list"], q.verbs["get"] = get, 0.6*get
	case q.acted || len(q.verbs) != 0:
	case plural:
		q.verbs = map[string]float64{"list": 1, "search": 0.8, "get": 0.5}
	default:
		q.verbs = map[string]float64{"get": 1, "list": 0.9, "search": 0.7}
	}
	if q.one && !plural {
		for _, v := range []string{"list", "search"} {
			if q.verbs[v] > 0 {
				q.verbs[v] *= 0.7
			}
		}
	}
	// Both stay true only as long as every verb agrees.
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
