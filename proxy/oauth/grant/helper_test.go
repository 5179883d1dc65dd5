package grant_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
	"aegis/proxy/oauth/grant"
)

const (
	client   = "client-1"
	redirect = "http://127.0.0.1:1234/callback"
	resource = "https://aegis.example/mcp"
	verifier = "a-verifier-of-forty-three-characters-or-more"
	alice    = int64(7)
)

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// lifetimes are those of the configuration, as durations.
type lifetimes struct{ Access, Refresh, Max, Grace time.Duration }

func (l lifetimes) config() config.OAuth {
	return config.OAuth{
		AccessTTL: config.Duration(l.Access), RefreshTTL: config.Duration(l.Refresh),
		MaxTTL: config.Duration(l.Max), RefreshGrace: config.Duration(l.Grace),
	}
}

var life = lifetimes{Access: time.Hour, Refresh: 24 * time.Hour, Max: 10 * 24 * time.Hour, Grace: time.Minute}

// world is grants with everything that they need.
type world struct {
	*grant.Grants
	t     testing.TB
	store kv.Store
	clock *kvtest.Clock

	mu     sync.Mutex
	events []grant.Event
}

type option func(*world, *grant.Options)

func withLife(l lifetimes) option {
	return func(_ *world, o *grant.Options) { o.Config = l.config() }
}

func withStore(s kv.Store) option { return func(w *world, _ *grant.Options) { w.store = s } }

func withRing(r *seal.Ring) option {
	return func(_ *world, o *grant.Options) { o.Keys = r.Derive }
}

func withClock(c *kvtest.Clock) option { return func(w *world, _ *grant.Options) { w.clock = c } }

func newWorld(t testing.TB, options ...option) *world {
	t.Helper()
	w := &world{t: t, clock: kvtest.NewClock()}
	o := grant.Options{Keys: ring(t, keyA).Derive, Config: life.config()}
	for _, opt := range options {
		opt(w, &o)
	}
	if w.store == nil {
		w.store = kv.NewMemory(w.clock.Now)
	}
	o.Store, o.Now = w.store, w.clock.Now
	o.Event = func(e grant.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	var err error
	if w.Grants, err = grant.New(o); err != nil {
		t.Fatal(err)
	}
	return w
}

const (
	keyA = "first-key-0123456789-0123456789-abcdef"
	keyB = "other-key-0123456789-0123456789-abcdef"
)

func ring(t testing.TB, keys ...string) *seal.Ring {
	t.Helper()
	var secrets [][]byte
	for _, k := range keys {
		secrets = append(secrets, []byte(k))
	}
	r, err := seal.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func aCode() grant.Code {
	return grant.Code{
		ClientID: client, ClientName: "A client", Verified: true, RedirectURI: redirect, Challenge: challenge(verifier),
		UserID: alice, Login: "alice", Scopes: []string{"write:issue", "read:repository"}, Resource: resource,
	}
}

func aRedeem() grant.Redeem {
	return grant.Redeem{ClientID: client, RedirectURI: redirect, Verifier: verifier, Resource: resource}
}

func (w *world) code() string {
	w.t.Helper()
	code, err := w.IssueCode(context.Background(), aCode())
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// signIn returns the tokens of a new grant.
func (w *world) signIn() *grant.Tokens {
	w.t.Helper()
	t, err := w.Redeem(context.Background(), w.code(), aRedeem())
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) refresh(token string) (*grant.Tokens, error) {
	return w.Refresh(context.Background(), token, grant.Refresh{ClientID: client})
}

// refreshed returns what a refresh gives, which must not fail.
func (w *world) refreshed(token string) *grant.Tokens {
	w.t.Helper()
	t, err := w.refresh(token)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) works(access string) {
	w.t.Helper()
	if _, err := w.Verify(context.Background(), access); err != nil {
		w.t.Errorf("the access token does not work: %v", err)
	}
}

func (w *world) dead(access string) {
	w.t.Helper()
	if g, err := w.Verify(context.Background(), access); !errors.Is(err, grant.ErrInvalid) || g != nil {
		w.t.Errorf("the access token works: %v", err)
	}
}

func isInvalid(t testing.TB, what string, tokens *grant.Tokens, err error) {
	t.Helper()
	if !errors.Is(err, grant.ErrInvalid) || tokens != nil {
		t.Errorf("%s: %v; want ErrInvalid", what, err)
	}
}

// kinds returns the events so far, and forgets them.
func (w *world) kinds() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var k []string
	for _, e := range w.events {
		k = append(k, string(e.Kind))
	}
	w.events = nil
	return strings.Join(k, " ")
}

func (w *world) wantKinds(want string) {
	w.t.Helper()
	if got := w.kinds(); got != want {
		w.t.Errorf("events %q, want %q", got, want)
	}
}

// dump returns everything in the store as text.
func dump(t testing.TB, s kv.Store) string {
	t.Helper()
	var b strings.Builder
	for key, err := range s.Keys(context.Background(), "") {
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Get(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s = %s\n", key, e.Value)
	}
	return b.String()
}

// ids returns the ids of a person's grants as the person sees them.
func (w *world) ids(user int64) []string {
	w.t.Helper()
	list, err := w.List(context.Background(), user)
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for _, g := range list {
		ids = append(ids, g.ID)
	}
	slices.Sort(ids)
	return ids
}

// allIDs returns the ids of the grants that are in the store.
func (w *world) allIDs() []string {
	w.t.Helper()
	ids := []string{}
	for g, err := range w.All(context.Background()) {
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, g.ID)
	}
	slices.Sort(ids)
	return ids
}

// racers runs n calls at once.
func racers(n int, call func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			call(i)
		})
	}
	close(start)
	wg.Wait()
}
