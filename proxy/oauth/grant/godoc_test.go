package grant_test

import (
	"context"
	"fmt"
	"time"

	"aegis/config"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/grant"
)

// A code becomes a grant once, for the client that proves it asked for it (RFC 7636).
func Example() {
	const proof = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // of RFC 7636, appendix B
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	grants, _ := grant.New(grant.Options{
		Store: kv.NewMemory(nil), Keys: func(string) [][]byte { return [][]byte{make([]byte, 32)} },
		Config: config.OAuth{AccessTTL: config.Duration(time.Hour), RefreshTTL: config.Duration(time.Hour)},
	})
	ctx := context.Background()
	code, err := grants.IssueCode(ctx, grant.Code{
		ClientID: "editor", RedirectURI: "http://127.0.0.1/cb", Challenge: challenge, UserID: 1, Login: "alice",
	})
	fmt.Println(err)
	tokens, err := grants.Redeem(ctx, code, grant.Redeem{ClientID: "editor", Verifier: proof})
	fmt.Println(tokens.ExpiresIn.Round(time.Minute), err)
	_, err = grants.Redeem(ctx, code, grant.Redeem{ClientID: "editor", Verifier: proof})
	fmt.Println(err)
	// Output:
	// <nil>
	// 1h0m0s <nil>
	// the grant is invalid: the code was used before; the grant that came of it has ended
}
