package catalog

import "strings"

// nearest returns the candidate that is most like name, "" when none is like it
// enough to be what was meant.
func nearest(name string, candidates []string) string {
	if len(name) > 100 {
		return ""
	}
	best, found := 1+max(2, len(name)/3), ""
	if len(name) <= 3 {
		best = 2
	}
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := distance(name, c, best); d < best {
			best, found = d, c
		}
	}
	if found == "" {
		for _, c := range candidates {
			if len(name) >= 4 && strings.HasPrefix(c, name) {
				return c
			}
		}
	}
	return found
}

// distance is the number of inserted, deleted, replaced and swapped bytes
// between a and b, or limit when it is not below that.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
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
		if least >= limit {
			return limit
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}
