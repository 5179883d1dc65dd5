package grant_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"aegis/proxy/oauth/grant"
)

func TestCodeBecomesTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := w.signIn()
	want := grant.Grant{
		ID: tokens.Grant.ID, ClientID: client, ClientName: "A client", Verified: true, UserID: alice, Login: "alice",
		Scopes: []string{"write:issue", "read:repository"}, Resource: resource,
		Created: w.clock.Now(), LastUsed: w.clock.Now(), Expires: w.clock.Now().Add(life.Refresh),
	}
	if tokens.ExpiresIn != time.Hour || !reflect.DeepEqual(tokens.Scopes, want.Scopes) || !reflect.DeepEqual(tokens.Grant, want) {
		t.Errorf("%+v", tokens)
	}
	got, err := w.Verify(t.Context(), tokens.Access)
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if len(want.ID) != 24 {
		t.Errorf("id %q", want.ID)
	}
	w.wantKinds("issued")
}

func TestCodesAreBound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*grant.Redeem)
		want   error
		spent  bool // the right request comes too late
	}{
		"as it should be":  {func(*grant.Redeem) {}, nil, true},
		"no redirect URI":  {func(r *grant.Redeem) { r.RedirectURI = "" }, nil, true},
		"no resource":      {func(r *grant.Redeem) { r.Resource = "" }, nil, true},
		"slash after it":   {func(r *grant.Redeem) { r.Resource += "/" }, nil, true},
		"capitals":         {func(r *grant.Redeem) { r.Resource = "HTTPS://Aegis.Example/mcp" }, nil, true},
		"its own port":     {func(r *grant.Redeem) { r.Resource = "https://aegis.example:443/mcp" }, nil, true},
		"another client":   {func(r *grant.Redeem) { r.ClientID = "client-2" }, grant.ErrInvalid, false},
		"no client":        {func(r *grant.Redeem) { r.ClientID = "" }, grant.ErrInvalid, false},
		"another redirect": {func(r *grant.Redeem) { r.RedirectURI += "/x" }, grant.ErrInvalid, true},
		"another port":     {func(r *grant.Redeem) { r.RedirectURI = "http://127.0.0.1:1235/callback" }, grant.ErrInvalid, true},
		"no verifier":      {func(r *grant.Redeem) { r.Verifier = "" }, grant.ErrInvalid, true},
		"the challenge":    {func(r *grant.Redeem) { r.Verifier = challenge(verifier) }, grant.ErrInvalid, true},
		"other verifier":   {func(r *grant.Redeem) { r.Verifier = strings.ToUpper(verifier) }, grant.ErrInvalid, true},
		"another path":     {func(r *grant.Redeem) { r.Resource = "https://aegis.example/mcp/team" }, grant.ErrTarget, false},
		"another host":     {func(r *grant.Redeem) { r.Resource = "https://aegis.example.evil/mcp" }, grant.ErrTarget, false},
		"user info":        {func(r *grant.Redeem) { r.Resource = "https://x@aegis.example/mcp" }, grant.ErrTarget, false},
		"two slashes":      {func(r *grant.Redeem) { r.Resource += "//" }, grant.ErrTarget, false},
		"a fragment":       {func(r *grant.Redeem) { r.Resource += "#" }, grant.ErrTarget, false},
		"a query":          {func(r *grant.Redeem) { r.Resource += "?x" }, grant.ErrTarget, false},
		"an escape":        {func(r *grant.Redeem) { r.Resource = "https://aegis.example/%6dcp" }, grant.ErrTarget, false},
		"no URL":           {func(r *grant.Redeem) { r.Resource = ":" }, grant.ErrTarget, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			code := w.code()
			r := aRedeem()
			c.change(&r)
			tokens, err := w.Redeem(t.Context(), code, r)
			if !errors.Is(err, c.want) || (tokens == nil) != (c.want != nil) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if _, err := w.Redeem(t.Context(), code, aRedeem()); (err != nil) != c.spent {
				t.Errorf("the right request afterwards: %v", err)
			}
			if tokens == nil && c.spent && len(w.allIDs()) != 0 {
				t.Error("a refused code left a grant")
			}
		})
	}
}

// TestVerifiersHaveTheirForm: RFC 7636 section 4.1, also when the challenge fits.
func TestVerifiersHaveTheirForm(t *testing.T) {
	t.Parallel()
	for v, ok := range map[string]bool{
		strings.Repeat("a", 43):              true,
		strings.Repeat("a", 128):             true,
		strings.Repeat("a", 40) + "-._~":     true,
		strings.Repeat("a", 42):              false,
		strings.Repeat("a", 129):             false,
		"":                                   false,
		strings.Repeat("a", 43) + " ":        false,
		strings.Repeat("a", 43) + "\n":       false,
		strings.Repeat("ü", 43):              false,
		strings.Repeat("a", 43) + "/":        false,
		strings.Repeat("a", 43) + "=":        false,
		strings.Repeat("a", 20000) + "\x00b": false,
	} {
		w := newWorld(t)
		c := aCode()
		c.Challenge = challenge(v)
		code, err := w.IssueCode(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		r := aRedeem()
		r.Verifier = v
		if _, err := w.Redeem(t.Context(), code, r); (err == nil) != ok {
			t.Errorf("verifier of %d bytes: %v", len(v), err)
		}
	}
}

func TestCodesNeedWhatBindsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, change := range map[string]func(*grant.Code){
		"no client":        func(c *grant.Code) { c.ClientID = "" },
		"no redirect":      func(c *grant.Code) { c.RedirectURI = "" },
		"no person":        func(c *grant.Code) { c.UserID = 0 },
		"no challenge":     func(c *grant.Code) { c.Challenge = "" },
		"plain challenge":  func(c *grant.Code) { c.Challenge = verifier },
		"short challenge":  func(c *grant.Code) { c.Challenge = c.Challenge[:42] },
		"padded challenge": func(c *grant.Code) { c.Challenge += "=" },
		"loose bits":       func(c *grant.Code) { c.Challenge = strings.Repeat("A", 42) + "B" },
	} {
		c := aCode()
		change(&c)
		if code, err := w.IssueCode(t.Context(), c); err == nil || code != "" {
			t.Errorf("%s: issued", name)
		}
	}
	if d := dump(t, w.store); d != "" {
		t.Errorf("left: %s", d)
	}
}

func TestCodesExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	early, late := w.code(), w.code()
	w.clock.Add(time.Minute - time.Nanosecond)
	if _, err := w.Redeem(t.Context(), early, aRedeem()); err != nil {
		t.Error(err)
	}
	w.clock.Add(time.Nanosecond)
	tokens, err := w.Redeem(t.Context(), late, aRedeem())
	isInvalid(t, "a minute later", tokens, err)
}

func TestReplayedCodeEndsTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code()
	tokens, err := w.Redeem(t.Context(), code, aRedeem())
	if err != nil {
		t.Fatal(err)
	}
	tokens = w.refreshed(tokens.Refresh)
	other := w.signIn()
	w.works(tokens.Access)
	w.clock.Add(9 * time.Minute)
	w.kinds()
	for _, c := range []string{"another client", client} { // whoever it is: the code has leaked
		again, err := w.Redeem(t.Context(), code, grant.Redeem{ClientID: c})
		isInvalid(t, c, again, err)
	}
	w.wantKinds("code_replayed")
	w.dead(tokens.Access)
	again, err := w.refresh(tokens.Refresh)
	isInvalid(t, "refresh", again, err)
	w.works(other.Access)
}

func TestReplayIsRememberedForTenMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code()
	tokens, err := w.Redeem(t.Context(), code, aRedeem())
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Add(10 * time.Minute)
	again, err := w.Redeem(t.Context(), code, aRedeem())
	isInvalid(t, "after the mark", again, err)
	w.works(tokens.Access)
}

// TestParallelRedemptions: one gets tokens, and the others are replays.
func TestParallelRedemptions(t *testing.T) {
	t.Parallel()
	for range 20 {
		w := newWorld(t)
		code := w.code()
		var mu sync.Mutex
		var got []*grant.Tokens
		racers(32, func(int) {
			tokens, err := w.Redeem(context.Background(), code, aRedeem())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got = append(got, tokens)
			} else {
				isInvalid(t, "a loser", tokens, err)
			}
		})
		if len(got) != 1 {
			t.Fatalf("%d redemptions succeeded", len(got))
		}
		w.dead(got[0].Access)
		if ids := w.allIDs(); len(ids) != 0 {
			t.Errorf("grants are left: %v", ids)
		}
		if k := w.kinds(); k != "issued code_replayed" && k != "code_replayed issued" {
			t.Errorf("events %q", k)
		}
	}
}

// TestParallelWrongRedemptions: a code that was never good for anything ends no
// grant and tells so once.
func TestParallelWrongRedemptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code()
	r := aRedeem()
	r.Verifier = strings.Repeat("x", 43)
	racers(32, func(int) {
		tokens, err := w.Redeem(context.Background(), code, r)
		isInvalid(t, "a wrong verifier", tokens, err)
	})
	w.wantKinds("code_refused")
}
