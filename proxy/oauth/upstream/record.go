package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy/kv"
)

// record is a person's credential as the store keeps it. It cannot print its
// tokens.
type record struct {
	id    int64
	login string
	// scope is the grant's scope as Gitea words it.
	scope string
	// reauth says why the person must sign in again; "" while the record is good.
	// Then there are no tokens.
	reauth          string
	access, refresh config.Secret
	// expires is when access ends; life is how long it lived, for short-lived
	// tokens.
	expires time.Time
	life    time.Duration
	// seen is when Gitea last said login and scope.
	seen time.Time

	// version is the store's; 0 for a record that is not stored.
	version uint64
}

// stored is record's form in the store.
type stored struct {
	App     string `json:"app"`
	ID      int64  `json:"id"`
	Login   string `json:"login"`
	Scope   string `json:"scope,omitempty"`
	Reauth  string `json:"reauth,omitempty"`
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`
	Expires int64  `json:"expires,omitempty"`
	Life    int64  `json:"life,omitempty"`
	Seen    int64  `json:"seen,omitempty"`
}

// The values of record.reauth.
const (
	reauthExpired = "expired" // Gitea no longer reads the refresh token
	reauthUsed    = "used"    // the refresh token was used, and its successor was not stored
	reauthRevoked = "revoked" // the grant is gone
	reauthWide    = "wide"    // the grant turned out to be full access
)

// keepEnded is how long a record says why it ended.
const keepEnded = 30 * 24 * time.Hour

const (
	// earlyRefresh is how long before its end a token is renewed.
	earlyRefresh = 5 * time.Minute
	// leastLife is what a token must have left to be sent: it ends on Gitea's clock.
	leastLife = 5 * time.Second
)

// binding names the server and the application that a record belongs to, so
// that another server's user of the same number is never mistaken for it.
func binding(api *url.URL, clientID string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(api.Scheme+"://"+api.Host) + api.Path + "\x00" + clientID))
	return hex.EncodeToString(sum[:12])
}

func recordKey(id int64) string { return "cred/" + strconv.FormatInt(id, 10) }

// live reports whether the access token can be used at t.
func (r *record) live(t time.Time) bool {
	return r.reauth == "" && !r.access.IsZero() && t.Add(leastLife).Before(r.expires)
}

// fresh reports whether the access token need not be renewed at t: five minutes
// are left, or a quarter of a life that is short.
func (r *record) fresh(t time.Time) bool {
	early := earlyRefresh
	if r.life > 0 {
		early = min(early, r.life/4)
	}
	return r.live(t) && t.Add(early).Before(r.expires)
}

// end returns r without its tokens.
func (r *record) end(why string) *record {
	return &record{id: r.id, login: r.login, scope: r.scope, reauth: why, version: r.version}
}

// lineage is a refresh token's place in time: which grant, and which answer
// within it. It is read without verifying (the token is Gitea's to judge) and
// only decides which of two tokens of one user is the newer.
type lineage struct {
	Grant   int64 `json:"gnt"`
	Counter int64 `json:"cnt"`
	Expires int64 `json:"exp"`
}

func lineageOf(token string) lineage {
	var l lineage
	if !claims(token, &l) {
		return lineage{}
	}
	return l
}

// outdates reports whether what r holds is newer than what other holds, so that
// other must not overwrite it.
func (r *record) outdates(other *record) bool {
	if r.reauth != "" || r.refresh.IsZero() {
		return false
	}
	a, b := lineageOf(r.refresh.Reveal()), lineageOf(other.refresh.Reveal())
	// Without INVALIDATE_REFRESH_TOKENS the counter stays as it is, and both are alive.
	return cmp.Or(cmp.Compare(a.Grant, b.Grant), cmp.Compare(a.Counter, b.Counter),
		r.expires.Compare(other.expires)) > 0
}

// errUnreadable: a record is not one of this version of Aegis. A sign-in may
// replace it; nothing else treats it as absent.
var errUnreadable = errors.New("the record is not one of this version of Aegis")

// load returns the user's record. The error is an [*Error]; Gone when there is
// no record of this server and application. With one that is [replaceable] the record has
// nothing but the version that a new one has to overwrite.
func (g *Gitea) load(ctx context.Context, id int64) (*record, error) {
	entry, err := g.o.Store.Get(ctx, recordKey(id))
	if errors.Is(err, kv.ErrNotFound) {
		return &record{}, gone(textSignIn)
	}
	if err != nil {
		return nil, storeTrouble(err)
	}
	var s stored
	// The decoder's error would quote the record.
	if json.Unmarshal(entry.Value, &s) != nil || s.ID != id {
		return &record{version: entry.Version}, storeTrouble(fmt.Errorf("user %d: %w", id, errUnreadable))
	}
	if s.App != g.app {
		return &record{version: entry.Version}, gone(textSignIn)
	}
	return &record{
		id: s.ID, login: s.Login, scope: s.Scope, reauth: s.Reauth,
		access: config.NewSecret(s.Access), refresh: config.NewSecret(s.Refresh),
		expires: time.UnixMilli(s.Expires), life: time.Duration(s.Life), seen: time.UnixMilli(s.Seen),
		version: entry.Version,
	}, nil
}

// encode returns r's form in the store and how long to keep it.
func (g *Gitea) encode(r *record) ([]byte, time.Duration, error) {
	s := stored{App: g.app, ID: r.id, Login: r.login, Scope: r.scope, Reauth: r.reauth}
	ttl := keepEnded
	if r.reauth == "" {
		s.Access, s.Refresh = r.access.Reveal(), r.refresh.Reveal()
		s.Expires, s.Life, s.Seen = r.expires.UnixMilli(), int64(r.life), r.seen.UnixMilli()
		ttl = 0
	}
	value, err := json.Marshal(s)
	return value, ttl, err
}

// swap writes r over the version that it carries and updates that. The error is
// kv.ErrConflict, bare, when another process has written.
func (g *Gitea) swap(ctx context.Context, r *record) error {
	value, ttl, err := g.encode(r)
	if err != nil {
		return storeTrouble(err)
	}
	version, err := g.o.Store.CompareAndSwap(ctx, recordKey(r.id), r.version, value, ttl)
	if errors.Is(err, kv.ErrConflict) {
		return kv.ErrConflict
	}
	if err != nil {
		return storeTrouble(err)
	}
	r.version = version
	return nil
}
