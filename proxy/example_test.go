package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"aegis/proxy"
)

// A stage sees a call on the way down and its result on the way back.
func ExampleChain() {
	says := func(name string) proxy.Stage {
		return func(next proxy.Handler) proxy.Handler {
			return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
				fmt.Println(name, c.Name)
				defer fmt.Println(name, "done")
				return next.Handle(ctx, c)
			})
		}
	}
	gitea := proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Status: 200}, nil
	})
	h := proxy.Chain(gitea, says("audit"), nil, says("limit")) // nil: switched off
	res, err := h.Handle(context.Background(), &proxy.Call{Name: "gitea_issue_get"})
	fmt.Println(res.Status, err)
	// Output:
	// audit gitea_issue_get
	// limit gitea_issue_get
	// limit done
	// audit done
	// 200 <nil>
}

func ExampleWriteError() {
	w := httptest.NewRecorder()
	err := proxy.NewError(proxy.KindRateLimited, "too many requests; come back after retry_after seconds", nil)
	err.RetryAfter = 1500 * time.Millisecond
	proxy.WriteError(w, &proxy.RequestInfo{RequestID: "R7"}, http.StatusTooManyRequests, err)
	fmt.Println(w.Code, w.Header().Get("Retry-After"))
	fmt.Print(w.Body)
	// Output:
	// 429 2
	// {"error":{"kind":"rate_limited","message":"too many requests; come back after retry_after seconds","request_id":"R7","retry_after":2}}
}

// A stage that renders appends to what the caller has begun.
func ExampleReply() {
	r := proxy.NewReply([]byte(`{"text":`), nil)
	r.End(append(r.Begin(16), `"a \"word\""`...), len(`a "word"`))
	fmt.Printf("%s}, a text of %d bytes\n", r.Bytes(), r.Size())
	// Output: {"text":"a \"word\""}, a text of 8 bytes
}
