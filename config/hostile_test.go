package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aegis/config"
)

// TestHostileInputs: inputs that are made to exhaust a parser come back with a
// message that a person can read, and do not come back as a configuration.
func TestHostileInputs(t *testing.T) {
	t.Parallel()
	const size = 256 << 10
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	var keys, tokens, indent strings.Builder
	tokens.WriteString("auth:\n tokens:\n")
	for i := range 8000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
		fmt.Fprintf(&tokens, " - {name: a, token: xxxxxxxxxxxxxxxx, gitea_token: x}\n")
	}
	for i := range 700 {
		indent.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	laughs := "a: &a0 [x, x]\n"
	for i := range 60 {
		laughs += fmt.Sprintf("b%d: &a%d [*a%d, *a%d]\n", i, i+1, i, i)
	}
	for name, text := range map[string]string{
		"brackets": fill("["), "braces": fill("{"), "dashes": fill("- "), "questions": fill("? "), "open quote": "a: \"" + fill("x"),
		"lines": "a: \"" + fill("\n"), "same key": fill("a: b\n"), "comments": fill("- a # c\n# d\n\n"), "anchors": fill("- &a b\n"),
		"aliases": "x: &a b\ny:\n" + fill(" - *a\n"), "empty lists": "a: [" + fill("[],"), "colons": fill("a: "), "documents": fill("---\n"),
		"nested braces": fill("{a: "), "tags": fill("!!str "), "directives": fill("%A b\n"), "keys": keys.String(), "tokens": tokens.String(),
		"indent": indent.String(), "laughs": laughs, "long key": fill("k") + ": v\n", "long keys": "results: {fields_default: {" + fill("k") + ": []}}",
		"long value": "listen: " + fill("v"), "long regex": "masking: {rules: [{name: a, regex: '(" + fill("v") + "'}]}",
		"regex bomb": "masking: {rules: [{name: a, regex: '(((a{999}){999}){999}){999}'}]}", "cycle": "auth: &a\n  tokens: [*a, *a]\nlog: *a\n",
		"own anchor": "results:\n  fields_default: &a\n    x: *a\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("aegis.yaml", []byte(text), testEnv(""))
			var problems config.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("error is %v, want problems", err)
			}
			checkPlaces(t, []byte(text), problems)
			for _, p := range problems {
				if n := len(p.String()); n > 600 {
					t.Errorf("a message is %d bytes long", n)
				}
			}
		})
	}
}
