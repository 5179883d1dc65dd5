package fakegitea_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"aegis/proxy/gitea/fakegitea"
)

// The demo world answers as alice, who sees what is hidden from others.
func ExampleNew() {
	double := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedDemo})
	for _, token := range []string{"", double.Token("alice")} {
		r := httptest.NewRequest("GET", "/api/v1/repos/search?limit=10", nil)
		if token != "" {
			r.Header.Set("Authorization", "token "+token)
		}
		w := httptest.NewRecorder()
		double.ServeHTTP(w, r)
		var found struct {
			Data []struct {
				Name string `json:"full_name"`
			} `json:"data"`
		}
		err := json.Unmarshal(w.Body.Bytes(), &found)
		fmt.Println(w.Code, found.Data, err)
	}
	// Output:
	// 200 [{acme/garden} {acme/website}] <nil>
	// 200 [{acme/garden} {alice/notes} {acme/website}] <nil>
}
