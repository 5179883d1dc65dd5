package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"aegis/cmd/internal/browsertest"
	"aegis/proxy/gitea/demo"
)

// TestOAuthScripts runs the real program as operators of OAuth do.
func TestOAuthScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/oauth",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"freeport": freePort,
			"waitfor":  waitFor,
			"post":     post,
			"signin":   scriptSignIn,
		},
		RequireExplicitExec: true,
	})
}

// scriptSignIn connects a client as the demo's user, and sets a variable to its
// access token.
func scriptSignIn(ts *testscript.TestScript, _ bool, args []string) {
	const redirect, verifier = "http://127.0.0.1:4713/callback", "a-verifier-of-more-than-forty-three-characters-0123456789"
	issuer := args[0]
	id := scriptPost(ts, issuer+"/register", "application/json", `{"client_name":"Script client","redirect_uris":["`+redirect+`"],"token_endpoint_auth_method":"none"}`)["client_id"]
	sum := sha256.Sum256([]byte(verifier))
	ask := url.Values{"client_id": {id}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {args[1]},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	person := browsertest.New(demo.Login, demo.Password, func(u *url.URL) bool { return !strings.HasPrefix(u.String(), redirect) })
	to, err := person.Allow(issuer + "/authorize?" + ask.Encode())
	ts.Check(err)
	token := scriptPost(ts, issuer+"/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")},
		"client_id": {id}, "redirect_uri": {redirect}, "code_verifier": {verifier}}.Encode())["access_token"]
	if token == "" {
		ts.Fatalf("no token: %s", to)
	}
	ts.Setenv(args[1], token)
}

// scriptPost sends a body and returns the texts of the JSON answer.
func scriptPost(ts *testscript.TestScript, address, kind, body string) map[string]string {
	res, err := direct.Post(address, kind, strings.NewReader(body))
	ts.Check(err)
	defer res.Body.Close()
	var m map[string]any
	ts.Check(json.NewDecoder(res.Body).Decode(&m))
	out := map[string]string{}
	for name, v := range m {
		out[name] = fmt.Sprint(v)
	}
	return out
}
