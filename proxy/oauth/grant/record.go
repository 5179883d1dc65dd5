package grant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"aegis/proxy/kv"
)

// family is the record of a grant and its refresh tokens. It says itself when it
// expires: nothing proves what the store says of that.
type family struct {
	Client   string    `json:"client"`
	Name     string    `json:"name,omitempty"`
	Verified bool      `json:"verified,omitempty"`
	User     int64     `json:"user"`
	Login    string    `json:"login"`
	Scopes   []string  `json:"scopes,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Created  time.Time `json:"created"`
	Used     time.Time `json:"used"` // the refresh token, last
	Expires  time.Time `json:"expires"`
	Ends     time.Time `json:"ends,omitzero"` // however often it is refreshed
	Current  string    `json:"current"`       // digest of the refresh token's secret
	Past     []past    `json:"past,omitempty"`
}

// past is a refresh token that was used up a moment ago.
type past struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

// maxPast is how many used tokens a record remembers; more within one grace
// period are taken for older ones.
const maxPast = 16

// access is the record of an access token.
type access struct {
	Family  string    `json:"family"`
	Scopes  []string  `json:"scopes,omitempty"`
	Expires time.Time `json:"expires"`
}

// codeRecord is the record of a code, and the mark that its use leaves.
type codeRecord struct {
	Code
	Expires time.Time `json:",omitzero"`
	Spent   bool      `json:",omitempty"`
	Family  string    `json:",omitempty"` // that came of it
}

func familyKey(id string) string    { return "fam/" + id }
func usedKey(id string) string      { return "fam-used/" + id }
func accessKey(token string) string { return "at/" + digest(token) }
func codeKey(code string) string    { return "code/" + digest(code) }

// clearedKey holds when all grants of a person were ended, while codes of before
// can be about.
func clearedKey(user int64) string { return "user/" + strconv.FormatInt(user, 10) + "/cleared" }

func userPrefix(user int64) string { return "user/" + strconv.FormatInt(user, 10) + "/fam/" }

func userKey(user int64, id string) string {
	return userPrefix(user) + id
}

func (f *family) grant(id string) Grant {
	return Grant{
		ID: id, ClientID: f.Client, ClientName: f.Name, Verified: f.Verified, UserID: f.User, Login: f.Login,
		Scopes: clone(f.Scopes), Resource: f.Resource, Created: f.Created, LastUsed: f.Used, Expires: f.Expires,
	}
}

// load reads a record into v and returns its version. A record that is missing
// is [ErrInvalid].
func (g *Grants) load(ctx context.Context, key string, v any) (version uint64, err error) {
	e, err := g.o.Store.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return 0, invalid("it is unknown, has expired or was ended")
	}
	if err != nil {
		return 0, err
	}
	return e.Version, decode(e, v)
}

func decode(e kv.Entry, v any) error {
	if err := json.Unmarshal(e.Value, v); err != nil {
		return errors.New("grants: a record cannot be read") // its error would quote it
	}
	return nil
}

// save writes a record that lives until then.
func (g *Grants) save(ctx context.Context, key string, v any, until time.Time) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	return g.o.Store.Put(ctx, key, text, max(until.Sub(g.o.Now()), 1))
}

// swap writes a record that has this version.
func (g *Grants) swap(ctx context.Context, key string, version uint64, v any, ttl time.Duration) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	_, err = g.o.Store.CompareAndSwap(ctx, key, version, text, max(ttl, 1))
	return err
}

// family reads a grant that is still alive.
func (g *Grants) family(ctx context.Context, id string) (*family, uint64, error) {
	f := &family{}
	version, err := g.load(ctx, familyKey(id), f)
	if err != nil {
		return nil, 0, err
	}
	if !g.o.Now().Before(f.Expires) {
		return nil, 0, invalid("it has expired")
	}
	return f, version, nil
}

// list writes the entry by which a person's grants are found. It outlives the
// grant a little: an entry without a grant is nothing, a grant without an entry
// could not be ended by the person.
func (g *Grants) list(ctx context.Context, f *family, id string) error {
	return g.save(ctx, userKey(f.User, id), struct{}{}, f.Expires.Add(time.Hour))
}

// issue writes an access token of a grant and returns it with its lifetime.
func (g *Grants) issue(
	ctx context.Context, f *family, id string, scopes []string,
) (token string, life time.Duration, err error) {
	token = mint(accessPrefix, secret())
	now := g.o.Now()
	until := now.Add(g.o.Config.AccessTTL.Std())
	if until.After(f.Expires) {
		until = f.Expires
	}
	err = g.save(ctx, accessKey(token), access{Family: id, Scopes: scopes, Expires: until}, until)
	return token, until.Sub(now), err
}

// drop deletes a grant for good. It reports dropped to one of several callers.
func (g *Grants) drop(ctx context.Context, id string) (f *family, dropped bool, err error) {
	defer g.cache.forget(id) // also after an error: it may be gone
	e, err := g.o.Store.Take(ctx, familyKey(id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	f = &family{}
	if err := decode(e, f); err != nil {
		return nil, true, err
	}
	// It has ended; these expire by themselves if they must.
	_ = g.o.Store.Delete(ctx, userKey(f.User, id))
	_ = g.o.Store.Delete(ctx, usedKey(id))
	return f, true, nil
}

// report gives an event of a grant to the audit log.
func (g *Grants) report(kind Kind, id string, f *family) {
	g.o.Event(Event{
		Kind: kind, Grant: id, ClientID: f.Client, ClientName: f.Name, UserID: f.User, Login: f.Login, At: g.o.Now(),
	})
}

// detached returns a context for what must be done although the client may be
// gone.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

func clone(s []string) []string { return append([]string{}, s...) }
