package fakegitea

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// categories are the scope categories, in the order in which a token's scopes
// are written.
var categories = []string{
	"activitypub", "admin", "misc", "notification", "organization", "package", "issue", "repository", "user",
}

// scopeSet is what a token may do. publicOnly holds beside all: such a token reads and
// writes whatever is public and nothing else.
type scopeSet struct {
	all        bool
	publicOnly bool
	level      map[string]int // category: 1 reads, 2 also writes
}

// parseScopes builds a set; an unknown word is an error.
func parseScopes(words []string) (scopeSet, error) {
	set := scopeSet{level: map[string]int{}}
	for _, w := range words {
		action, category, _ := strings.Cut(w, ":")
		switch {
		case w == "all":
			set.all = true
		case w == "public-only":
			set.publicOnly = true
		case action == "read" && slices.Contains(categories, category):
			set.level[category] = max(set.level[category], 1)
		case action == "write" && slices.Contains(categories, category):
			set.level[category] = 2
		default:
			return set, errors.New("invalid access token scope: " + w)
		}
	}
	return set, nil
}

// list spells the set in the server's order.
func (s scopeSet) list() []string {
	var out []string
	if s.all {
		out = append(out, "all")
	}
	if s.publicOnly {
		out = append(out, "public-only")
	}
	if s.all {
		return out
	}
	for _, c := range categories {
		switch s.level[c] {
		case 1:
			out = append(out, "read:"+c)
		case 2:
			out = append(out, "write:"+c)
		}
	}
	return out
}

// scopeRule binds a path pattern to the categories it needs, one check after
// the other. {x} is one segment, a trailing /** any number of further ones.
type scopeRule struct {
	pattern    string
	checks     []string
	noPublicly bool // refused to public-only tokens
}

// scopeRules is the map of the real server. The rule with the most fixed words
// wins, then the longer one.
var scopeRules = []scopeRule{
	{"/notifications/**", []string{"notification"}, true},
	{"/repos/{owner}/{repo}/notifications", []string{"notification"}, false},
	{"/users/{username}/**", []string{"user"}, false},
	{"/users/{username}/repos", []string{"user", "repository"}, false},
	{"/users/{username}/orgs/**", []string{"user", "organization"}, false},
	{"/users/{username}/tokens/**", []string{"user"}, true},
	{"/user", []string{"user"}, false},
	{"/user/**", []string{"user"}, true},
	{"/user/followers", []string{"user"}, false},
	{"/user/following/**", []string{"user"}, false},
	{"/user/subscriptions", []string{"user"}, false},
	{"/user/repos", []string{"user", "repository"}, false},
	{"/user/starred/**", []string{"user", "repository"}, false},
	{"/user/orgs", []string{"user", "organization"}, false},
	{"/org/{org}/repos", []string{"organization", "repository"}, false},
	{"/orgs/{org}/**", []string{"organization"}, false},
	{"/teams/{id}/**", []string{"organization"}, false},
	{"/admin/**", []string{"admin"}, false},
	{"/topics/search", []string{"repository"}, false},
	{"/repositories/{id}", []string{"repository"}, false},
	{"/packages/{owner}/**", []string{"package"}, false},
	{"/repos/search", []string{"repository"}, false},
	{"/repos/migrate", []string{"repository"}, false},
	{"/repos/issues/search", []string{"issue"}, false},
	{"/repos/{owner}/{repo}/**", []string{"repository"}, false},
	{"/repos/{owner}/{repo}/issues/**", []string{"issue"}, false},
	{"/repos/{owner}/{repo}/labels/**", []string{"issue"}, false},
	{"/repos/{owner}/{repo}/milestones/**", []string{"issue"}, false},
}

// checkScopes refuses a token whose scopes do not cover the route.
func (c *call) checkScopes() error {
	if !c.cred.scoped || c.cred.scopes.all && !c.cred.scopes.publicOnly {
		return nil
	}
	rule := scopeFor(c.r.Method, c.path)
	if rule == nil {
		return nil
	}
	if c.cred.scopes.publicOnly && rule.noPublicly {
		return fail(http.StatusForbidden, "this endpoint is not available for public-only tokens")
	}
	action, level := "read", 1
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		action, level = "write", 2
	}
	for _, category := range rule.checks {
		if !c.cred.scopes.all && c.cred.scopes.level[category] < level {
			return fail(http.StatusForbidden,
				"token does not have at least one of required scope(s), required=[%s:%s], token scope=%s",
				action, category, strings.Join(c.cred.scopes.list(), ","))
		}
	}
	return nil
}

// scopeFor finds the rule of a route template; nil means that none is needed.
func scopeFor(method, template string) *scopeRule {
	if method == http.MethodDelete && template == "/orgs/{org}/repos" {
		return &scopeRule{checks: []string{"organization", "repository"}}
	}
	var best *scopeRule
	for i := range scopeRules {
		rule := &scopeRules[i]
		if rule.matches(template) && (best == nil || rule.weight() > best.weight()) {
			best = rule
		}
	}
	return best
}

// matches compares a rule with a route template.
func (r *scopeRule) matches(template string) bool {
	pattern, open := strings.CutSuffix(r.pattern, "/**")
	want, have := strings.Split(pattern, "/"), strings.Split(template, "/")
	if len(have) < len(want) || len(have) > len(want) && !open {
		return false
	}
	for i, seg := range want {
		if !strings.HasPrefix(seg, "{") && seg != have[i] {
			return false
		}
	}
	return true
}

// weight orders rules: fixed words first, then length; a closed rule beats an
// open one of the same words.
func (r *scopeRule) weight() int {
	pattern, open := strings.CutSuffix(r.pattern, "/**")
	n := 0
	for seg := range strings.SplitSeq(pattern, "/") {
		n++
		if !strings.HasPrefix(seg, "{") {
			n += 100
		}
	}
	if !open {
		n += 10
	}
	return n
}
