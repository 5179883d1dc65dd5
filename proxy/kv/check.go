package kv

import (
	"context"
	"errors"
	"time"
)

// ErrUnavailable is wrapped by the errors of a store that cannot be reached, or
// did not answer in time: nothing is known of what it holds. Stores in other
// processes return it; it says nothing of the caller's request.
var ErrUnavailable = errors.New("kv: the store cannot be reached")

// CheckKey returns what every call on a key must refuse: a context that is done,
// and a key that is empty or longer than [MaxKey] ([ErrTooLarge]). It is for
// stores outside this package.
func CheckKey(ctx context.Context, key string) error { return checkKey(ctx, key) }

// CheckWrite returns what every write must refuse, [CheckKey] included: a value
// longer than a sealed one of [MaxValue] bytes, and a negative lifetime.
func CheckWrite(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return checkWrite(ctx, key, value, ttl)
}
