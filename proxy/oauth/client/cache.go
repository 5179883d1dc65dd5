package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"aegis/proxy/internal/lru"
)

const (
	// maxCached bounds the documents, and the failures to get one, in memory.
	maxCached = 512
	// maxDomains bounds the domains whose fetches are counted.
	maxDomains = 1024
	// failureFresh is how long a failure is remembered.
	failureFresh = 30 * time.Second
	// keptAtLeast is how long a document of an approved client is kept in the
	// store, longer when refresh tokens live longer.
	keptAtLeast = 30 * 24 * time.Hour
)

// Fetches are counted for clients that no person has approved, for those that one
// has, so that the former cannot starve the latter, and by domain, so that no host is
// flooded through Aegis.
const (
	fetchRate   = rate.Limit(1) // a second
	fetchBurst  = 30
	domainRate  = rate.Limit(10.0 / 60)
	domainBurst = 20
)

var errLimited = errors.New("the limits of fetches are reached")

// documents finds the clients that documents describe.
type documents struct {
	o         Options
	fetch     *fetcher
	cache     *lru.Cache[string, cached]
	flights   singleflight.Group
	strangers *rate.Limiter
	approved  *rate.Limiter
	byDomain  *lru.Cache[string, *rate.Limiter]
}

// cached is a document's client, or why there is none, until it must be fetched
// again.
type cached struct {
	client *Client
	err    error
	until  time.Time
}

// record is a document in the store.
type record struct {
	URL   string    `json:"url"`
	Name  string    `json:"name"`
	URIs  []string  `json:"redirect_uris"`
	Fresh time.Time `json:"fresh"` // until when it need not be fetched
}

func newDocuments(o Options) *documents {
	return &documents{
		o:         o,
		fetch:     newFetcher(o),
		cache:     lru.New[string, cached](maxCached),
		strangers: rate.NewLimiter(fetchRate, fetchBurst),
		approved:  rate.NewLimiter(fetchRate, fetchBurst),
		byDomain:  lru.New[string, *rate.Limiter](maxDomains),
	}
}

// find returns the client at url. With stale, an approved client whose document
// cannot be had now is taken as it was known last.
func (d *documents) find(ctx context.Context, url string, stale bool) (*Client, error) {
	host, err := documentHost(url)
	if err != nil {
		return nil, refused(badURL, err)
	}
	if !d.permit(host) {
		return nil, refused("this server takes no metadata documents from the domain of the client; "+
			"ask its operator", nil)
	}
	c, found := d.cache.Get(url)
	if !found || !d.o.Now().Before(c.until) {
		if c, err = d.join(ctx, url, host); err != nil {
			return nil, err
		}
	}
	if stale && isKind(c.err, Unavailable) {
		if r, ok := d.recall(ctx, url); ok {
			return r.client(host), nil
		}
	}
	return c.client, c.err
}

// join waits for the one fetch of url. A caller that goes away leaves it to the others.
func (d *documents) join(ctx context.Context, url, host string) (cached, error) {
	done := d.flights.DoChan(url, func() (any, error) {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.fetch.o.Limit+fetchTimeout)
		defer cancel()
		return d.refresh(detached, url, host), nil
	})
	select {
	case r := <-done:
		c, ok := r.Val.(cached)
		if !ok {
			return cached{}, notFetched(r.Err)
		}
		return c, nil
	case <-ctx.Done():
		return cached{}, unavailable("the request ended before the metadata document of the client came",
			context.Cause(ctx))
	}
}

// refresh takes the document from the store while it is fresh there, else from
// its host, and remembers the outcome.
func (d *documents) refresh(ctx context.Context, url, host string) cached {
	if c, found := d.cache.Get(url); found && d.o.Now().Before(c.until) {
		return c // another flight landed just before
	}
	kept, approved := d.recall(ctx, url)
	if approved && d.o.Now().Before(kept.Fresh) {
		until := d.o.Now().Add(minFresh) // and no longer: other replicas may learn more
		if kept.Fresh.Before(until) {
			until = kept.Fresh
		}
		return d.remember(url, cached{client: kept.client(host), until: until})
	}
	client, fresh, err := d.get(ctx, url, host, approved)
	if errors.Is(err, errLimited) {
		return cached{err: err} // not remembered: the next one may find a token
	}
	if err != nil {
		if approved && isKind(err, Refused) {
			// A document that was withdrawn must not come back in an outage. Should
			// this fail, the record still ends by itself.
			_ = d.o.Store.Delete(ctx, storeKey(url))
		}
		return d.remember(url, cached{err: err, until: d.o.Now().Add(failureFresh)})
	}
	c := cached{client: client, until: d.o.Now().Add(fresh)}
	if approved {
		// The store being in trouble costs the outage cover, not the answer.
		_ = d.write(ctx, client, c.until)
	}
	return d.remember(url, c)
}

func (d *documents) remember(url string, c cached) cached {
	d.cache.Put(url, c)
	return c
}

// get fetches and reads the document, within the limits.
func (d *documents) get(ctx context.Context, url, host string, approved bool) (*Client, time.Duration, error) {
	all := d.strangers
	if approved {
		all = d.approved
	}
	domain := d.byDomain.Ensure(domainOf(host),
		func() *rate.Limiter { return rate.NewLimiter(domainRate, domainBurst) })
	if now := d.o.Now(); !domain.AllowN(now, 1) || !all.AllowN(now, 1) {
		return nil, 0, unavailable("too many metadata documents are being fetched; try again in a minute", errLimited)
	}
	body, fresh, err := d.fetch.get(ctx, url)
	if err != nil {
		return nil, 0, err
	}
	c, err := readDocument(url, body, d.o.Config.PrivateRedirects)
	return c, fresh, err
}

// domainOf returns the last two labels of host. It counts neighbours below a
// public suffix of two labels together, which only makes the limit stricter.
func domainOf(host string) string {
	last := strings.LastIndexByte(host, '.')
	return host[strings.LastIndexByte(host[:max(last, 0)], '.')+1:]
}

// storeKey hides nothing: a URL can be longer than a key of the store.
func storeKey(url string) string {
	sum := sha256.Sum256([]byte(url))
	return "cimd/" + hex.EncodeToString(sum[:])
}

// recall returns what the store knows of url. Trouble of the store counts as
// not knowing: the document is then fetched.
func (d *documents) recall(ctx context.Context, url string) (*record, bool) {
	e, err := d.o.Store.Get(ctx, storeKey(url))
	if err != nil {
		return nil, false
	}
	var r record
	if json.Unmarshal(e.Value, &r) != nil || r.URL != url {
		return nil, false
	}
	// The rules may have changed since.
	r.URIs, r.Name = redirectable(r.URIs, d.o.Config.PrivateRedirects), CleanName(r.Name)
	return &r, len(r.URIs) > 0 && r.Name != ""
}

// client returns the client that the record was made of.
func (r *record) client(host string) *Client {
	return described(r.URL, host, r.Name, r.URIs)
}

// write keeps a document for outages; each write starts its time anew.
func (d *documents) write(ctx context.Context, c *Client, fresh time.Time) error {
	value, err := json.Marshal(record{URL: c.ID, Name: c.Name, URIs: c.RedirectURIs, Fresh: fresh})
	if err != nil {
		return err
	}
	return d.o.Store.Put(ctx, storeKey(c.ID), value, max(keptAtLeast, d.o.Config.RefreshTTL.Std()))
}
