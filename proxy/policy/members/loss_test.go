package members_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy/members"
)

// changing tells memberships that a test changes.
type changing struct {
	orgs  []string
	asked int
}

func (c *changing) Memberships(context.Context, proxy.Credential) (orgs, teams []string, err error) {
	c.asked++
	return slices.Clone(c.orgs), nil, nil
}

// TestLossIsTold: who sees a membership end tells, once, and whoever hears of it
// asks again.
func TestLossIsTold(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	gitea := &changing{orgs: []string{"acme", "other"}}
	id := &proxy.Identity{Login: "alice", UserID: 7, Mode: proxy.ModeOAuth}
	var told []string
	first, second := members.NewDirectory(gitea, clock), members.NewDirectory(gitea, clock)
	first.OnLoss(func(key string) { told = append(told, key) })
	rules := config.Members{Organizations: []string{"acme"}}
	a, b := members.NewGate(first, rules), members.NewGate(second, rules)
	enter := func(g *members.Gate, want bool) {
		t.Helper()
		if err := g.Enter(t.Context(), id); (err == nil) != want {
			t.Errorf("let in is not %v: %v", want, err)
		}
	}
	enter(a, true)
	enter(b, true)
	gitea.orgs = []string{"acme", "new"} // one more, one less
	now = now.Add(3 * time.Minute)
	enter(a, true)
	enter(b, true)
	gitea.orgs = []string{"new"}
	now = now.Add(10 * time.Second)
	first.Doubt(id)
	enter(a, false)
	enter(b, true) // it has not heard yet
	if len(told) != 2 || told[0] != told[1] {
		t.Fatalf("told %q", told)
	}
	second.Recheck("nobody")
	second.Recheck(told[1])
	enter(b, false)
	asked := gitea.asked
	enter(b, false)
	if gitea.asked != asked {
		t.Error("Gitea is asked for each call")
	}
}
