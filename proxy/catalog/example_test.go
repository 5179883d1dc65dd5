package catalog_test

import (
	"fmt"

	"aegis/config"
	"aegis/proxy/catalog"
	"aegis/spec"
)

// A team gets a selection of the tools of a catalog. What it may not use does not
// exist for it.
func ExampleSet_Select() {
	cat, err := spec.Builtin()
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := catalog.Load(cat)
	if err != nil {
		fmt.Println(err)
		return
	}
	sel, _ := set.Select(config.Tools{Toolsets: []string{"issue"}, ReadOnly: true, Mode: "search"})
	for _, t := range sel.Search("comments of an issue", nil, true)[:1] {
		fmt.Println(t.Name, t.Risk)
	}
	_, err = sel.Lookup("gitea_repository_delete")
	fmt.Println(err)
	// Output:
	// gitea_issue_list_comments R0
	// unknown_tool: unknown tool; gitea_search_tools finds the tools that are available
}
