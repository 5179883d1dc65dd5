package client

import (
	"context"
	"net/http"
	"net/netip"
	"time"
)

// IsPublic is isPublic.
func IsPublic(a netip.Addr) bool { return isPublic(a) }

// Freshness is freshness.
func Freshness(h http.Header, now time.Time) time.Duration { return freshness(h, now) }

// DomainOf is domainOf.
func DomainOf(host string) string { return domainOf(host) }

// ReadDocument is readDocument.
func ReadDocument(url string, body []byte, private []string) (*Client, error) {
	return readDocument(url, body, private)
}

// DialerCheck is the last look of the default dialer.
func DialerCheck(address string) error {
	return controlPublic(context.Background(), "tcp", address, nil)
}

// DefaultTransport returns the transport of a resolver's fetches.
func DefaultTransport(r *Resolver) *http.Transport {
	t, _ := r.docs.fetch.http.Transport.(*http.Transport)
	return t
}

// Sign makes an id of any data.
func Sign(r *Resolver, packed []byte) string { return r.ids.sign(packed) }

// SetFetchTimeout replaces the 5 s of a fetch.
func SetFetchTimeout(r *Resolver, d time.Duration) { r.docs.fetch.o.Limit = d }

// Cached returns how many documents and domains are remembered.
func Cached(r *Resolver) (documents, domains int) {
	return r.docs.cache.Len(), r.docs.byDomain.Len()
}

// The bounds that tests go to.
const (
	MaxCached  = maxCached
	MaxDomains = maxDomains
	MaxID      = maxID
)
