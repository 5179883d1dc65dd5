package grant_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"aegis/proxy/oauth/grant"
)

// TestRevoke is RFC 7009: the client's own tokens end its grant, anything else is
// as good as unknown.
func TestRevoke(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token  func(first, second *grant.Tokens) string
		client string
		wait   time.Duration
		want   bool
	}{
		"access token":          {func(_, b *grant.Tokens) string { return b.Access }, client, 0, true},
		"older access token":    {func(a, _ *grant.Tokens) string { return a.Access }, client, 0, true},
		"refresh token":         {func(_, b *grant.Tokens) string { return b.Refresh }, client, 0, true},
		"used refresh token":    {func(a, _ *grant.Tokens) string { return a.Refresh }, client, 0, true},
		"long used one":         {func(a, _ *grant.Tokens) string { return a.Refresh }, client, 2 * time.Hour, true},
		"expired access token":  {func(_, b *grant.Tokens) string { return b.Access }, client, time.Hour, false},
		"expired refresh token": {func(_, b *grant.Tokens) string { return b.Refresh }, client, 24 * time.Hour, false},
		"access, foreign":       {func(_, b *grant.Tokens) string { return b.Access }, "client-2", 0, false},
		"refresh, foreign":      {func(_, b *grant.Tokens) string { return b.Refresh }, "client-2", 0, false},
		"no client":             {func(_, b *grant.Tokens) string { return b.Refresh }, "", 0, false},
		"unknown":               {func(_, _ *grant.Tokens) string { return "some-token" }, client, 0, false},
		"empty":                 {func(_, _ *grant.Tokens) string { return "" }, client, 0, false},
		"the grant's id":        {func(_, b *grant.Tokens) string { return b.Grant.ID }, client, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.signIn()
			second := w.refreshed(first.Refresh)
			other := w.signIn()
			token := c.token(first, second)
			w.clock.Add(c.wait)
			w.kinds()
			got, err := w.Revoke(t.Context(), token, c.client)
			if err != nil || got != c.want {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
			if c.wait >= time.Hour {
				return
			}
			w.works(other.Access)
			if !c.want {
				w.works(first.Access)
				w.refreshed(second.Refresh)
				return
			}
			w.wantKinds("revoked")
			w.dead(first.Access)
			w.dead(second.Access)
			again, err := w.refresh(second.Refresh)
			isInvalid(t, "refresh", again, err)
			if got, err := w.Revoke(t.Context(), token, c.client); got || err != nil {
				t.Errorf("twice: %v, %v", got, err)
			}
		})
	}
}

func signInAs(w *world, user int64) *grant.Tokens {
	w.t.Helper()
	c := aCode()
	c.UserID = user
	code, err := w.IssueCode(context.Background(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	tokens, err := w.Redeem(context.Background(), code, aRedeem())
	if err != nil {
		w.t.Fatal(err)
	}
	return tokens
}

func TestListsAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []string
	for range 3 {
		ids = append(ids, signInAs(w, alice).Grant.ID)
		w.clock.Add(time.Second)
	}
	others := signInAs(w, 77)
	list, err := w.List(t.Context(), alice)
	if err != nil || len(list) != 3 || list[0].ID != ids[0] || list[2].ID != ids[2] ||
		list[1].ClientName != "A client" {
		t.Errorf("%+v, %v", list, err)
	}
	if got, err := w.List(t.Context(), 12345); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	all := append(slices.Clone(ids), others.Grant.ID)
	slices.Sort(all)
	if got := w.allIDs(); !slices.Equal(got, all) {
		t.Errorf("all: %v, want %v", got, all)
	}
	for range w.All(t.Context()) {
		break
	}
	for _, id := range []string{ids[0], ids[0], "", "nothing", "../fam/" + ids[1], ids[1] + "x"} {
		if err := w.End(t.Context(), id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := w.Get(t.Context(), ids[0]); !errors.Is(err, grant.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if n, err := w.EndUser(t.Context(), alice); n != 2 || err != nil {
		t.Errorf("ended %d of 2, %v", n, err)
	}
	if n, err := w.EndUser(t.Context(), alice); n != 0 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	w.works(others.Access)
	w.wantKinds("issued issued issued issued revoked revoked revoked")
}

func TestAllStopsAtAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.signIn()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for _, err := range w.All(ctx) {
		if n++; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d rounds", n)
	}
}

func TestEndUserReachesCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code()
	w.clock.Add(time.Second)
	if _, err := w.EndUser(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	tokens, err := w.Redeem(t.Context(), code, aRedeem())
	isInvalid(t, "a code of before", tokens, err)
	w.clock.Add(time.Second)
	w.works(w.signIn().Access)
	if got := w.ids(alice); len(got) != 1 {
		t.Errorf("grants: %v", got)
	}
}

// TestEndUserAgainstRedemptions: nothing that begins at the same moment slips
// through.
func TestEndUserAgainstRedemptions(t *testing.T) {
	t.Parallel()
	for range 100 {
		w := newWorld(t)
		var codes []string
		for range 8 {
			codes = append(codes, w.code())
		}
		racers(9, func(i int) {
			if i == 8 {
				if _, err := w.EndUser(context.Background(), alice); err != nil {
					t.Error(err)
				}
				return
			}
			if _, err := w.Redeem(context.Background(), codes[i], aRedeem()); err != nil &&
				!errors.Is(err, grant.ErrInvalid) {
				t.Error(err)
			}
		})
		if left := w.allIDs(); len(left) != 0 {
			t.Fatalf("%d grants are left", len(left))
		}
	}
}

// TestEndAgainstRefreshes: an ended grant does not come back.
func TestEndAgainstRefreshes(t *testing.T) {
	t.Parallel()
	for range 100 {
		w := newWorld(t)
		first := w.signIn()
		got := make([]*grant.Tokens, 8)
		racers(9, func(i int) {
			var err error
			if i == 8 {
				err = w.End(context.Background(), first.Grant.ID)
			} else if got[i], err = w.refresh(first.Refresh); errors.Is(err, grant.ErrInvalid) {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		})
		for _, tokens := range append(got, first) {
			if tokens != nil {
				w.dead(tokens.Access)
				again, err := w.refresh(tokens.Refresh)
				isInvalid(t, "refresh", again, err)
			}
		}
		if left := w.allIDs(); len(left) != 0 {
			t.Fatalf("%d grants are left", len(left))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := func() grant.Options {
		w := newWorld(t)
		return grant.Options{Store: w.store, Keys: ring(t, keyA).Derive, Config: life.config()}
	}
	if _, err := grant.New(good()); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*grant.Options){
		"no store":       func(o *grant.Options) { o.Store = nil },
		"no keys":        func(o *grant.Options) { o.Keys = nil },
		"empty ring":     func(o *grant.Options) { o.Keys = func(string) [][]byte { return nil } },
		"no access":      func(o *grant.Options) { o.Config.AccessTTL = 0 },
		"no refresh":     func(o *grant.Options) { o.Config.RefreshTTL = 0 },
		"negative max":   func(o *grant.Options) { o.Config.MaxTTL = -1 },
		"negative grace": func(o *grant.Options) { o.Config.RefreshGrace = -1 },
	} {
		o := good()
		if change(&o); o.Store == nil && name != "no store" {
			t.Fatal(name)
		}
		if g, err := grant.New(o); err == nil || g != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
