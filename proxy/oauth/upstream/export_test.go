package upstream

import (
	"time"

	"golang.org/x/oauth2"

	"aegis/config"
)

// Hurry makes g's pauses short, so that tests that must wait are quick, and its limits
// long, so that what works may take as long as a slow machine needs.
func (g *Gitea) Hurry() {
	g.pace.poll, g.pace.again = time.Millisecond, time.Millisecond
	g.pace.work, g.pace.ask, g.pace.save, g.pace.lease = 10*time.Minute, 10*time.Minute, 10*time.Minute, 10*time.Minute
}

// Impatient gives g's requests this long.
func (g *Gitea) Impatient(d time.Duration) { g.pace.work, g.pace.ask = d, d }

// ReadIntrospection reads an introspection answer.
func ReadIntrospection(body []byte, clientID string) (id int64, login, scope string, err error) {
	info, err := readIntrospection(body, clientID)
	if err != nil {
		return 0, "", "", err
	}
	return info.id, info.login, info.scope, nil
}

// ReadNames reads a page of organisations or of teams.
func ReadNames(body []byte, teams bool) ([]string, error) {
	if teams {
		return readNames(body, listTeams)
	}
	return readNames(body, listOrgs)
}

// Normal is what a grant's scope means: "all", or words; publicOnly is left out.
func Normal(scope string) ([]string, bool) {
	g := readGrant(scope)
	return g.set.Words(), g.all
}

// TooOld reports whether a version of Gitea has no scopes.
func TooOld(version string) bool { return tooOld(version) }

// ValidPair reports what a token answer is worth to g.
func (g *Gitea) ValidPair(t *oauth2.Token, err error) (access, refresh string, life time.Duration, failed error) {
	p, err := g.pair(t, err)
	if err != nil {
		return "", "", 0, err
	}
	return p.access.Reveal(), p.refresh.Reveal(), p.life, nil
}

// Printable returns a struct with what g holds by value, for tests that print it.
func (g *Gitea) Printable() *struct {
	Record  record
	Pair    pair
	Members *members
} {
	r := record{id: 1, access: config.NewSecret("sentinel-access"), refresh: config.NewSecret("sentinel-refresh")}
	return &struct {
		Record  record
		Pair    pair
		Members *members
	}{r, pair{access: r.access, refresh: r.refresh}, g.members}
}

// HeldForAll reports whether nobody's refresh is tried after Gitea has refused Aegis itself and
// then n refreshes of users have failed that were under way.
func HeldForAll(n int) bool {
	h, now := newHold(), time.Now()
	h.fail(allUsers, &Error{Kind: Config}, now)
	for i := range int64(n) {
		h.fail(i+1, &Error{Kind: Unavailable}, now)
	}
	return h.check(int64(n)+2, now) != nil
}

// MaxHeld is how many holds there are at a time.
const MaxHeld = maxHeld
