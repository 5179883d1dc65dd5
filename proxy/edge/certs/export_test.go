package certs

import (
	"time"

	"github.com/caddyserver/certmagic"
)

// LoadWithin sets how long Start waits for stored certificates with mode auto. Call
// it before Start.
func LoadWithin(t *TLS, d time.Duration) {
	if a, ok := t.source.(*auto); ok {
		a.loading = d
	}
}

// RenewEvery makes certificates of mode auto be checked for renewal at a short
// interval, by their age alone. Call it before Start.
func RenewEvery(t *TLS, interval time.Duration) {
	a := t.source.(*auto)
	a.check, a.ageOnly = interval, true
}

// Due makes the certificate with a serial number one that is to be renewed, however
// young it is. Its validity stays as long as it was issued for, so that no test races
// its end.
func Due(t *TLS, serial string) {
	a := t.source.(*auto)
	due := *a.magic
	due.RenewalWindowRatio = 1 // its whole life
	a.cache.SetOptions(certmagic.CacheOptions{
		GetConfigForCert: func(c certmagic.Certificate) (*certmagic.Config, error) {
			if c.Leaf != nil && c.Leaf.SerialNumber.String() == serial {
				return &due, nil
			}
			return a.magic, nil
		},
		Logger: a.magic.Logger,
	})
}
