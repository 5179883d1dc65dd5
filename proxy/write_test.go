package proxy_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aegis/proxy"
)

func TestWriteError(t *testing.T) {
	t.Parallel()
	x := &proxy.RequestInfo{RequestID: "R1"}
	for _, c := range []struct {
		x           *proxy.RequestInfo
		err         *proxy.Error
		body, after string
	}{
		{x, proxy.NewError(proxy.KindForbidden, `not "here" <b>`, errors.New("secret cause")),
			`{"error":{"kind":"forbidden","message":"not \"here\" \u003cb\u003e","request_id":"R1"}}`, ""},
		{nil, proxy.NewError(proxy.KindNotFound, "nothing", nil), `{"error":{"kind":"not_found","message":"nothing","request_id":""}}`, ""},
		{x, &proxy.Error{Kind: proxy.KindRateLimited, Public: "later", RetryAfter: 1100 * time.Millisecond},
			`{"error":{"kind":"rate_limited","message":"later","request_id":"R1","retry_after":2}}`, "2"},
	} {
		w := httptest.NewRecorder()
		proxy.WriteError(w, c.x, http.StatusTeapot, c.err)
		h := w.Header()
		if w.Code != http.StatusTeapot || w.Body.String() != c.body+"\n" || h.Get("Retry-After") != c.after || h.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s%v", w.Code, w.Body, h)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "1.5": 0, "0": 0, " 7 ": 7 * time.Second, "3600": time.Minute, "99999999999999999999": 0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0, "Sun, 01 Mar 2027 12:00:00 GMT": time.Minute,
	} {
		if got := proxy.RetryAfter(http.Header{"Retry-After": {text}}, now, time.Minute); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for wait, want := range map[time.Duration]int64{0: 1, 1: 1, time.Second: 1, time.Second + 1: 2, -time.Hour: 1} {
		if got := proxy.Seconds(wait); got != want {
			t.Errorf("%s: %d seconds, want %d", wait, got, want)
		}
	}
}
