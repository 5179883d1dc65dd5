package limit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/limit"
)

func ExampleLimiter_Stage() {
	cfg := config.Default().Limits
	cfg.Identity = config.Limit{Rate: config.Rate{Count: 2, Per: time.Minute}}
	noon := func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }
	gitea := proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Status: 200}, nil
	})
	h := proxy.Chain(gitea, limit.New(cfg, limit.Options{Now: noon}).Stage())
	for range 3 {
		_, err := h.Handle(context.Background(), &proxy.Call{Identity: &proxy.Identity{Login: "alice"}})
		var refused *proxy.Error
		if errors.As(err, &refused) {
			fmt.Println(refused.Kind, refused.RetryAfter)
		} else {
			fmt.Println("ok")
		}
	}
	// Output:
	// ok
	// ok
	// rate_limited 30s
}
