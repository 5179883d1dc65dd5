package config_test

import (
	"fmt"

	"aegis/config"
)

// Mistakes come all at once, each with its place and what to do.
func ExampleParse() {
	_, err := config.Parse("aegis.yaml", []byte("gitea:\n  timout: 5s\nlog:\n  level: loud\n"), config.Env{})
	for _, p := range err.(config.Problems) {
		if p.Key != "auth.tokens" {
			fmt.Println(p)
		}
	}
	// Output:
	// aegis.yaml:1:1: gitea.url: is required; set it, for example to https://git.example.org
	// aegis.yaml:2:3: gitea.timout: unknown key; did you mean timeout?
	// aegis.yaml:4:10: log.level: "loud" is not one of trace, debug, info, warn, error; choose one of these
}

// Names are found in spite of slips, and not by chance.
func ExampleNearest() {
	fmt.Printf("%q %q\n", config.Nearest("maxItms", []string{"max_items"}), config.Nearest("x", []string{"y"}))
	// Output: "max_items" ""
}
