package catalog

import (
	"slices"
	"strings"

	"aegis/config"
)

// correct replaces unknown words by the one they are most like, if it is clear which that
// is. At most maxUnknown are looked at: each is compared with the whole vocabulary. A word
// with several candidates stays as it is: a wrong correction hides what the person meant
// from all later steps.
func (ix *index) correct(list []string) {
	known := 0
	for i, w := range list {
		if len(w) < 3 || known >= maxUnknown || ix.knows(w) {
			continue
		}
		if len(w) == 3 && i > 0 && (prepositions[list[i-1]] || list[i-1] == "user") {
			continue // three letters behind "of" are a name
		}
		known++
		like := ix.similar(w)
		// Of several, only words of names and titles can be meant.
		if len(like) > 1 {
			like = slices.DeleteFunc(like, func(v string) bool { return !ix.named[v] })
		}
		// A word of four letters is too near to too many others.
		if len(like) == 1 && (len(w) != 4 || len(like[0]) > 4) {
			list[i] = like[0]
		}
	}
}

// knows reports whether a word needs no correction.
func (ix *index) knows(w string) bool {
	return ix.terms[w] != nil || verbs[w] != nil || synonyms[w] != nil || states[w] != nil || both[w] != nil ||
		stopWords[w] || subordinates[w] || prepositions[w] || determiner(w) || phraseWords[w]
}

// subordinate reports whether a word begins what only says when, why or with
// what words.
var subordinates = wordSet("when becaus sinc whil until unless after befor onc whenever if")

// attribute reports whether a word is something that nearly all things have.
var attributes = wordSet(`
title description name status state author messag text body url size id date number detail default link`)

// participles returns the stems of the words that end like "opened", and like "running"
// where a word comes before. They describe a thing ("closed issues") where the bare verb
// would ask for a deed, and stems no longer show the difference.
func participles(text string) map[string]bool {
	out := map[string]bool{}
	for i, w := range strings.Fields(text) {
		s := stem(w)
		cut := func(end string) bool { return strings.HasSuffix(w, end) && !strings.HasSuffix(s, end) }
		if cut("ed") || i > 0 && cut("ing") {
			out[s] = true
		}
	}
	return out
}

// prepositions come before the place or the time of something. As with all lists here,
// the words are stems: across is "acros".
var prepositions = wordSet("in of on from to for by about acros with at into within via against than")

// determiner reports whether a word comes before a thing without being one: articles,
// numbers, marks of objects.
func determiner(w string) bool { return isNumber(w) || determiners[w] }

var determiners = wordSet("a an on the this thi that it my some all two three thes those new another " +
	markNumber + " " + markRepo + " " + markFile)

// plural reports whether a question speaks of several things.
func plural(text string) bool {
	for _, w := range strings.FieldsFunc(strings.ToLower(text), notWordRune) {
		many := len(w) > 2 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us")
		// "he creates" has an s too, so a word that is a verb alone says nothing.
		if s := stem(w); many && !stopWords[s] && (verbs[s] == nil || both[s] != nil) {
			return true
		}
	}
	return false
}

// notWordRune separates words. Letters beyond ASCII belong to them, so that a question
// in another language stays one of words.
func notWordRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r < 0x80
}

// similar returns the known words closest to an unknown one. Very long words are not
// compared, as a distance costs the product of both lengths for each word that is known.
func (ix *index) similar(w string) []string {
	// Distances: one mistake in a short word, two in a long one.
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
		if len(w) == 3 && (len(v) != 4 || !strings.HasPrefix(v, w) || !ix.named[v]) {
			continue // of so short a word, a letter can only be missing
		}
		if len(w) == 4 && len(v) < 5 && !sameLetters(w, v) { // slow is not show
			continue
		}
		switch d := config.Distance(w, v, limit); {
		// A nearer word drops those that were found before.
		case d < limit-1:
			limit, out = d+1, append(out[:0], v)
		case d < limit:
			out = append(out, v)
		}
	}
	return out
}

// sameLetters reports whether two words of ASCII letters differ but in their order.
func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
