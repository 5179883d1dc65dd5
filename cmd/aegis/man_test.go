package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManHasEverything: each command and each flag that the help knows.
func TestManHasEverything(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"man"}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	page := out.String()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden {
				continue
			}
			if sub.HasSubCommands() {
				visit(sub)
				continue
			}
			if !strings.Contains(page, ".SS \""+roff(sub.UseLine())+"\"\n") {
				t.Errorf("the page lacks %s", sub.CommandPath())
			}
			sub.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && !strings.Contains(page, roff("--"+f.Name)+`\fR`) {
					t.Errorf("the page lacks --%s of %s", f.Name, sub.CommandPath())
				}
			})
		}
	}
	visit(newRoot())
	// A line that begins with a dot must be one of the requests in use.
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH|SH|SS|TP|PP|RS|RE|nf|fi|B|I)( |$)`).MatchString(line) {
			t.Errorf("not a request: %s", line)
		}
		if strings.HasPrefix(line, "'") {
			t.Errorf("taken for a request: %s", line)
		}
	}
	if strings.Count(page, ".nf\n") != strings.Count(page, ".fi\n") {
		t.Error("an example is left open")
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		".SH x":   `\&.SH x`,
		"'quote":  `\&'quote`,
		`a\b--c`:  `a\eb\-\-c`,
		`say "x"`: `say \(dqx\(dq`,
	} {
		if got := roff(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
