package lru_test

import (
	"fmt"
	"testing"

	"aegis/proxy/internal/lru"
)

// TestTake: of several callers one gets the value.
func TestTake(t *testing.T) {
	t.Parallel()
	c := lru.New[int, string](2)
	c.Put(1, "a")
	first, found := c.Take(1)
	_, again := c.Take(1)
	if first != "a" || !found || again || c.Len() != 0 {
		t.Errorf("took %q %v, then %v; %d are left", first, found, again, c.Len())
	}
}

// Example: reading a value keeps it, so the other one has to go.
func Example() {
	c := lru.New[string, int](2)
	c.Put("a", 1)
	c.Put("b", 2)
	c.Get("a")
	c.Put("c", 3)
	_, found := c.Get("b")
	fmt.Println(c.Len(), found, c.Ensure("a", func() int { return 9 }), c.Ensure("d", func() int { return 4 }))
	// Output: 2 false 1 4
}
