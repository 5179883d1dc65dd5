package doctor_test

import (
	"fmt"

	"aegis/cmd/aegis/internal/doctor"
)

// A scope to write includes the one to read.
func ExampleMissing() {
	has := []string{"write:issue", "read:user"}
	fmt.Println(doctor.Missing(has, []string{"read:issue", "read:repository", "read:user"}))
	// Output: [read:repository]
}

func ExampleOlder() {
	fmt.Println(doctor.Older("1.22.6", 1, 23), doctor.Older("1.23.0+dev-1", 1, 23), doctor.Older("unknown", 1, 23))
	// Output: true false false
}
