package limit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/limit"
)

func addressLimited(l config.Limit, now *time.Time) http.Handler {
	cfg := config.Default().Limits
	cfg.Address = l
	return limit.New(cfg, limit.Options{Now: func() time.Time { return *now }}).Address(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
}

func fromAddress(addr string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	return r.WithContext(proxy.WithRequestInfo(r.Context(), &proxy.RequestInfo{RequestID: "req-1", Addr: addr}))
}

// TestRateLimitFields: every answer says what is left, not only the one that is
// refused.
func TestRateLimitFields(t *testing.T) {
	t.Parallel()
	now := start
	h := addressLimited(perSecond(2, 4), &now)
	for i, want := range []struct {
		after  time.Duration
		status int
		field  string
	}{
		{0, 204, `"address";r=3;t=1`}, {0, 204, `"address";r=2;t=1`}, {0, 204, `"address";r=1;t=2`}, {0, 204, `"address";r=0;t=2`},
		{0, 429, `"address";r=0;t=1`}, {time.Hour, 204, `"address";r=3;t=1`},
	} {
		now = now.Add(want.after)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, fromAddress("192.0.2.1"))
		if w.Code != want.status || w.Header().Get("RateLimit") != want.field || w.Header().Get("RateLimit-Policy") != `"address";q=4;w=2` ||
			(w.Header().Get("Retry-After") != "") != (want.status == 429) {
			t.Errorf("request %d: %d %v, want %d and %s", i, w.Code, w.Header(), want.status, want.field)
		}
	}
	w := httptest.NewRecorder()
	addressLimited(config.Limit{}, &now).ServeHTTP(w, fromAddress("192.0.2.1"))
	if w.Code != 204 || len(w.Header()) != 0 {
		t.Errorf("without a limit: %d %v", w.Code, w.Header())
	}
}

// TestAnswersDoNotShareFields: a handler that adds to a field changes no other
// answer.
func TestAnswersDoNotShareFields(t *testing.T) {
	t.Parallel()
	now := start
	h := addressLimited(perSecond(2, 4), &now)
	for i := range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, fromAddress(fmt.Sprintf("192.0.2.%d", i)))
		w.Header().Add("RateLimit-Policy", `"other";q=1`)
		if got := w.Header().Values("RateLimit-Policy"); len(got) != 2 {
			t.Errorf("answer %d: %v", i, got)
		}
	}
}

type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header         { return n.h }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}

func TestRateLimitFieldsAreCheap(t *testing.T) {
	now := start
	h, r, w := addressLimited(perSecond(1_000_000, 1_000_000), &now), fromAddress("192.0.2.1"), nowhere{http.Header{}}
	h.ServeHTTP(w, r) // makes the bucket
	if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > 4 {
		t.Errorf("%v allocations for each request", n)
	}
}
