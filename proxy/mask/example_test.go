package mask_test

import (
	"context"
	"fmt"

	"aegis/config"
	"aegis/proxy/mask"
)

// A document keeps its bytes but for the secrets in it: those that Aegis knows, and
// those that a rule recognises.
func ExampleEngine_JSON() {
	engine, err := mask.New(config.Masking{Mode: "mask", Builtin: true}, []string{"hunter2-of-gitea"})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := []byte(`{ "body": "log in with hunter2-of-gitea", "url": "https://ci:Wq3vN8xT@git.example.org/" }`)
	out, hits, err := engine.JSON(context.Background(), nil, in, nil, mask.Options{})
	fmt.Println(string(out), hits, err)
	// Output:
	// { "body": "log in with [REDACTED]", "url": "https://ci:***@git.example.org/" } map[known-secret:1 url-password:1] <nil>
}
