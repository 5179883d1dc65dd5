package setup_test

import (
	"fmt"

	"aegis/cmd/aegis/internal/setup"
)

func ExampleWebAddress() {
	u, err := setup.WebAddress("https://git.example.org/gitea")
	fmt.Println(u, err)
	_, err = setup.WebAddress("git.example.org")
	fmt.Println(err)
	// Output:
	// https://git.example.org/gitea <nil>
	// a whole address such as https://git.example.org
}
