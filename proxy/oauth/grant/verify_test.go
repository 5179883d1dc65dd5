package grant_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
	"aegis/proxy/oauth/grant"
)

// counting counts the reads and writes of a store, and fails them at will.
type counting struct {
	kv.Store
	gets, puts atomic.Int64
	down       atomic.Bool
}

var errDown = errors.New("the disk is gone")

func (c *counting) Get(ctx context.Context, key string) (kv.Entry, error) {
	c.gets.Add(1)
	if c.down.Load() {
		return kv.Entry{}, errDown
	}
	return c.Store.Get(ctx, key)
}

func (c *counting) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	c.puts.Add(1)
	if c.down.Load() {
		return errDown
	}
	return c.Store.Put(ctx, key, value, ttl)
}

func TestVerifyAsksTheStoreSeldom(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	store := &counting{Store: kv.NewMemory(clock.Now)}
	w := newWorld(t, withStore(store), withClock(clock))
	tokens := w.signIn()
	w.works(tokens.Access)
	gets, puts := store.gets.Load(), store.puts.Load()
	for range 100 {
		w.works(tokens.Access)
	}
	if store.gets.Load() != gets {
		t.Errorf("%d reads for 100 calls in a moment", store.gets.Load()-gets)
	}
	for range 59 { // up to the last second of the minute
		clock.Add(time.Second)
		w.works(tokens.Access)
	}
	if n := store.puts.Load() - puts; n != 0 {
		t.Errorf("%d writes in a minute", n)
	}
	clock.Add(5 * time.Second)
	w.works(tokens.Access)
	if n := store.puts.Load() - puts; n != 1 {
		t.Errorf("%d writes in 64 seconds", n)
	}
	g, err := w.Get(t.Context(), tokens.Grant.ID)
	if err != nil || !g.LastUsed.Equal(clock.Now()) || !g.Created.Equal(tokens.Grant.Created) {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestStoreTroubleIsNotTheTokensFault: a client that hears that its token is
// invalid throws it away.
func TestStoreTroubleIsNotTheTokensFault(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	store := &counting{Store: kv.NewMemory(clock.Now)}
	w := newWorld(t, withStore(store), withClock(clock))
	tokens, code := w.signIn(), w.code()
	w.works(tokens.Access)
	store.down.Store(true)
	w.works(tokens.Access)
	clock.Add(5 * time.Second)
	for name, call := range map[string]func() error{
		"verify":   func() error { _, err := w.Verify(t.Context(), tokens.Access); return err },
		"refresh":  func() error { _, err := w.refresh(tokens.Refresh); return err },
		"redeem":   func() error { _, err := w.Redeem(t.Context(), code, aRedeem()); return err },
		"issue":    func() error { _, err := w.IssueCode(t.Context(), aCode()); return err },
		"revoke":   func() error { _, err := w.Revoke(t.Context(), tokens.Access, client); return err },
		"get":      func() error { _, err := w.Get(t.Context(), tokens.Grant.ID); return err },
		"list":     func() error { _, err := w.List(t.Context(), alice); return err },
		"end user": func() error { _, err := w.EndUser(t.Context(), alice); return err },
	} {
		if err := call(); !errors.Is(err, errDown) || errors.Is(err, grant.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	store.down.Store(false)
	w.works(tokens.Access)
	w.refreshed(tokens.Refresh)
	if _, err := w.Redeem(t.Context(), code, aRedeem()); err != nil {
		t.Errorf("the code afterwards: %v", err)
	}
}

// TestLookalikesCostNoRead: guesses are refused by their form.
func TestLookalikesCostNoRead(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	store := &counting{Store: kv.NewMemory(clock.Now)}
	w := newWorld(t, withStore(store), withClock(clock))
	tokens, code := w.signIn(), w.code()
	gets := store.gets.Load()
	flip := func(token string) string {
		return token[:20] + string(token[20]^1) + token[21:]
	}
	w.dead(flip(tokens.Access))
	w.dead(tokens.Refresh)
	again, err := w.refresh(flip(tokens.Refresh))
	isInvalid(t, "refresh", again, err)
	again, err = w.Redeem(t.Context(), flip(code), aRedeem())
	isInvalid(t, "redeem", again, err)
	if n := store.gets.Load() - gets; n != 0 {
		t.Errorf("%d reads", n)
	}
}

func TestEndIsSeenAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	here := newWorld(t)
	there := newWorld(t, withStore(here.store), withClock(here.clock))
	tokens := here.signIn()
	here.works(tokens.Access)
	there.works(tokens.Access)
	if err := here.End(t.Context(), tokens.Grant.ID); err != nil {
		t.Fatal(err)
	}
	here.dead(tokens.Access)
	here.clock.Add(5 * time.Second)
	there.dead(tokens.Access)
}

// slow is a store that does something after each read.
type slow struct {
	kv.Store
	after func(key string)
}

func (s *slow) Get(ctx context.Context, key string) (kv.Entry, error) {
	e, err := s.Store.Get(ctx, key)
	if s.after != nil {
		s.after(key)
	}
	return e, err
}

// TestEndDuringVerify: what was read before an end is not kept after it.
func TestEndDuringVerify(t *testing.T) {
	t.Parallel()
	clock := kvtest.NewClock()
	store := &slow{Store: kv.NewMemory(clock.Now)}
	w := newWorld(t, withStore(store), withClock(clock))
	tokens := w.signIn()
	store.after = func(key string) {
		if strings.HasPrefix(key, "fam/") {
			store.after = nil
			if err := w.End(context.Background(), tokens.Grant.ID); err != nil {
				t.Error(err)
			}
		}
	}
	w.works(tokens.Access) // it was good when it was read
	w.dead(tokens.Access)
}

func TestEndAgainstVerify(t *testing.T) {
	t.Parallel()
	for range 200 {
		w := newWorld(t)
		tokens := w.signIn()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _, _ = w.Verify(context.Background(), tokens.Access) })
		}
		wg.Go(func() {
			if err := w.End(context.Background(), tokens.Grant.ID); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		w.dead(tokens.Access)
	}
}

func TestCallersCannotChangeWhatIsCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := w.signIn()
	for range 3 {
		g, err := w.Verify(t.Context(), tokens.Access)
		if err != nil || !slices.Equal(g.Scopes, aCode().Scopes) || g.Login != "alice" {
			t.Fatalf("%+v, %v", g, err)
		}
		g.Scopes[0], g.Login = "all", "root"
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range grant.CacheSize/4 + 100 {
		tokens := w.signIn()
		for range 4 {
			w.works(tokens.Access)
			tokens = w.refreshed(tokens.Refresh)
		}
	}
	if tokens, used := grant.Cached(w.Grants); tokens != grant.CacheSize || used > grant.CacheSize {
		t.Errorf("%d tokens and %d grants are cached", tokens, used)
	}
}

// TestTokensHaveAForm that people, logs and scanners can tell.
func TestTokensHaveAForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := map[string]bool{}
	for range 50 {
		code := w.code()
		tokens, err := w.Redeem(t.Context(), code, aRedeem())
		if err != nil {
			t.Fatal(err)
		}
		for form, token := range map[string]string{
			`^aegis_ac_[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}$`:             code,
			`^aegis_at_[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}$`:             tokens.Access,
			`^aegis_rt_[a-z2-7]{24}[A-Za-z0-9_-]{65}[A-Za-z0-9]{6}$`: tokens.Refresh,
		} {
			if !regexp.MustCompile(form).MatchString(token) || seen[token] {
				t.Errorf("%q is not like %s, or was there before", token, form)
			}
			seen[token] = true
		}
	}
	// The CRC-32 of "aegis_at_" is 0x807ed704.
	if got := grant.Mint(grant.AccessPrefix, ""); got != "aegis_at_2LtV4u" {
		t.Errorf("%q", got)
	}
}

// TestNothingSecretIsKeptOrTold: not in the store, not in events, not in errors.
func TestNothingSecretIsKeptOrTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var secrets []string
	var said strings.Builder
	keep := func(tokens *grant.Tokens) *grant.Tokens {
		secrets = append(secrets, tokens.Access, tokens.Refresh)
		return tokens
	}
	code := w.code()
	unused := w.code()
	tokens, err := w.Redeem(t.Context(), code, aRedeem())
	if err != nil {
		t.Fatal(err)
	}
	keep(tokens)
	first := tokens.Refresh
	for range 3 {
		tokens = keep(w.refreshed(tokens.Refresh))
		keep(w.refreshed(first))
		w.works(tokens.Access)
	}
	secrets = append(secrets, code, unused)
	said.WriteString(dump(t, w.store))
	w.clock.Add(2 * time.Minute)
	for _, call := range []func() (*grant.Tokens, error){
		func() (*grant.Tokens, error) { return w.refresh(first) },
		func() (*grant.Tokens, error) { return w.refresh(tokens.Refresh) },
		func() (*grant.Tokens, error) { return w.Redeem(t.Context(), code, aRedeem()) },
		func() (*grant.Tokens, error) { return w.Redeem(t.Context(), unused, aRedeem()) },
	} {
		_, err := call()
		fmt.Fprintln(&said, err)
	}
	fmt.Fprintf(&said, "%+v", w.events)
	said.WriteString(dump(t, w.store))
	for _, s := range append(secrets, verifier) {
		for _, part := range []string{s, s[len(s)-30:], strings.TrimLeft(s[9:], "=")[:20]} {
			if strings.HasPrefix(s, grant.RefreshPrefix) && part != s && len(part) == 20 {
				part = grant.Secret(s)[:20] // the id before it is no secret
			}
			if strings.Contains(said.String(), part) {
				t.Errorf("%q of %q is kept or told", part, s)
			}
		}
	}
}

func FuzzTokens(f *testing.F) {
	w := newWorld(f)
	tokens := w.signIn()
	f.Add(tokens.Access)
	f.Add(tokens.Refresh[:len(tokens.Refresh)-1])
	f.Add("aegis_rt_")
	f.Add(grant.Mint(grant.RefreshPrefix, strings.Repeat("\x00", 89)))
	f.Add(grant.Mint(grant.AccessPrefix, strings.Repeat("/", 43)))
	f.Add(grant.Mint(grant.CodePrefix, strings.Repeat("\xff", 43)))
	f.Fuzz(func(t *testing.T, token string) {
		if token == tokens.Access || token == tokens.Refresh {
			return
		}
		for _, token := range []string{token, grant.Mint(grant.RefreshPrefix, token), grant.Mint(grant.AccessPrefix, token), grant.Mint(grant.CodePrefix, token)} {
			_, verr := w.Verify(t.Context(), token)
			_, rerr := w.refresh(token)
			_, cerr := w.Redeem(t.Context(), token, aRedeem())
			revoked, err := w.Revoke(t.Context(), token, client)
			if !errors.Is(verr, grant.ErrInvalid) || !errors.Is(rerr, grant.ErrInvalid) || !errors.Is(cerr, grant.ErrInvalid) || revoked || err != nil {
				t.Errorf("%q: %v, %v, %v, %v, %v", token, verr, rerr, cerr, revoked, err)
			}
		}
		if _, err := w.Verify(t.Context(), tokens.Access); err != nil {
			t.Errorf("%q ended a grant: %v", token, err)
		}
	})
}

func FuzzResource(f *testing.F) {
	f.Add(resource, resource+"/")
	f.Add("https://h:443", "HTTPS://H/")
	f.Add("https://h/%2F", "https://h/")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !grant.Same(a, a) {
			t.Errorf("%q is not itself", a)
		}
		if grant.Same(a, b) != grant.Same(b, a) {
			t.Errorf("%q and %q: it depends on their order", a, b)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	tokens := w.signIn()
	for b.Loop() {
		if _, err := w.Verify(context.Background(), tokens.Access); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefresh(b *testing.B) {
	w := newWorld(b)
	tokens := w.signIn()
	for b.Loop() {
		tokens = w.refreshed(tokens.Refresh)
	}
}
