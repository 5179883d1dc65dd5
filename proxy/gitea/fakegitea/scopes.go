package fakegitea

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// categories are the scope categories, in the order in which a token's scopes
// are written.
// The order shows in the refusals, which clients read to learn what they lack.
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

// scopeRule is what a route needs: categories, one check after the other.
type scopeRule struct {
	checks     []string
	noPublicly bool // refused to public-only tokens
}

// scopeRules is the map of the real server, by templates as the routes spell them. A
// trailing /** matches the path itself and everything below it.
var scopeRules = map[string]scopeRule{
	"/notifications/**":                   {[]string{"notification"}, true},
	"/repos/{owner}/{repo}/notifications": {[]string{"notification"}, false},
	"/users/**":                           {[]string{"user"}, false},
	"/users/{username}/repos":             {[]string{"user", "repository"}, false},
	"/users/{username}/orgs/**":           {[]string{"user", "organization"}, false},
	"/users/{username}/tokens/**":         {[]string{"user"}, true},
	"/user":                               {[]string{"user"}, false},
	"/user/**":                            {[]string{"user"}, true},
	"/user/followers":                     {[]string{"user"}, false},
	"/user/following/**":                  {[]string{"user"}, false},
	"/user/subscriptions":                 {[]string{"user"}, false},
	"/user/repos":                         {[]string{"user", "repository"}, false},
	"/user/starred/**":                    {[]string{"user", "repository"}, false},
	"/user/orgs":                          {[]string{"user", "organization"}, false},
	"/org/{org}/repos":                    {[]string{"organization", "repository"}, false},
	"/orgs/{org}/**":                      {[]string{"organization"}, false},
	"/teams/{id}/**":                      {[]string{"organization"}, false},
	"/admin/**":                           {[]string{"admin"}, false},
	"/topics/search":                      {[]string{"repository"}, false},
	"/repositories/{id}":                  {[]string{"repository"}, false},
	"/packages/{owner}/**":                {[]string{"package"}, false},
	"/repos/issues/search":                {[]string{"issue"}, false},
	"/repos/**":                           {[]string{"repository"}, false},
	"/repos/{owner}/{repo}/issues/**":     {[]string{"issue"}, false},
	"/repos/{owner}/{repo}/labels/**":     {[]string{"issue"}, false},
	"/repos/{owner}/{repo}/milestones/**": {[]string{"issue"}, false},
}

// checkScopes refuses a token whose scopes do not cover the route.
func (c *call) checkScopes() error {
	if !c.cred.scoped || c.cred.scopes.all && !c.cred.scopes.publicOnly {
		return nil
	}
	rule := scopeFor(c.r.Method, c.path)
	// It comes before the scopes: such a token is refused here whatever else it has.
	if c.cred.scopes.publicOnly && rule.noPublicly {
		return fail(http.StatusForbidden, "this endpoint is not available for public-only tokens")
	}
	action, level := "read", 1
	// The method decides, whatever the route does.
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		action, level = "write", 2
	}
	// One category is named at a time: a client that gets it is then told the next.
	for _, category := range rule.checks {
		if !c.cred.scopes.all && c.cred.scopes.level[category] < level {
			return fail(http.StatusForbidden,
				"token does not have at least one of required scope(s), required=[%s:%s], token scope=%s",
				action, category, strings.Join(c.cred.scopes.list(), ","))
		}
	}
	return nil
}

// scopeFor finds the rule of a route template: its own, or that of the nearest path
// above it. Without one no scope is needed.
// GET of an organisation's repositories needs the organisation only, DELETE both.
func scopeFor(method, template string) scopeRule {
	if method == http.MethodDelete && template == "/orgs/{org}/repos" {
		template = "/org/{org}/repos"
	}
	rule, ok := scopeRules[template]
	for at := template; !ok && at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		rule, ok = scopeRules[at+"/**"]
	}
	return rule
}
