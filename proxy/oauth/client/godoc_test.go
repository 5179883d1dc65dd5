package client_test

import (
	"fmt"

	"aegis/proxy/oauth/client"
)

// A program on the person's machine may listen on any port; a web site needs https.
func ExampleRedirectable() {
	for _, uri := range []string{"http://127.0.0.1:49152/callback", "http://app.example/callback", "cursor://x/y"} {
		fmt.Println(client.Redirectable(uri, []string{"cursor://x/y"}))
	}
	// Output:
	// <nil>
	// is plain http to a host that is not loopback; use https
	// <nil>
}
