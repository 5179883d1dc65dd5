package members_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy/members"
)

// gitea answers with what people are in.
type gitea struct {
	mu          sync.Mutex
	asked       int
	orgs, teams []string
	err         error
}

func (g *gitea) Memberships(context.Context, proxy.Credential) (orgs, teams []string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return g.orgs, g.teams, g.err
}

func (g *gitea) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

type rig struct {
	*gitea
	now time.Time
	dir *members.Directory
}

func newRig() *rig {
	r := &rig{gitea: &gitea{}, now: time.Unix(1_700_000_000, 0)}
	r.dir = members.NewDirectory(r.gitea, func() time.Time { return r.now })
	return r
}

func kind(err error) proxy.Kind {
	var e *proxy.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func alice() *proxy.Identity {
	return &proxy.Identity{Login: "Alice", Mode: proxy.ModeOAuth, UserID: 7}
}

func TestRules(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.orgs, r.teams = []string{"acme"}, []string{"acme/developers"}
	static := &proxy.Identity{Login: "bot", Mode: proxy.ModeStatic, TokenName: "ci"}
	for name, tc := range map[string]struct {
		rules config.Members
		id    *proxy.Identity
		in    bool
		asks  bool
	}{
		"nobody":               {config.Members{}, alice(), false, false},
		"no identity":          {config.Members{Everyone: true}, nil, false, false},
		"everyone":             {config.Members{Everyone: true}, alice(), true, false},
		"login in any case":    {config.Members{Logins: []string{"aLICE"}}, alice(), true, false},
		"other login":          {config.Members{Logins: []string{"alic", "alicea"}}, alice(), false, false},
		"token":                {config.Members{Tokens: []string{"ci"}}, static, true, false},
		"token's other case":   {config.Members{Tokens: []string{"CI"}}, static, false, false},
		"token name as login":  {config.Members{Tokens: []string{"Alice"}}, alice(), false, false},
		"no token name":        {config.Members{Tokens: []string{""}}, alice(), false, false},
		"organization":         {config.Members{Organizations: []string{"ACME"}}, alice(), true, true},
		"other organization":   {config.Members{Organizations: []string{"acme2"}}, alice(), false, true},
		"team":                 {config.Members{Teams: []string{"Acme/Developers"}}, alice(), true, true},
		"same team elsewhere":  {config.Members{Teams: []string{"other/developers"}}, alice(), false, true},
		"organization as team": {config.Members{Teams: []string{"acme/acme"}}, alice(), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r.dir = members.NewDirectory(r.gitea, nil)
			before := r.asked
			err := members.NewGate(r.dir, tc.rules).Enter(context.Background(), tc.id)
			if (err == nil) != tc.in || err != nil && kind(err) != proxy.KindForbidden {
				t.Errorf("error is %v", err)
			}
			if (r.asked > before) != tc.asks {
				t.Errorf("Gitea was asked: %v", r.asked > before)
			}
		})
	}
}

func TestRememberedForMinutesAndAskedAgainAfterDenials(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.orgs = []string{"acme"}
	g := members.NewGate(r.dir, config.Members{Organizations: []string{"acme"}})
	enter := func() error { return g.Enter(context.Background(), alice()) }
	for range 10 {
		if err := enter(); err != nil {
			t.Fatal(err)
		}
	}
	if r.asked != 1 {
		t.Fatalf("asked %d times", r.asked)
	}
	// Gitea denies a call: the person has left. The next call asks, but not sooner
	// than a moment after the last question.
	r.set(func() { r.orgs = nil })
	denied := r.dir.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return nil, &proxy.Error{Kind: proxy.KindNotFound, Status: 404}
	}))
	_, _ = denied.Handle(context.Background(), &proxy.Call{Identity: alice()})
	if err := enter(); err != nil || r.asked != 1 {
		t.Errorf("asked %d times in one moment, %v", r.asked, err)
	}
	r.now = r.now.Add(6 * time.Second)
	if err := enter(); kind(err) != proxy.KindForbidden || r.asked != 2 {
		t.Errorf("after a denial: %v, asked %d times", err, r.asked)
	}
	// A denied person who is added gets in soon, and many attempts are one question.
	r.set(func() { r.orgs = []string{"acme"} })
	for range 50 {
		if enter() == nil {
			t.Fatal("let in without asking")
		}
	}
	r.now = r.now.Add(6 * time.Second)
	if err := enter(); err != nil || r.asked != 3 {
		t.Errorf("%v, asked %d times", err, r.asked)
	}
	// Without any denial a person who has left is out within the time.
	r.set(func() { r.orgs = nil })
	r.now = r.now.Add(3 * time.Minute)
	if err := enter(); kind(err) != proxy.KindForbidden {
		t.Errorf("after three minutes: %v", err)
	}
}

func TestOurOwnRefusalsRaiseNoDoubt(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.orgs = []string{"acme"}
	g := members.NewGate(r.dir, config.Members{Organizations: []string{"acme"}})
	_ = g.Enter(context.Background(), alice())
	refuse := r.dir.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return nil, proxy.NewError(proxy.KindForbidden, "ours", nil)
	}))
	_, _ = refuse.Handle(context.Background(), &proxy.Call{Identity: alice()})
	r.now = r.now.Add(10 * time.Second)
	if _ = g.Enter(context.Background(), alice()); r.asked != 1 {
		t.Errorf("asked %d times", r.asked)
	}
}

func TestNobodyEntersWhileGiteaIsAway(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.err = proxy.NewError(proxy.KindUpstreamUnavailable, "down", nil)
	g := members.NewGate(r.dir, config.Members{Organizations: []string{"acme"}})
	if err := g.Enter(context.Background(), alice()); kind(err) != proxy.KindUpstreamUnavailable {
		t.Errorf("error is %v", err)
	}
	r.set(func() { r.err = &proxy.Error{Kind: proxy.KindForbidden, Status: 403} })
	r.now = r.now.Add(6 * time.Second)
	if err := g.Enter(context.Background(), alice()); kind(err) != proxy.KindForbidden {
		t.Errorf("error is %v", err)
	}
	r.set(func() { r.err, r.orgs = nil, []string{"acme"} })
	r.now = r.now.Add(6 * time.Second)
	if err := g.Enter(context.Background(), alice()); err != nil {
		t.Errorf("error is %v", err)
	}
}

// TestManyPeople: memory is bounded, and nobody gets another's answer.
func TestManyPeople(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.orgs = []string{"acme"}
	g := members.NewGate(r.dir, config.Members{Organizations: []string{"acme"}})
	for i := range 25_000 {
		id := &proxy.Identity{Login: fmt.Sprint("u", i), Mode: proxy.ModeOAuth, UserID: int64(i + 1)}
		if err := g.Enter(context.Background(), id); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.dir.Known(); n > 10_000 {
		t.Errorf("%d people are remembered", n)
	}
}

func TestOneQuestionForManyCalls(t *testing.T) {
	t.Parallel()
	r := newRig()
	r.orgs = []string{"acme"}
	g := members.NewGate(r.dir, config.Members{Organizations: []string{"acme"}})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if err := g.Enter(context.Background(), alice()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if r.asked != 1 {
		t.Errorf("asked %d times", r.asked)
	}
}
