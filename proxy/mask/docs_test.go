package mask_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"aegis/proxy/mask"
)

var updateDocs = flag.Bool("update-docs", false, "write the table of rules into docs/masking.md")

const (
	manual    = "../../docs/masking.md"
	tableHead = "<!-- The table is written by go test ./proxy/mask -run TestManual -update-docs. -->\n"
	tableFoot = "<!-- End of the table. -->\n"
)

// TestManual holds the table of built-in rules in the manual against the rules.
func TestManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableHead)
	_, after, ok2 := strings.Cut(rest, tableFoot)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks of the table", manual)
	}
	want := before + tableHead + rulesTable() + tableFoot + after
	if *updateDocs {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Errorf("%s is not what the rules are; run go test ./proxy/mask -run TestManual -update-docs", manual)
	}
}

func rulesTable() string {
	var b strings.Builder
	b.WriteString("\n| Rule | What | Format | Names or literals | Guard |\n|---|---|---|---|---|\n")
	for _, s := range mask.RuleSpecs() {
		format, names, guard := code(s.Patterns), "in the format", s.Guard
		switch {
		case s.Own:
			format, names = "see What", "see What"
		case len(s.Keywords) > 0:
			format, names = code(s.Values), strings.Join(s.Keywords, ", ")
			if s.Tail > 0 {
				names += fmt.Sprintf(" (and up to %d more characters)", s.Tail)
			}
		}
		var guards []string
		if s.Must != "" {
			guards = append(guards, "must hold `"+s.Must+"`")
		} else if guard != "" {
			guards = append(guards, guard)
		}
		switch {
		case s.Own:
		case len(s.Keywords) > 0:
			guards = append(guards, "operator and name, no word characters behind the value, entropy 2.5")
		default:
			guards = append(guards, "no word characters around, entropy 2.5")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.Name, cell(s.About), format, cell(names),
			cell(strings.Join(guards, "; ")))
	}
	b.WriteString("\n")
	return b.String()
}

func code(exprs []string) string {
	var all []string
	for _, x := range exprs {
		all = append(all, "`"+cell(x)+"`")
	}
	return strings.Join(all, "<br>")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
