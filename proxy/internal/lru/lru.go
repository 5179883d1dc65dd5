// Package lru keeps the values that were used last, within a bound.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps values by key, at most size of them: a further one takes the place of the
// one unused longest. It is for values by what clients send, of which there may be any number.
// It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	// Get moves an entry to the front, so readers are writers, too.
	mu    sync.Mutex
	size  int
	order *list.List // of *item[K, V], the newest in front
	// The list gives the order, the map the way into it without a search.
	items map[K]*list.Element
}

type item[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty cache of this size.
func New[K comparable, V any](size int) *Cache[K, V] {
	return &Cache[K, V]{size: size, order: list.New(), items: map[K]*list.Element{}}
}

// Get returns the value of key.
func (c *Cache[K, V]) Get(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it := c.find(key)
	if it == nil {
		return value, false
	}
	return it.value, true
}

// Put sets the value of key.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if it := c.find(key); it != nil {
		// It counts as used, as [Cache.find] has moved it to the front.
		it.value = value
		return
	}
	c.add(key, value)
}

// Ensure returns the value of key, made by fresh when there is none. Of callers at the same time
// all get one value: fresh runs under the lock, and must be quick.
func (c *Cache[K, V]) Ensure(key K, fresh func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if it := c.find(key); it != nil {
		return it.value
	}
	// Under the lock: of two callers at a time one makes the value, the other waits and gets it.
	return c.add(key, fresh())
}

// Take returns the value of key and removes it.
func (c *Cache[K, V]) Take(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it := c.find(key)
	if it == nil {
		return value, false
	}
	c.order.Remove(c.items[key])
	delete(c.items, key)
	return it.value, true
}

// Len returns how many values there are.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// find returns the item of key, which counts as used now; nil: there is none.
func (c *Cache[K, V]) find(key K) *item[K, V] {
	e := c.items[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*item[K, V]) // the list holds nothing else
}

// add puts a new item in front. With the lock held, as find: a lookup changes the order, so
// that readers could not share it.
func (c *Cache[K, V]) add(key K, value V) V {
	c.items[key] = c.order.PushFront(&item[K, V]{key, value})
	if c.order.Len() > c.size {
		// At most one is too many, as each call adds one.
		last := c.order.Remove(c.order.Back()).(*item[K, V])
		delete(c.items, last.key)
	}
	return value
}
