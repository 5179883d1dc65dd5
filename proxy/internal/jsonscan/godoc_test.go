package jsonscan_test

import (
	"fmt"

	"aegis/proxy/internal/jsonscan"
)

// Parts are found without decoding the rest.
func ExampleMember() {
	doc := []byte(`{"id": 7, "labels": [{"name": "bug"}, {"name": "ui"}]}`)
	for _, label := range jsonscan.Elements(jsonscan.Member(doc, "labels")) {
		fmt.Println(jsonscan.Unquote(jsonscan.Member(label, "name")))
	}
	// Output:
	// bug
	// ui
}

func ExampleCheckValues() {
	fmt.Println(jsonscan.CheckValues([]byte(`[1, 2, [3]`), 10, 100))
	fmt.Println(jsonscan.CheckValues([]byte(`[[[[1]]]]`), 3, 100))
	// Output:
	// invalid JSON at byte 10: the document ends inside an array or object
	// JSON nested too deep
}

// A caller's fields are kept byte for byte, and what the document lacks is named.
func ExampleSelection_Project() {
	fields, err := jsonscan.NewSelection("title", "labels[].name", "milestome")
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := []byte(`{"id": 7, "title": "A \u003cb\u003e", "labels": [{"name": "bug", "color": "red"}]}`)
	kept, unknown, err := fields.Project(doc, 10)
	fmt.Println(string(kept), unknown, err)
	// Output: {"title":"A \u003cb\u003e","labels":[{"name":"bug"}]} [milestome] <nil>
}
