package limit

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"aegis/config"
	"aegis/proxy"
)

// Address returns next behind the limit by client address. Requests must carry a
// [proxy.RequestInfo]; one without is answered with 500, as it means that the edge
// was left out. A refusal is a 429 (RFC 6585 section 4) with Retry-After. While
// the limit is on, every answer has the fields of
// draft-ietf-httpapi-ratelimit-headers-10.
func (l *Limiter) Address(next http.Handler) http.Handler { return l.AddressBut(nil, next) }

// AddressBut is [Limiter.Address] for all requests but those that are free; nil: none is.
func (l *Limiter) AddressBut(free func(*http.Request) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if free != nil && free(r) {
			next.ServeHTTP(w, r)
			return
		}
		x := proxy.RequestInfoFrom(r.Context())
		if x == nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		left, wait := l.admit(x.Addr)
		if wait > 0 {
			l.refused(BucketAddress)
			l.tooMany(w, x, wait)
			return
		}
		if l.address != nil {
			l.remaining(w.Header(), left)
		}
		next.ServeHTTP(w, r)
	})
}

// admit takes a token of the address and returns how many are left, or how long
// it must wait.
func (l *Limiter) admit(addr string) (left float64, wait time.Duration) {
	if l.address == nil {
		return 0, 0
	}
	now := l.now()
	one := [1]*bucket{l.address.bucket(addressKey(addr))}
	if _, wait = take(now, one[:], 1); wait > 0 {
		return 0, wait
	}
	return max(0, one[0].tokens.TokensAt(now)), 0
}

// policy is the RateLimit-Policy of a limit: the quota is what the bucket holds,
// its window the time to fill it.
func policy(l config.Limit) []string {
	if l.Rate.Off() {
		return nil
	}
	window := proxy.Seconds(time.Duration(float64(l.Size()) / l.Rate.PerSecond() * float64(time.Second)))
	return []string{fmt.Sprintf(`"address";q=%d;w=%d`, l.Size(), window)}
}

// The fields as http.Header keys them.
const (
	headerPolicy = "Ratelimit-Policy"
	headerLimit  = "Ratelimit"
)

// remaining says how many requests are left, and when the bucket will be full again.
// It runs for every request, so it takes two allocations and no more.
func (l *Limiter) remaining(h http.Header, left float64) {
	missing := float64(l.cfg.Address.Size()) - left
	full := proxy.Seconds(time.Duration(missing / l.cfg.Address.Rate.PerSecond() * float64(time.Second)))
	var room [64]byte
	text := append(room[:0], `"address";r=`...)
	text = strconv.AppendInt(text, int64(left), 10)
	text = append(text, ";t="...)
	text = strconv.AppendInt(text, full, 10)
	h[headerPolicy] = l.policy // shared; an append to it copies, as it has no room
	h[headerLimit] = []string{string(text)}
}

func (l *Limiter) tooMany(w http.ResponseWriter, x *proxy.RequestInfo, wait time.Duration) {
	h := w.Header()
	h[headerPolicy] = l.policy
	h.Set(headerLimit, fmt.Sprintf(`"address";r=0;t=%d`, proxy.Seconds(wait)))
	proxy.WriteError(w, x, http.StatusTooManyRequests, &proxy.Error{
		Kind: proxy.KindRateLimited, RetryAfter: wait,
		Public: "too many requests from your address; come back after retry_after seconds",
	})
}
