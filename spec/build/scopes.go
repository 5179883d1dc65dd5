package build

import (
	"slices"
	"strings"
)

// scopeRule says which token scopes the routes of a pattern need.
type scopeRule struct {
	Path   string   `yaml:"path"`
	Method string   `yaml:"method"`
	Scopes []string `yaml:"scopes"`
}

// scopesOf returns the scopes of a route by the most specific rule. A route that no rule
// knows gets none: Gitea's own answer then says what it lacks. Gitea checks them itself at
// each call; here they show a client beforehand what to ask for, and keep a narrow grant
// from failing half way.
func scopesOf(rules []scopeRule, method, path string) []string {
	var best *scopeRule
	bestRank := [3]int{-1}
	for i := range rules {
		r := &rules[i]
		rank, ok := r.match(method, path)
		if ok && slices.Compare(rank[:], bestRank[:]) > 0 {
			best, bestRank = r, rank
		}
	}
	if best == nil {
		return nil
	}
	// Gitea asks for the read scope on GET alone, even where another method changes
	// nothing.
	access := "write:"
	if method == "GET" {
		access = "read:"
	}
	out := make([]string, 0, len(best.Scopes))
	for _, s := range best.Scopes {
		out = append(out, access+s)
	}
	return out
}

// match ranks the rule: literal segments first, then length, then a method.
func (r *scopeRule) match(method, path string) (rank [3]int, ok bool) {
	if r.Method != "" && r.Method != method {
		return rank, false
	}
	pattern, open := strings.CutSuffix(r.Path, "/**")
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(got) < len(want) || len(got) > len(want) && !open {
		return rank, false
	}
	for i, w := range want {
		if strings.HasPrefix(w, "{") {
			continue
		}
		if w != got[i] {
			return rank, false
		}
		rank[0]++
	}
	rank[1] = len(want)
	if !open {
		rank[1]++ // the exact rule is longer than the one with an open end
	}
	if r.Method != "" {
		rank[2] = 1
	}
	return rank, true
}
