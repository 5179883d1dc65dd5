package limit_test

import (
	"context"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/limit"
)

// TestAnotherLoginIsNoFreshStart: Gitea lets people rename themselves.
func TestAnotherLoginIsNoFreshStart(t *testing.T) {
	t.Parallel()
	b := newBench(config.Limits{Write: perSecond(1, 2)}, limit.Options{})
	h := b.l.Stage()(ok)
	passed := 0
	for _, login := range []string{"mallory", "mallory", "mallory", "mallory2", "mallory3"} {
		id := &proxy.Identity{Login: login, Mode: proxy.ModeOAuth, UserID: 9}
		if _, err := h.Handle(context.Background(), &proxy.Call{Identity: id, Tool: writer}); err == nil {
			passed++
		}
	}
	if passed != 2 {
		t.Errorf("%d calls of one person passed", passed)
	}
	if _, err := h.Handle(context.Background(), &proxy.Call{Identity: &proxy.Identity{Login: "mallory", Mode: proxy.ModeOAuth, UserID: 10}, Tool: writer}); err != nil {
		t.Errorf("who has the login now: %v", err)
	}
}
