package certstore_test

import (
	"context"
	"fmt"

	"aegis/proxy/kv"
	"aegis/proxy/kv/certstore"
)

// Two processes that share a store: what one of them keeps the other one finds, and a lock
// that one of them has the other one does not get.
func ExampleStorage() {
	ctx, store := context.Background(), kv.NewMemory(nil)
	one, other := certstore.New(store, certstore.Options{}), certstore.New(store, certstore.Options{})
	_ = one.Store(ctx, "acme/sites/a.crt", []byte("a certificate"))
	list, err := other.List(ctx, "acme", true)
	fmt.Println(list, err)
	_ = one.Lock(ctx, "a.example.org")
	fmt.Println(other.TryLock(ctx, "a.example.org"))
	_ = one.Unlock(ctx, "a.example.org")
	// Output:
	// [acme/sites/a.crt] <nil>
	// false <nil>
}
