package client

import (
	"container/list"
	"sync"
)

// lru keeps the values that were used last, at most size of them. Safe for
// concurrent use.
type lru[V any] struct {
	mu    sync.Mutex
	size  int
	order *list.List // of *item[V], the newest in front
	items map[string]*list.Element
}

type item[V any] struct {
	key   string
	value V
}

func newLRU[V any](size int) *lru[V] {
	return &lru[V]{size: size, order: list.New(), items: make(map[string]*list.Element)}
}

func (l *lru[V]) get(key string) (value V, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, found := l.items[key]
	if !found {
		return value, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*item[V]).value, true
}

func (l *lru[V]) put(key string, value V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(key, value)
}

// ensure returns the value of key, made by make when there is none.
func (l *lru[V]) ensure(key string, make func() V) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, found := l.items[key]; found {
		l.order.MoveToFront(e)
		return e.Value.(*item[V]).value
	}
	value := make()
	l.set(key, value)
	return value
}

// set is put with the lock held.
func (l *lru[V]) set(key string, value V) {
	if e, found := l.items[key]; found {
		e.Value.(*item[V]).value = value
		l.order.MoveToFront(e)
		return
	}
	l.items[key] = l.order.PushFront(&item[V]{key, value})
	if l.order.Len() > l.size {
		last := l.order.Back()
		l.order.Remove(last)
		delete(l.items, last.Value.(*item[V]).key)
	}
}
