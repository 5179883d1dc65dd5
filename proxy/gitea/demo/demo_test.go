package demo_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"aegis/proxy/gitea/demo"
	"aegis/spec"
	"aegis/spec/build"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// TestDemoDescribesItself: what the demo's Gitea shows as the description of its
// API has the pinned operations, and its version is that of the built-in catalog;
// so a start finds nothing to warn of.
func TestDemoDescribesItself(t *testing.T) {
	t.Parallel()
	d, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	read := func(path string) []byte {
		res, err := direct.Get(d.URL().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, res.Status, err)
		}
		return body
	}
	builtin, err := spec.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if got := read("/api/v1/version"); strings.TrimSpace(string(got)) != `{"version":"`+builtin.GiteaVersion+`"}` {
		t.Errorf("version %s, the catalog is of %s", got, builtin.GiteaVersion)
	}
	_, report, err := build.FromSwagger(read("/swagger.v1.json"), build.Options{Inputs: spec.Inputs(), Baseline: builtin})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Missing)+len(report.Added)+len(report.Changed) > 0 || len(builtin.Operations) != 537 {
		t.Errorf("%d operations; the description differs from the catalog:\n%s", len(builtin.Operations), report)
	}
}
