package match_test

import (
	"fmt"

	"aegis/proxy/mask/match"
)

func ExampleCredentials() {
	text := "the hook of acme/site answered 403, access_token=f00dcafe&state=open"
	fmt.Println(string(match.Credentials([]byte(text))))
	// Output: the hook of acme/site answered 403, access_token=[REDACTED]&state=open
}
