package lru_test

import (
	"fmt"

	"aegis/proxy/internal/lru"
)

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
