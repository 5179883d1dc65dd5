package seal_test

import (
	"fmt"
	"strings"

	"aegis/proxy/internal/seal"
)

// A value opens in the place that it was sealed for, also after a new key was put in front.
func ExampleRing() {
	old, fresh := []byte(strings.Repeat("a", 32)), []byte(strings.Repeat("b", 32))
	before, _ := seal.New(old)
	after, _ := seal.New(fresh, old)
	sealed, _ := before.Seal("cred/1", []byte("secret"))
	plain, stale, err := after.Open("cred/1", sealed)
	fmt.Printf("%s %v %v\n", plain, stale, err)
	_, _, err = after.Open("cred/2", sealed)
	fmt.Println(err)
	// Output:
	// secret true <nil>
	// seal: the value is damaged or belongs elsewhere
}
