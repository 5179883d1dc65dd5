package fakegitea_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"aegis/proxy/gitea/fakegitea"
)

// The double is a handler. What is written can be read back, and what arrived can be
// looked at.
func ExampleNew() {
	double := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedDemo})
	server := httptest.NewServer(double)
	defer server.Close()
	req, _ := http.NewRequest("GET", server.URL+"/api/v1/repos/alice/notes/raw/todo.md", nil)
	req.Header.Set("Authorization", "token "+double.Token("alice"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Printf("%d %s", res.StatusCode, text)
	fmt.Println(double.Requests()[0].RequestURI)
	// Output:
	// 200 - buy soil
	// /api/v1/repos/alice/notes/raw/todo.md
}
