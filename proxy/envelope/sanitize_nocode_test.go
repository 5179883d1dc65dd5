package envelope_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aegis/proxy/envelope"
)

// TestWhatOnlyLooksLikeCodeHidesNothing: comments that nobody sees, beside
// backticks that make no code of them.
func TestWhatOnlyLooksLikeCodeHidesNothing(t *testing.T) {
	t.Parallel()
	const evil = "<!-- EVIL -->"
	for name, text := range map[string]string{
		"escaped backticks":        "\\`" + evil + "\\`",
		"one escaped":              "\\`" + evil + "`",
		"fence in an HTML block":   "<div>\n```\n" + evil + "\n```\n</div>",
		"fence in pre":             "<pre>\n\n```\n" + evil + "\n```\n</pre>",
		"ticks in an HTML block":   "<div>`" + evil + "`</div>",
		"ticks after a comment":    "<!-- a --> `" + evil + "`",
		"fence after a comment":    "<!-- a\n-->```\n" + evil,
		"fence after one in text":  "x <!-- a\n--> ```\n" + evil,
		"end of a fence in a list": "- ```\n  x\n  ```\n" + evil,
		"the same, further in":     "- ```\n  x\n  ```\n  " + evil,
		"fence that a list ends":   "- x\n\n  ```\n\nout\n" + evil,
		"ticks in an attribute":    "x <a href=\"`\">" + evil + "`",
		"and a bracket before":     "x <a title=\">`\">" + evil + "`",
		"attribute over lines":     "x <a title=\"\n`\">" + evil + "`",
		"address in brackets":      "x <http://a/`>" + evil + "`",
		"HTML block in a quote":    "> <div>`" + evil + "`",
		"HTML block in a list":     "1. <div>`" + evil + "`",
		"after code and HTML":      "x <b>y</b>\n```\n\n<!-- a -->\n```\n" + evil,
	} {
		doc, err := json.Marshal(map[string]string{"body": text})
		if err != nil {
			t.Fatal(err)
		}
		if out, n := envelope.SanitizeJSON(doc, false); n == 0 || strings.Contains(string(out), "EVIL") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestCodeStays where there is no doubt.
func TestCodeStays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"<details>\n<summary>log</summary>\n\n```html\n<!-- x -->\n```\n\n</details>",
		"a <b>b</b> c\n\nwrite `<!-- x -->`\n\n```\n<!-- y -->\n```\n",
		"C:\\\\dir `<!-- x -->`",
		"```\n  <!-- x -->\n\n<div>\n```\n\n~~~\n<!-- y -->\n~~~\n",
	} {
		doc, err := json.Marshal(map[string]string{"body": text})
		if err != nil {
			t.Fatal(err)
		}
		if out, n := envelope.SanitizeJSON(doc, false); n != 0 || string(out) != string(doc) {
			t.Errorf("%s became %s", doc, out)
		}
	}
}
