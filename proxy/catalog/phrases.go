package catalog

import "math"

// phraseIndex holds the phrases that people ask for tools with: the tools' names,
// titles and aliases. A question is compared with each phrase as a whole, so that
// the words of one phrase count for more together than apart (a Tversky index
// over weighted words; Tversky, "Features of Similarity", 1977).
type phraseIndex struct {
	phrases []phrase
	with    map[string][]int32 // the phrases that have a word
	weight  map[string]float64 // how much a word says of the tool
}

// phrase is one way to ask for a tool.
type phrase struct {
	doc   int
	words []string
	whole float64 // the weights of its words together
	owned bool    // it says whose things it is about
}

// said is one word of a question, and how much it matters there.
type said struct {
	word   string
	weight float64
}

// Constants of the comparison: what the words count that only the phrase has and
// that only the question has, a word that only means one of the phrase, a phrase
// about somebody's things when the question names no owner, and a tool's second
// best phrase. unknownShare is what a word that no phrase has weighs, of the most.
const (
	missingShare = 0.4
	beyondShare  = 0.35
	synonymShare = 0.7
	verbShare    = 0.6
	ownerShare   = 0.85
	secondShare  = 0.3
	unknownShare = 0.3
)

// add adds a phrase for the tool doc. Fillers are left out, as people put them in or not by
// habit.
func (ix *phraseIndex) add(doc int, text string) {
	if ix.with == nil {
		ix.with = map[string][]int32{}
	}
	p, n := phrase{doc: doc}, int32(len(ix.phrases))
	for _, w := range words(text) {
		if filler(w) {
			continue
		}
		p.words = append(p.words, w)
		p.owned = p.owned || owners[w]
		// A phrase that has a word twice is listed once.
		if l := ix.with[w]; len(l) == 0 || l[len(l)-1] != n {
			ix.with[w] = append(l, n)
		}
	}
	ix.phrases = append(ix.phrases, p)
}

// finish weighs the words: one that few tools are asked for with says most.
func (ix *phraseIndex) finish(docs int) {
	ix.weight = make(map[string]float64, len(ix.with))
	for w, list := range ix.with {
		n, last := 0.0, -1
		// Phrases of one tool are next to each other, so a tool counts once.
		for _, i := range list {
			if doc := ix.phrases[i].doc; doc != last {
				n, last = n+1, doc
			}
		}
		ix.weight[w] = math.Log(1 + (float64(docs)-n+0.5)/(n+0.5))
	}
	for i := range ix.phrases {
		for _, w := range ix.phrases[i].words {
			ix.phrases[i].whole += ix.weight[w]
		}
	}
}

// match returns by tool how like the best of its phrases the question is: 0 to little more
// than 1. Likeness is cubed, since a phrase of which half fits says next to nothing. The
// second best phrase counts a little, because a question that is like two phrases of a tool
// is hardly about another one.
func (ix *phraseIndex) match(list []said, docs int) []float64 {
	common, all, owned := ix.common(list, docs)
	best, second := make([]float64, docs), make([]float64, docs)
	for i, c := range common {
		if c == 0 {
			continue
		}
		p := &ix.phrases[i]
		c = min(c, p.whole, all)
		if p.owned && !owned {
			c *= ownerShare
		}
		// What only the phrase has and what only the question has count against it, the
		// former more: a phrase is short, a question may say much besides.
		like := c / (c + missingShare*(p.whole-c) + beyondShare*(all-c))
		if like = like * like * like; like > best[p.doc] {
			like, best[p.doc] = best[p.doc], like
		}
		second[p.doc] = max(second[p.doc], like)
	}
	for i := range best {
		best[i] += secondShare * second[i]
	}
	return best
}

// common returns by phrase the weight of the words that it shares with the
// question, the weight of all words of the question, and whether these say whose
// things are meant.
func (ix *phraseIndex) common(list []said, docs int) (common []float64, all float64, owned bool) {
	common = make([]float64, len(ix.phrases))
	// A word of the question counts once for a phrase, by its best relative there,
	// however many relatives the phrase has.
	took := make([]float64, len(ix.phrases)) // by the word at hand
	var touched []int32
	for _, s := range list {
		owned = owned || owners[s.word]
		weight, known := ix.weight[s.word]
		if !known {
			weight = math.Log(1+float64(docs)) * unknownShare
		}
		all += weight * s.weight
		for v, share := range kin(s.word) {
			for _, i := range ix.with[v] {
				if took[i] == 0 {
					touched = append(touched, i)
				}
				took[i] = max(took[i], share*s.weight*ix.weight[v])
			}
		}
		for _, i := range touched {
			common[i] += took[i]
			took[i] = 0
		}
		touched = touched[:0]
	}
	return common, all, owned
}

// kin returns a word and the words that it may stand for, with their shares. Later meanings
// of a verb count less and less: "get" fits "list" better than "download".
func kin(w string) map[string]float64 {
	out := map[string]float64{w: 1}
	for _, v := range synonyms[w] {
		out[v] = max(out[v], synonymShare)
	}
	share := verbShare
	for _, v := range verbs[w] {
		out[v] = max(out[v], share)
		share *= 0.7
	}
	return out
}

// owner reports whether a word says whose things are meant.
var owners = wordSet(`
my own organization company group admin instance global server personal site shared`)

// filler reports whether a word says nothing in a phrase.
func filler(w string) bool { return stopWords[w] && !wanting[w] }

// wanting are the stop words that say something of what is wanted, though nothing of
// a thing.
var wanting = wordSet(`
let not no without off up other another wait again already still yet now befor after own current recent configur
availabl old hang each every titl named call exist someon anybody everybody nobody they them her only anyth
until sinc`)
