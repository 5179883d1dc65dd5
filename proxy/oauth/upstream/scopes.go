package upstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// categories are Gitea's scope categories (models/auth/access_token_scope.go,
// the same from 1.23 on).
var categories = []string{
	"activitypub", "admin", "issue", "misc", "notification", "organization", "package", "repository", "user",
}

// level is what a scope permits in one category; write includes read.
type level uint8

const (
	none level = iota
	read
	write
)

// scopeSet is a set of scopes: a level for each category in categories' order.
type scopeSet [9]level

// add adds a word of Gitea's and reports whether it is one.
func (s *scopeSet) add(word string) bool {
	verb, category, _ := strings.Cut(word, ":")
	i := slices.Index(categories, category)
	if i < 0 {
		return false
	}
	switch verb {
	case "read":
		s[i] = max(s[i], read)
	case "write":
		s[i] = write
	default:
		return false
	}
	return true
}

// words returns the set in Gitea's words, write standing for read too.
func (s scopeSet) words() []string {
	var words []string
	for i, l := range s {
		switch l {
		case read:
			words = append(words, "read:"+categories[i])
		case write:
			words = append(words, "write:"+categories[i])
		}
	}
	return words
}

// within returns what of s t permits as well.
func (s scopeSet) within(t scopeSet) scopeSet {
	for i := range s {
		s[i] = min(s[i], t[i])
	}
	return s
}

// beyond returns what of s t does not permit.
func (s scopeSet) beyond(t scopeSet) scopeSet {
	for i := range s {
		if s[i] <= t[i] {
			s[i] = none
		}
	}
	return s
}

// configuredScopes returns the set of auth.oauth.scopes. Every word must be one
// of Gitea's: a single other word, or none at all, would make Gitea grant
// everything.
func configuredScopes(words []string) (scopeSet, error) {
	var set scopeSet
	if len(words) == 0 {
		return set, errors.New("auth.oauth.scopes is empty, for which Gitea would grant everything; name the scopes that clients need")
	}
	for _, w := range words {
		if !set.add(w) {
			return set, fmt.Errorf("auth.oauth.scopes: %q is not a scope of Gitea's, which would then grant everything; write read: or write: and one of %s",
				w, strings.Join(categories, ", "))
		}
	}
	return set, nil
}

// grant is what Gitea says it granted.
type grant struct {
	set scopeSet
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
			case g.set.add(word):
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
	missing, excess := g.scopeSet.beyond(got.set), got.set.beyond(g.scopeSet)
	switch {
	case got.all:
		return &Error{Kind: Wide, Public: g.wideText(nil)}
	case excess != scopeSet{}:
		return &Error{Kind: Wide, Public: g.wideText(excess.words())}
	case missing != scopeSet{}:
		return &Error{Kind: Narrow, Public: g.narrowText(missing.words())}
	case got.publicOnly:
		return &Error{Kind: Narrow, Public: g.narrowText([]string{"anything that is not public"})}
	}
	return nil
}
