package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan prints the manual page; packages have it as aegis(1). It is hidden: people
// read the page that a package installed.
func newMan() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "man",
		Short:   "Print the manual page",
		Long:    "Prints the manual page aegis(1), made of the help texts, in roff.",
		Example: "  aegis man | man -l -",
		Hidden:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeMan(cmd.OutOrStdout(), cmd.Root())
		},
	}
	_ = configFlag(cmd) // accepted everywhere; this command needs none
	return cmd
}

// writeMan writes the page. It has no date, so that the same program always prints the
// same page. It is made from the help, so that the two cannot disagree. Cobra's own
// generator writes one page per command and needs a Markdown library.
func writeMan(w io.Writer, root *cobra.Command) error {
	var b strings.Builder
	name := root.Name()
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"User Commands\"\n", strings.ToUpper(name), roff(name+" "+buildVersion()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(root.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[\n.I flags\n]\n", roff(name))
	b.WriteString(".SH DESCRIPTION\n")
	manText(&b, root.Long)
	b.WriteString(".SH COMMANDS\n")
	manCommands(&b, root)
	manList(&b, "FILES", "I", [][2]string{
		{"/etc/aegis/aegis.yaml", "The configuration, where no other is named. " +
			"docs/config.md explains every key; \"aegis config schema\" has them for editors."},
		{"/var/lib/aegis", "data_dir of the packages: certificates, the audit log and its key, " +
			"grants of people who signed in."},
	})
	manList(&b, "SIGNALS", "B", [][2]string{
		{"SIGTERM, SIGINT", "Stop: no new calls; those in flight may finish within server.shutdown_timeout. " +
			"A second one ends at once."},
		{"SIGHUP", "Load the configuration and the certificates anew."},
	})
	_, err := io.WriteString(w, b.String())
	return err
}

// manList writes a section of names, in a font, and what they are.
func manList(b *strings.Builder, title, font string, list [][2]string) {
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, x := range list {
		fmt.Fprintf(b, ".TP\n.%s %s\n%s\n", font, roff(x[0]), roff(x[1]))
	}
}

// manCommands writes a section for each command that does something, in the
// order of the help.
func manCommands(b *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		// Those two are cobra's and the same in every program.
		if !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.HasAvailableSubCommands() {
			manCommands(b, c)
			continue
		}
		fmt.Fprintf(b, ".SS \"%s\"\n", roff(c.UseLine()))
		manText(b, cmp.Or(c.Long, c.Short+"."))
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { manFlag(b, f) })
		if c.Example != "" {
			b.WriteString(".PP\nExamples:\n.PP\n")
			manText(b, c.Example)
		}
	}
}

// manFlag writes one flag, with its default as help texts have it: zero values are none.
func manFlag(b *strings.Builder, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	kind, usage := pflag.UnquoteUsage(f)
	label := "\\fB\\-\\-" + roff(f.Name) + "\\fR"
	if f.Shorthand != "" {
		label = "\\fB\\-" + roff(f.Shorthand) + "\\fR, " + label
	}
	if kind != "" {
		label += " \\fI" + roff(kind) + "\\fR"
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
		usage += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(b, ".TP\n%s\n%s\n", label, roff(usage))
}

// manText writes paragraphs; those that are indented or have columns keep their
// lines.
func manText(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		kept := strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "   ")
		if kept {
			b.WriteString(".RS 4\n.nf\n")
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			b.WriteString(roff(strings.TrimLeft(line, " ")) + "\n")
		}
		if kept {
			b.WriteString(".fi\n.RE\n")
		}
	}
}

// roff escapes what the formatter would take for its own.
func roff(s string) string {
	// A plain hyphen may be printed as a typographic one, which no shell takes when it
	// is copied.
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n", " ").Replace(s)
	// A line that begins so would be a request to the formatter.
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
