package kv_test

import (
	"context"
	"errors"
	"fmt"

	"aegis/proxy/kv"
)

// A value that must work once, whoever asks for it at the same time, is taken.
func ExampleStore() {
	ctx := context.Background()
	var s kv.Store = kv.NewMemory(nil)
	defer s.Close()
	_ = s.Put(ctx, "code/1", []byte("prize"), 0)
	e, _ := s.Take(ctx, "code/1")
	_, err := s.Take(ctx, "code/1")
	fmt.Printf("%s, then absent: %v\n", e.Value, errors.Is(err, kv.ErrNotFound))
	// Output: prize, then absent: true
}
