package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"aegis/proxy/server"
)

// maxMaskInput bounds one input of "aegis mask", which is read whole.
const maxMaskInput = 1 << 30

// newMask returns "aegis mask". It exists to try a rule on a log of one's own before
// every result depends on it.
func newMask() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mask [FILE...]",
		Args:  cobra.ArbitraryArgs,
		Short: "Show what masking does to a text",
		Long: `Reads files, or standard input when none is named, and writes the masked text to
standard output and the hits by rule to standard error. JSON is recognised and
rewritten as results are. The rules are those of the configuration, or the
built-in ones when there is none, so that a rule can be tried before it is used.

--report prints only the hits, on standard output.`,
		Example: "  aegis mask < build.log\n  aegis mask --report -c aegis.yaml *.json",
	}
	file := configFlag(cmd)
	report := cmd.Flags().Bool("report", false, "print only how often each rule matched")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := loadOrDefault(*file)
		if err != nil {
			return err
		}
		// As results are masked, with the secrets of the configuration: what this
		// prints may be shown to others.
		mask, err := server.Mask(cfg)
		if err != nil {
			return misused(err)
		}
		return maskAll(cmd, mask, args, *report)
	}
	return cmd
}

// maskAll masks the inputs one after the other and prints the hits of all of them. Each
// is masked whole, since a secret may be anywhere, also across the parts that a stream
// would be read in.
func maskAll(cmd *cobra.Command, mask func([]byte) ([]byte, map[string]int), files []string, report bool) error {
	total := map[string]int{}
	// The hits of all inputs are added up: people count how often a rule fires over a
	// whole folder.
	one := func(r io.Reader) error {
		data, err := readBounded(r, maxMaskInput, "an input is larger than %d MiB; mask it in parts")
		if err != nil {
			return err
		}
		out, hits := mask(data)
		for rule, n := range hits {
			total[rule] += n
		}
		if !report {
			_, err = cmd.OutOrStdout().Write(out)
		}
		return err
	}
	if len(files) == 0 {
		if err := one(cmd.InOrStdin()); err != nil {
			return err
		}
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = one(f)
		_ = f.Close() // it was only read
		if err != nil {
			return err
		}
	}
	// Standard output is the masked text and nothing else, so that it can be piped on.
	w := cmd.ErrOrStderr()
	if report {
		w = cmd.OutOrStdout()
	}
	return printHits(w, total)
}

// printHits prints the rules in the order of their names, so that two runs can be
// compared.
func printHits(w io.Writer, hits map[string]int) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, rule := range slices.Sorted(maps.Keys(hits)) {
		fmt.Fprintf(tw, "%s\t%d\n", rule, hits[rule])
	}
	if len(hits) == 0 {
		fmt.Fprintln(tw, "no hits")
	}
	return tw.Flush()
}
