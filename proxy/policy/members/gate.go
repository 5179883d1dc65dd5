package members

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"aegis/config"
	"aegis/proxy"
)

// Lookup says which organizations and teams (org/team) a credential's user is
// in, in lower case. Errors are [*proxy.Error].
type Lookup interface {
	Memberships(ctx context.Context, cred proxy.Credential) (orgs, teams []string, err error)
}

// How long an answer of Gitea's is believed.
const (
	// ttl is how long a person who has left may still get in at most.
	ttl = 2 * time.Minute
	// recheck is how soon Gitea is asked again after a denial, of ours or of
	// Gitea's, so that denials do not become traffic.
	recheck = 5 * time.Second
	// lookupTimeout bounds asking.
	lookupTimeout = 10 * time.Second
	// maxKnown bounds the identities that are remembered.
	maxKnown = 10_000
)

// Directory remembers what Gitea says of people's memberships. All endpoints of
// a server share one. Safe for concurrent use.
type Directory struct {
	lookup Lookup
	now    func() time.Time

	lost func(key string) // nil: losses are not reported

	mu    sync.Mutex
	known map[string]*person
}

// OnLoss has f called whenever Gitea no longer lists a membership that it listed
// before. The key names the person to [Directory.Recheck] of another process. f must
// not block. It is set before the first call, so it needs no lock.
func (d *Directory) OnLoss(f func(key string)) { d.lost = f }

// Recheck makes the next call of the person with this key ask again, as soon as
// Gitea may be asked: another process has seen a membership end.
func (d *Directory) Recheck(key string) {
	d.mu.Lock()
	p := d.known[key]
	d.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale = true
}

// person is what is known of an identity. Its own lock is held while Gitea is
// asked, so that many calls of one person are one question.
type person struct {
	mu          sync.Mutex
	asked       time.Time // zero: never
	orgs, teams []string
	err         error
	stale       bool // ask again as soon as recheck has passed
}

// NewDirectory returns a Directory that asks lookup. Now is the clock; nil means
// time.Now.
func NewDirectory(lookup Lookup, now func() time.Time) *Directory {
	if now == nil {
		now = time.Now
	}
	return &Directory{lookup: lookup, now: now, known: map[string]*person{}}
}

// Gate decides about one endpoint.
type Gate struct {
	dir    *Directory
	rules  config.Members
	logins []string // in lower case, as the others
	orgs   []string
	teams  []string
}

// NewGate returns the gate of an endpoint. Empty rules admit no one.
func NewGate(dir *Directory, rules config.Members) *Gate {
	return &Gate{
		dir: dir, rules: rules,
		logins: lower(rules.Logins), orgs: lower(rules.Organizations), teams: lower(rules.Teams),
	}
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

// Enter returns nil when id may use the endpoint. Otherwise the error is of kind
// forbidden, or says that Gitea could not be asked, which lets no one in.
func (g *Gate) Enter(ctx context.Context, id *proxy.Identity) error {
	switch {
	case id == nil:
		return denied()
	case g.rules.Everyone:
		return nil
	case id.TokenName != "" && slices.Contains(g.rules.Tokens, id.TokenName):
		return nil
	case slices.Contains(g.logins, strings.ToLower(id.Login)):
		return nil
	case len(g.orgs)+len(g.teams) == 0:
		return denied()
	}
	return g.dir.enter(ctx, id, g.member)
}

// member decides on what Gitea said.
func (g *Gate) member(p *person) bool {
	in := func(list, wanted []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(wanted, s) })
	}
	return in(p.orgs, g.orgs) || in(p.teams, g.teams)
}

// denied is the error of a person who is no member. It names no list: who may enter is
// not for outsiders to read.
func denied() error {
	return proxy.NewError(proxy.KindForbidden, "you are not among the members of this endpoint; "+
		"whoever runs this server decides who is (members in its configuration)", nil)
}

// enter asks Gitea when that is due, and decides. A denial is asked again soon,
// as the person may have just been added.
func (d *Directory) enter(ctx context.Context, id *proxy.Identity, member func(*person) bool) error {
	p := d.person(keyOf(id))
	p.mu.Lock()
	defer p.mu.Unlock()
	// Yes is believed for ttl, no and errors for recheck only: somebody who was just
	// added waits seconds, not minutes.
	age := d.now().Sub(p.asked)
	due := p.asked.IsZero() || age >= ttl || age >= recheck && (p.stale || p.err != nil || !member(p))
	if due {
		orgs, teams := p.orgs, p.teams
		d.ask(ctx, p, id.Credential)
		if d.lost != nil && p.err == nil && (!within(orgs, p.orgs) || !within(teams, p.teams)) {
			d.lost(keyOf(id))
		}
	}
	switch {
	case p.err != nil:
		return unknown(p.err)
	case !member(p):
		return denied()
	}
	return nil
}

// within reports whether all of list is in other.
func within(list, other []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(other, s) })
}

// ask refreshes p. The answer is for later calls too, so this one's client does
// not decide how long it may take.
func (d *Directory) ask(ctx context.Context, p *person, cred proxy.Credential) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	p.orgs, p.teams, p.err = d.lookup.Memberships(ctx, cred)
	p.asked, p.stale = d.now(), false
}

// unknown is the error when it is not known who is a member: no one is let in then.
func unknown(err error) error {
	var e *proxy.Error
	if errors.As(err, &e) && (e.Kind == proxy.KindForbidden || e.Kind == proxy.KindUnauthorized) {
		return proxy.NewError(proxy.KindForbidden,
			"Gitea does not tell Aegis the organizations and teams that you are in: your Gitea token lacks the scopes "+
				"read:user and read:organization, or is no longer valid", err)
	}
	return proxy.NewError(proxy.KindUpstreamUnavailable,
		"Gitea cannot be asked which organizations and teams you are in; try again shortly", err)
}

// Doubt makes the next call of an identity ask again: Gitea has just denied it
// something.
func (d *Directory) Doubt(id *proxy.Identity) {
	if id != nil {
		d.Recheck(keyOf(id))
	}
}

func (d *Directory) person(key string) *person {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.known[key]; p != nil {
		return p
	}
	if len(d.known) >= maxKnown {
		d.forget()
	}
	p := &person{}
	d.known[key] = p
	return p
}

// forget makes room: what is out of date goes, and without such everything,
// which costs one question each.
func (d *Directory) forget() {
	for k, p := range d.known {
		// A locked one is being asked about, so it is not out of date.
		if p.mu.TryLock() {
			if d.now().Sub(p.asked) >= ttl {
				delete(d.known, k)
			}
			p.mu.Unlock()
		}
	}
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
}

// keyOf distinguishes identities by what a renaming does not change.
func keyOf(id *proxy.Identity) string {
	// A login can be given to another account, an id cannot.
	if id.Mode == proxy.ModeOAuth && id.UserID != 0 {
		return "user " + strconv.FormatInt(id.UserID, 10)
	}
	return "token " + id.TokenName + " " + strings.ToLower(id.Login)
}

// Stage returns the stage that doubts memberships after a denial of Gitea's.
func (d *Directory) Stage() proxy.Stage {
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			res, err := next.Handle(ctx, c)
			var e *proxy.Error
			denials := []proxy.Kind{proxy.KindForbidden, proxy.KindNotFound, proxy.KindUnauthorized}
			if errors.As(err, &e) && e.Status != 0 && slices.Contains(denials, e.Kind) { // of Gitea, not of a stage
				d.Doubt(c.Identity)
			}
			return res, err
		})
	}
}
