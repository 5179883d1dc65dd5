package grant

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"aegis/proxy/internal/lru"
	"aegis/proxy/kv"
)

// Verify returns the grant of an access token, with the token's own scopes. The
// error wraps [ErrInvalid] when the token is unknown, has expired, or its grant
// has ended; any other is trouble of the store and says nothing of the token. A
// grant that another process ended may be seen for 5 seconds more, or, while the
// store cannot be reached, for as long as [Options] say.
func (g *Grants) Verify(ctx context.Context, token string) (*Grant, error) {
	if _, ok := body(accessPrefix, token, secretSize); !ok {
		return nil, invalid("the access token is malformed")
	}
	key := accessKey(token)
	if grant := g.cache.get(key, g.o.Now(), cacheLife); grant != nil {
		return grant, nil
	}
	epoch := g.cache.epoch.Load()
	a, f, err := g.read(ctx, key)
	switch {
	case errors.Is(err, kv.ErrUnavailable):
		if grant := g.cache.get(key, g.o.Now(), g.o.Outage); grant != nil {
			return grant, nil
		}
		return nil, err
	case errors.Is(err, ErrInvalid):
		g.cache.drop(key) // no outage may bring it back
		return nil, err
	case err != nil:
		return nil, err
	}
	now := g.o.Now()
	grant := f.grant(a.Family)
	grant.Scopes, grant.LastUsed = clone(a.Scopes), now
	g.cache.put(key, cached{grant: grant, checked: now, expires: a.Expires}, epoch)
	g.touch(ctx, &grant)
	return &grant, nil
}

// read reads the records of an access token that is good now.
func (g *Grants) read(ctx context.Context, key string) (a access, f *family, err error) {
	if _, err := g.load(ctx, key, &a); err != nil {
		return a, nil, err
	}
	if !g.o.Now().Before(a.Expires) {
		return a, nil, invalid("the access token has expired")
	}
	f, _, err = g.family(ctx, a.Family)
	return a, f, err
}

// touchEvery is how exact the time of the last use is.
const touchEvery = time.Minute

// touch notes that a grant is used. It is no part of the grant's record, whose
// versions guard what is decided.
func (g *Grants) touch(ctx context.Context, grant *Grant) {
	now := g.o.Now()
	if last, ok := g.cache.used.Get(grant.ID); ok && now.Sub(last) < touchEvery {
		return
	}
	g.cache.used.Put(grant.ID, now)
	// It is for show; a call must not fail for it.
	_ = g.save(ctx, usedKey(grant.ID), now, grant.Expires)
}

const (
	cacheLife = 5 * time.Second
	cacheSize = 8192 // entries of tokens, and of used
)

// cache spares busy tokens the store. It forgets a grant at once when this
// process ends it.
type cache struct {
	mu     sync.Mutex
	tokens map[string]cached
	used   *lru.Cache[string, time.Time] // by grant id: the last touch
	epoch  atomic.Uint64                 // counts what was forgotten
}

type cached struct {
	grant            Grant
	checked, expires time.Time
}

func newCache() *cache {
	return &cache{tokens: map[string]cached{}, used: lru.New[string, time.Time](cacheSize)}
}

// get returns a copy of the grant under key, nil when there is none that was verified less
// than life ago.
func (c *cache) get(key string, now time.Time, life time.Duration) *Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.tokens[key]
	if !ok || now.Before(e.checked) || now.Sub(e.checked) >= life || !now.Before(e.expires) {
		return nil
	}
	e.grant.Scopes, e.grant.LastUsed = clone(e.grant.Scopes), now
	return &e.grant
}

// put keeps e unless something was forgotten since epoch: it may have been this.
func (c *cache) put(key string, e cached, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch.Load() != epoch {
		return
	}
	e.grant.Scopes = clone(e.grant.Scopes)
	for other := range c.tokens { // in Go's random order, so that any may go
		if len(c.tokens) < cacheSize {
			break
		}
		delete(c.tokens, other)
	}
	c.tokens[key] = e
}

// drop forgets a token.
func (c *cache) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, key)
}

// forget drops what is known of a grant.
func (c *cache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch.Add(1)
	c.used.Take(id)
	for key, e := range c.tokens {
		if e.grant.ID == id {
			delete(c.tokens, key)
		}
	}
}
