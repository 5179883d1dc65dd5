package build_test

import (
	"fmt"

	"aegis/spec"
	"aegis/spec/build"
)

// Tools can be made for any server that describes its API in Swagger 2.0.
func ExampleFromSwagger() {
	description := []byte(`{"swagger": "2.0", "info": {"title": "Forge", "version": "9.1"}, "basePath": "/api/v1",
		"paths": {"/repos/{owner}/{repo}/flags": {"get": {
			"parameters": [{"name": "owner", "in": "path", "required": true, "type": "string"},
				{"name": "repo", "in": "path", "required": true, "type": "string"}],
			"responses": {"200": {"schema": {"type": "array", "items": {"type": "string"}}}}}}}}`)
	cat, report, err := build.FromSwagger(description, build.Options{Inputs: spec.Inputs()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cat.Operations[0].Name, cat.Operations[0].Risk)
	fmt.Println(report.Notes[0])
	// Output:
	// gitea_repository_get_flags R1
	// GET /repos/{owner}/{repo}/flags: unknown operation; called gitea_repository_get_flags with risk R1
}
