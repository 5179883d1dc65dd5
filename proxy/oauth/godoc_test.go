package oauth_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"aegis/proxy/oauth"
)

// Without sign-ins, the metadata says only that a bearer token is needed.
func ExampleMetadata() {
	h := oauth.Metadata("https://aegis.example.org/mcp")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/.well-known/oauth-protected-resource", nil))
	var m map[string]any
	fmt.Println(json.Unmarshal(w.Body.Bytes(), &m), m["resource"], m["bearer_methods_supported"])
	// Output: <nil> https://aegis.example.org/mcp [header]
}
