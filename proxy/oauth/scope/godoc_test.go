package scope_test

import (
	"fmt"

	"aegis/proxy/oauth/scope"
)

// Write permits reading of the same area, and nothing of another one.
func ExampleCovers() {
	have := []string{"write:issue"}
	fmt.Println(scope.Covers(have, []string{"read:issue"}), scope.Covers(have, []string{"read:repository"}))
	// Output: true false
}

// A client that asks for more gets what was granted.
func ExampleNarrow() {
	fmt.Println(scope.Narrow([]string{"read:issue", "write:repository"}, []string{"write:issue", "offline_access"}))
	// Output: [read:issue]
}
