package demo_test

import (
	"fmt"
	"io"

	"aegis/proxy/gitea/demo"
)

// The demo's Gitea answers on a port of its own until it is closed.
func ExampleStart() {
	d, err := demo.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	res, err := direct.Get(d.URL().String() + "/api/v1/repos/acme/garden/languages")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, len(body) > 0, err)
	// Output: 200 true <nil>
}
