package upstream

import (
	"errors"
	"fmt"
	"strings"

	"aegis/proxy/oauth/scope"
)

// configuredScopes returns the set of auth.oauth.scopes. Every word must be one
// of Gitea's: a single other word, or none at all, would make Gitea grant
// everything.
func configuredScopes(words []string) (scope.Set, error) {
	var set scope.Set
	if len(words) == 0 {
		return set, errors.New("auth.oauth.scopes is empty, for which Gitea would grant everything; " +
			"name the scopes that clients need")
	}
	for _, w := range words {
		if !set.Add(w) {
			return set, fmt.Errorf("auth.oauth.scopes: %q is not a scope of Gitea's, which would then grant "+
				"everything; write read: or write: and one of %s", w, strings.Join(scope.Names(), ", "))
		}
	}
	return set, nil
}

// grant is what Gitea says it granted.
type grant struct {
	set scope.Set
	// all: Gitea treats the grant as full access.
	all bool
	// publicOnly: Gitea shows public things only.
	publicOnly bool
}

// readGrant reads a grant's scope as Gitea does (GrantAdditionalScopes and
// AccessTokenScope.Normalize): words of OpenID Connect between spaces do not
// count, the rest is separated by spaces and commas, and one unknown word, or
// none that counts, means everything.
func readGrant(scope string) grant {
	var g grant
	counted := 0
	for part := range strings.SplitSeq(scope, " ") {
		switch part {
		case "", "openid", "profile", "email", "groups":
			continue
		}
		for word := range strings.SplitSeq(part, ",") {
			switch {
			case word == "":
			case word == "public-only":
				g.publicOnly = true
				counted++
			case g.set.Add(word):
				counted++
			default:
				g.all = true
			}
		}
	}
	g.all = g.all || counted == 0
	return g
}

// judge returns why a grant is not what the configuration asks for, nil when it
// is.
func (g *Gitea) judge(got grant) *Error {
	missing, excess := g.scopeSet.Beyond(got.set), got.set.Beyond(g.scopeSet)
	switch {
	case got.all:
		return &Error{Kind: Wide, Public: g.wideText(nil)}
	case excess != (scope.Set{}):
		return &Error{Kind: Wide, Public: g.wideText(excess.Words())}
	case missing != (scope.Set{}):
		return &Error{Kind: Narrow, Public: g.narrowText(missing.Words())}
	case got.publicOnly:
		return &Error{Kind: Narrow, Public: g.narrowText([]string{"anything that is not public"})}
	}
	return nil
}
