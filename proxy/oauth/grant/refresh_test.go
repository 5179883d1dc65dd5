package grant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/proxy/oauth/grant"
)

func TestRefreshRotates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.signIn()
	w.clock.Add(30 * time.Minute)
	second := w.refreshed(first.Refresh)
	if second.Refresh == first.Refresh || second.Access == first.Access || second.Grant.ID != first.Grant.ID ||
		second.ExpiresIn != time.Hour {
		t.Errorf("%+v after %+v", second, first)
	}
	if !second.Grant.Expires.Equal(w.clock.Now().Add(life.Refresh)) ||
		!second.Grant.Created.Equal(first.Grant.Created) {
		t.Errorf("%+v", second.Grant)
	}
	w.works(first.Access)
	w.works(second.Access)
	w.wantKinds("issued refreshed")
}

func TestGraceGivesTheSameSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.signIn()
	second := w.refreshed(first.Refresh)
	for range 3 {
		w.clock.Add(19 * time.Second)
		again := w.refreshed(first.Refresh)
		if again.Refresh != second.Refresh || again.Access == second.Access {
			t.Error("another successor, or no access token of its own")
		}
		w.works(again.Access)
	}
	w.wantKinds("issued refreshed")
	third := w.refreshed(second.Refresh)
	w.refreshed(third.Refresh)
}

// TestGraceReachesBackSeveralSteps: a process that is two refreshes behind
// within the grace gets what is current now.
func TestGraceReachesBackSeveralSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := []string{w.signIn().Refresh}
	for range 4 {
		w.clock.Add(10 * time.Second)
		tokens = append(tokens, w.refreshed(tokens[len(tokens)-1]).Refresh)
	}
	for i, old := range tokens {
		if got := w.refreshed(old).Refresh; i < 4 && got != tokens[4] {
			t.Errorf("token %d gives another successor", i)
		} else if i == 4 && got == tokens[4] {
			t.Error("the current token was not rotated")
		}
	}
}

func TestReuseAfterTheGraceEndsTheGrant(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"at the end of the grace": time.Minute,
		"much later": 20 * time.Hour} {
		w := newWorld(t)
		first := w.signIn()
		other := w.signIn()
		second := w.refreshed(first.Refresh)
		w.clock.Add(wait)
		w.kinds()
		for range 2 {
			again, err := w.refresh(first.Refresh)
			isInvalid(t, name, again, err)
		}
		w.wantKinds("refresh_reused")
		w.dead(second.Access)
		again, err := w.refresh(second.Refresh)
		isInvalid(t, "its successor", again, err)
		w.refreshed(other.Refresh)
	}
}

// TestOldTokensEndTheGrant: also those that the record has forgotten.
func TestOldTokensEndTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.signIn()
	last := first
	for range 5 {
		w.clock.Add(2 * time.Minute)
		last = w.refreshed(last.Refresh)
	}
	w.kinds()
	again, err := w.refresh(first.Refresh)
	isInvalid(t, "five refreshes old", again, err)
	w.wantKinds("refresh_reused")
	w.dead(last.Access)
}

func TestManyRefreshesInOneMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.signIn()
	last := first
	for range 40 {
		last = w.refreshed(last.Refresh)
	}
	if d := dump(t, w.store); len(d) > 40_000 {
		t.Errorf("the record grows: %d bytes in all", len(d))
	}
	again, err := w.refresh(first.Refresh)
	isInvalid(t, "forty refreshes old", again, err)
	w.dead(last.Access)
}

// TestMadeUpTokensEndNothing: an id is no secret; knowing it must not be enough
// to throw somebody out.
func TestMadeUpTokensEndNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := w.signIn()
	other := w.signIn()
	id := tokens.Grant.ID
	forged := []string{
		grant.Mint(grant.RefreshPrefix, id+strings.Repeat("A", 43)+strings.Repeat("A", 22)),
		grant.Mint(grant.RefreshPrefix, id+strings.TrimPrefix(other.Refresh, grant.RefreshPrefix)[24:89]),
	}
	for _, token := range append(forged, tokens.Refresh[:len(tokens.Refresh)-1], tokens.Refresh+"A",
		strings.ToUpper(tokens.Refresh), tokens.Access, "") {
		again, err := w.refresh(token)
		isInvalid(t, "made up", again, err)
		if done, err := w.Revoke(t.Context(), token, client); token != tokens.Access && (done || err != nil) {
			t.Errorf("revoked by %.12s…: %v", token, err)
		}
	}
	tokens = w.signIn()
	again, err := w.refresh(grant.Mint(grant.RefreshPrefix, tokens.Grant.ID+strings.Repeat("A", 65)))
	isInvalid(t, "made up", again, err)
	w.works(tokens.Access)
	w.refreshed(tokens.Refresh)
}

func TestRefreshOfAnotherClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.signIn()
	second := w.refreshed(first.Refresh)
	w.clock.Add(time.Hour)
	for _, token := range []string{first.Refresh, second.Refresh} {
		for _, c := range []string{"client-2", ""} {
			again, err := w.Refresh(t.Context(), token, grant.Refresh{ClientID: c})
			isInvalid(t, "client "+c, again, err)
		}
	}
	w.refreshed(second.Refresh)
}

func TestScopesOnlyShrink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []string{"write:issue", "read:repository"}
	for asked, want := range map[string][]string{
		"":                                all,
		"write:issue":                     {"write:issue"},
		"read:issue":                      {"read:issue"},
		"write:repository":                {"read:repository"},
		"read:issue write:issue":          {"read:issue", "write:issue"},
		"write:issue write:issue":         {"write:issue"},
		"read:repository write:admin all": {"read:repository"},
		"write:repository read:repository openid offline_access": {"read:repository"},
		"write:admin":           all, // nothing left
		"openid offline_access": all,
		"all":                   all,
		"write issue write: :":  all,
		"admin:issue issue":     all,
	} {
		tokens, err := w.Refresh(t.Context(), w.signIn().Refresh,
			grant.Refresh{ClientID: client, Scopes: strings.Fields(asked)})
		if err != nil || !slices.Equal(tokens.Scopes, want) {
			t.Errorf("asked %q: %v, %v; want %v", asked, tokens, err, want)
			continue
		}
		g, err := w.Verify(t.Context(), tokens.Access)
		if err != nil || !slices.Equal(g.Scopes, want) {
			t.Errorf("asked %q: the token has %v, %v", asked, g, err)
		}
		if next := w.refreshed(tokens.Refresh); !slices.Equal(next.Scopes, all) ||
			!slices.Equal(next.Grant.Scopes, all) {
			t.Errorf("after %q the grant has shrunk: %v", asked, next.Scopes)
		}
	}
}

func TestRefreshForAnotherResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := w.signIn()
	got, err := w.Refresh(t.Context(), tokens.Refresh,
		grant.Refresh{ClientID: client, Resource: "https://aegis.example/mcp/team"})
	if !errors.Is(err, grant.ErrTarget) || got != nil {
		t.Errorf("%v", err)
	}
	for _, same := range []string{"", resource, resource + "/"} {
		tokens, err = w.Refresh(t.Context(), tokens.Refresh, grant.Refresh{ClientID: client, Resource: same})
		if err != nil {
			t.Fatalf("%q: %v", same, err)
		}
	}
}

func TestLifetimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := w.signIn()
	w.clock.Add(time.Hour - time.Nanosecond)
	w.works(tokens.Access)
	w.clock.Add(time.Nanosecond)
	w.dead(tokens.Access)
	tokens = w.refreshed(tokens.Refresh)
	for range 10 {
		w.clock.Add(23 * time.Hour)
		tokens = w.refreshed(tokens.Refresh)
	}
	// 231 hours are gone; the grant ends at 240, whatever is refreshed.
	if want := tokens.Grant.Created.Add(life.Max); !tokens.Grant.Expires.Equal(want) {
		t.Errorf("expires %v, want %v", tokens.Grant.Expires, want)
	}
	w.clock.Add(8*time.Hour + 30*time.Minute)
	tokens = w.refreshed(tokens.Refresh)
	if tokens.ExpiresIn != 30*time.Minute {
		t.Errorf("the last access token is said to live for %v", tokens.ExpiresIn)
	}
	w.clock.Add(30 * time.Minute)
	w.dead(tokens.Access)
	again, err := w.refresh(tokens.Refresh)
	isInvalid(t, "at the end", again, err)

	idle := w.signIn()
	w.clock.Add(life.Refresh)
	again, err = w.refresh(idle.Refresh)
	isInvalid(t, "not used in time", again, err)
}

func TestGrantsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	l := life
	l.Max = 0
	w := newWorld(t, withLife(l))
	tokens := w.signIn()
	for range 800 {
		w.clock.Add(23 * time.Hour)
		tokens = w.refreshed(tokens.Refresh)
	}
	if ids := w.ids(alice); !slices.Equal(ids, []string{tokens.Grant.ID}) {
		t.Errorf("after two years the person sees %v", ids)
	}
}

func TestAccessTokensDoNotOutliveTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withLife(lifetimes{Access: 24 * time.Hour, Refresh: time.Hour}))
	if tokens := w.signIn(); tokens.ExpiresIn != time.Hour {
		t.Errorf("%v", tokens.ExpiresIn)
	}
}

func TestNoGrace(t *testing.T) {
	t.Parallel()
	l := life
	l.Grace = 0
	w := newWorld(t, withLife(l))
	first := w.signIn()
	second := w.refreshed(first.Refresh)
	again, err := w.refresh(first.Refresh)
	isInvalid(t, "used twice", again, err)
	w.dead(second.Access)
}

// TestParallelRefreshes: 24 processes that share a token stay together.
func TestParallelRefreshes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.signIn().Refresh
	for generation := range 4 {
		var mu sync.Mutex
		successors := map[string]int{}
		access := map[string]bool{}
		racers(24, func(int) {
			tokens, err := w.refresh(token)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			successors[tokens.Refresh]++
			access[tokens.Access] = true
		})
		if len(successors) != 1 || len(access) != 24 {
			t.Fatalf("generation %d: %d successors, %d access tokens", generation, len(successors), len(access))
		}
		for token = range successors {
		}
		for a := range access {
			w.works(a)
		}
	}
	w.wantKinds("issued refreshed refreshed refreshed refreshed")
}

func TestAllow(t *testing.T) {
	t.Parallel()
	outage := errors.New("Gitea cannot be reached")
	w := newWorld(t)
	tokens := w.signIn()
	asked := 0
	allow := func(err error) grant.Refresh {
		return grant.Refresh{ClientID: client, Allow: func(_ context.Context, g grant.Grant) error {
			asked++
			if g.ID != tokens.Grant.ID || g.UserID != alice || g.ClientID != client {
				t.Errorf("asked about %+v", g)
			}
			return err
		}}
	}
	for range 3 {
		got, err := w.Refresh(t.Context(), tokens.Refresh, allow(outage))
		if err != outage || got != nil { // unchanged
			t.Errorf("%v", err)
		}
	}
	w.works(tokens.Access)
	old := tokens.Refresh
	tokens, err := w.Refresh(t.Context(), old, allow(nil))
	if err != nil || asked != 4 {
		t.Fatalf("asked %d times, %v", asked, err)
	}
	again, err := w.Refresh(t.Context(), grant.Mint(grant.RefreshPrefix, strings.Repeat("a", 89)), allow(nil))
	isInvalid(t, "unknown", again, err)
	again, err = w.Refresh(t.Context(), tokens.Refresh, grant.Refresh{ClientID: "client-2", Allow: allow(nil).Allow})
	isInvalid(t, "another client", again, err)
	if asked != 4 {
		t.Error("asked for a token that is not good")
	}
	w.kinds()
	denied := fmt.Errorf("%w: no member of acme", grant.ErrDenied)
	again, err = w.Refresh(t.Context(), tokens.Refresh, allow(denied))
	isInvalid(t, "denied", again, err)
	if !errors.Is(err, grant.ErrDenied) {
		t.Errorf("%v does not say why", err)
	}
	w.wantKinds("denied")
	w.dead(tokens.Access)
	again, err = w.Refresh(t.Context(), tokens.Refresh, allow(nil))
	isInvalid(t, "afterwards", again, err)
}

// TestGrantChangesWhileAskingAllow: the answer is of what is there afterwards.
func TestGrantChangesWhileAskingAllow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.signIn()
	second := w.refreshed(first.Refresh)
	var third *grant.Tokens
	got, err := w.Refresh(t.Context(), first.Refresh,
		grant.Refresh{ClientID: client, Allow: func(context.Context, grant.Grant) error {
			third = w.refreshed(second.Refresh)
			return nil
		}})
	if err != nil || got.Refresh != third.Refresh {
		t.Errorf("not the current token: %v", err)
	}
	again, err := w.Refresh(t.Context(), third.Refresh,
		grant.Refresh{ClientID: client, Allow: func(context.Context, grant.Grant) error {
			return w.End(context.Background(), first.Grant.ID)
		}})
	isInvalid(t, "ended meanwhile", again, err)
}

// TestReuseIsKnownUnderEveryKey of the ring.
func TestReuseIsKnownUnderEveryKey(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{keyB, keyA}, {keyA, keyB}} {
		before := newWorld(t)
		first := before.signIn()
		before.clock.Add(time.Hour)
		second := before.refreshed(first.Refresh)
		before.clock.Add(time.Hour)
		third := before.refreshed(second.Refresh)
		w := newWorld(t, withStore(before.store), withClock(before.clock), withRing(ring(t, keys...)))
		again, err := w.refresh(first.Refresh)
		isInvalid(t, "reused", again, err)
		w.dead(third.Access)
	}
}

// TestKeysChangeUnderRefreshes: a change of keys logs nobody out, in the grace
// neither.
func TestKeysChangeUnderRefreshes(t *testing.T) {
	t.Parallel()
	before := newWorld(t)
	first := before.signIn()
	second := before.refreshed(first.Refresh)
	both := newWorld(t, withStore(before.store), withClock(before.clock), withRing(ring(t, keyB, keyA)))
	if got := both.refreshed(first.Refresh); grant.Secret(got.Refresh) != grant.Secret(second.Refresh) {
		t.Error("the grace gives another successor")
	}
	third := both.refreshed(second.Refresh)
	if got := both.refreshed(first.Refresh); got.Refresh != third.Refresh {
		t.Error("the grace does not reach over the change")
	}
	only := newWorld(t, withStore(before.store), withClock(before.clock), withRing(ring(t, keyB)))
	again, err := only.refresh(first.Refresh) // its successor cannot be derived any more
	isInvalid(t, "with its key gone", again, err)
	fourth := only.refreshed(third.Refresh)
	only.works(fourth.Access)
	only.clock.Add(time.Hour)
	again, err = only.refresh(third.Refresh)
	isInvalid(t, "reused", again, err)
	only.dead(fourth.Access)
}
