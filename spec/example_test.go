package spec_test

import (
	"fmt"

	"aegis/spec"
)

// The embedded catalog holds every operation of the pinned Gitea version.
func ExampleBuiltin() {
	cat, err := spec.Builtin()
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range cat.Operations {
		if o := &cat.Operations[i]; o.ID == "issueGetIssue" {
			fmt.Println(o.Name, o.Method, o.Path, o.Risk)
		}
	}
	// Output: gitea_issue_get GET /repos/{owner}/{repo}/issues/{index} R0
}
