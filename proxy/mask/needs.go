package mask

import (
	"strings"

	"aegis/proxy"
)

// addNeeds asks for what masking reads of data besides the fields that a call
// keeps: whether the content of a file is base64 is beside it.
func addNeeds(c *proxy.Call) {
	for _, path := range c.Options.Fields {
		plain := strings.ReplaceAll(path, "[]", "")
		if parent, ok := strings.CutSuffix(plain, "content"); ok && (parent == "" || strings.HasSuffix(parent, ".")) {
			c.Options.Needs = append(c.Options.Needs, parent+"encoding")
		}
	}
}
