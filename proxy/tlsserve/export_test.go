package tlsserve

import "time"

// RenewEvery makes certificates of mode auto be checked for renewal at a short
// interval, by their age alone. Call it before Start.
func RenewEvery(t *TLS, interval time.Duration) {
	a := t.source.(*auto)
	a.check, a.ageOnly = interval, true
}
