package http1

import "time"

// AnswerWithin sets how long a server that takes no more of a request has for its
// answer. Call it before the first request.
func AnswerWithin(t *Transport, d time.Duration) { t.early = d }

// SentWithin sets how long a connection whose answer is over waits for the end of the
// request. Call it before the first request.
func SentWithin(t *Transport, d time.Duration) { t.sending = d }

// Reusable reports whether an idle connection is still good. One that is not is spoiled
// by the look, as it would be by the next request's.
func Reusable(t *Transport) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.idle {
		if c.quiet() {
			return true
		}
	}
	return false
}
