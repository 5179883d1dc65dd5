package config

import "strings"

// maxWord bounds what is compared, in bytes; no name of ours is as long.
const maxWord = 100

// Nearest returns the candidate that word most likely means, "" when none is like it enough.
// Case, - and _ do not count, so maxItems means max_items. The beginning of a candidate means
// it, too, where nothing is nearer.
func Nearest(word string, candidates []string) string {
	if len(word) > maxWord {
		return ""
	}
	w, begins := plain(word), ""
	found, bound := "", slips(w)+1
	for _, c := range candidates {
		p := plain(c)
		d := Distance(w, p, bound)
		if strings.HasPrefix(p, w) || strings.HasPrefix(w, p) {
			if min(len(w), len(p))*2 >= max(len(w), len(p)) {
				d = min(d, 1) // warning for warn
			} else if len(w) >= 4 && len(w) < len(p) && begins == "" {
				begins = c
			}
		}
		if d < bound && d <= slips(p) {
			found, bound = c, d
		}
	}
	if found == "" {
		return begins
	}
	return found
}

// slips is how many slips of the fingers a word may have: always less than half of it, a third
// of a long one.
func slips(word string) int { return min((max(len(word), 2)-1)/2, max(2, len(word)/3)) }

// plain is a word without what people spell differently.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// Distance is the number of inserted, deleted, replaced or swapped bytes between a and b
// (optimal string alignment), or bound when it is not below that.
func Distance(a, b string, bound int) int {
	if len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least >= bound {
			return bound
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], bound)
}
