package limit

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"aegis/config"
	"aegis/proxy"
)

// Address returns next behind the limit by client address. Requests must carry a
// [proxy.Exchange]; one without is answered with 500, as it means that the edge
// was left out. A refusal is a 429 (RFC 6585 section 4) with Retry-After and the
// fields of draft-ietf-httpapi-ratelimit-headers-10.
func (l *Limiter) Address(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := proxy.ExchangeFrom(r.Context())
		if x == nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		if wait := l.admit(x.Addr); wait > 0 {
			l.refused(BucketAddress)
			tooMany(w, x.RequestID, wait, config.Limit(l.cfg.Address))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit takes a token of the address and returns 0, or how long it must wait.
func (l *Limiter) admit(addr string) time.Duration {
	if l.address == nil {
		return 0
	}
	one := [1]*bucket{l.address.bucket(addressKey(addr))}
	_, wait := take(l.now(), one[:])
	return wait
}

func tooMany(w http.ResponseWriter, requestID string, wait time.Duration, l config.Limit) {
	after := seconds(wait)
	h := w.Header()
	h.Set("Retry-After", strconv.FormatInt(after, 10))
	// The quota is what the bucket holds, its window the time to fill it.
	window := seconds(time.Duration(float64(l.Size()) / l.Rate.PerSecond() * float64(time.Second)))
	h.Set("RateLimit-Policy", fmt.Sprintf(`"address";q=%d;w=%d`, l.Size(), window))
	h.Set("RateLimit", fmt.Sprintf(`"address";r=0;t=%d`, after))
	h.Set("Content-Type", "application/json")
	body, err := json.Marshal(map[string]any{"error": map[string]any{
		"kind": proxy.KindRateLimited, "message": "too many requests from your address; come back after retry_after seconds",
		"request_id": requestID, "retry_after": after}})
	if err != nil { // texts and numbers always marshal
		body = []byte(`{"error":{"kind":"rate_limited"}}`)
	}
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(append(body, '\n')) // the client has gone when this fails
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int64 {
	return max(1, int64(math.Ceil(d.Seconds())))
}
