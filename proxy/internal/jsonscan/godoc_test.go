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
