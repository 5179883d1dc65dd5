package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aegis/proxy/audit"
)

// newAudit groups what is done with audit logs. None of it needs a running Aegis, so that an auditor
// can do it on a copy of the files elsewhere.
func newAudit() *cobra.Command {
	return group("audit", "Verify and read the audit log",
		`Works on the audit log, compressed files too. Without FILE it takes the log of
the configuration with all of its rotated files; a folder stands for the log in it.`,
		newAuditVerify(), newAuditShow(), newAuditMerge())
}

// auditLog returns the files that the command line means; whole, when they stand for
// the log that a configuration has. The chain of a log can only be said to be whole
// where all of its files are known, which are those of a configuration or a folder.
func auditLog(files []string, named string) (names []string, whole bool, err error) {
	if len(files) > 0 {
		return files, false, nil
	}
	cfg, err := loadConfig(named)
	if err != nil {
		return nil, false, err
	}
	// To verify nothing and to say ok would be the worst of all answers.
	if cfg.AuditOff() {
		return nil, false, misused(errors.New("the configuration switches the audit log off (audit.path); " +
			"name the files"))
	}
	path, _ := audit.Paths(cfg.Audit, cfg.DataDir)
	return []string{path}, true, nil
}

// newAuditVerify returns "aegis audit verify". It works on files alone, so that it can
// be run on another machine than the one that writes the log.
func newAuditVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [FILE...]",
		Args:  cobra.ArbitraryArgs,
		Short: "Check that nothing in the log was changed or removed",
		Long: `Reads the whole log once and checks each record's hash, the chain through all
files, and the signatures of the checkpoints. It names the first record that is
wrong, or the file that is missing, and exits with 1.

The key that signatures are checked with is the .pub file beside the log unless
--key names another; only a key that was kept elsewhere protects against somebody
who can write the log's folder. The same holds for the newest checkpoint, the
.checkpoint file beside the log: without it, or one given with --checkpoint, a cut
tail does not show.

Several folders that each hold a log with its own key, as replicas write them, are
verified one by one.`,
		Example: "  aegis audit verify\n  aegis audit verify --key audit.pub data/audit\n" +
			"  aegis audit verify --part audit-000000100001.jsonl.gz",
	}
	file := configFlag(cmd)
	var v audit.FilesOptions
	cmd.Flags().StringArrayVar(&v.KeyFiles, "key", nil,
		"`FILE` with the public key of the checkpoints; may be repeated")
	cmd.Flags().StringArrayVar(&v.NoteFiles, "checkpoint", nil,
		"`FILE` with a checkpoint that was kept elsewhere; may be repeated")
	cmd.Flags().BoolVar(&v.Part, "part", false, "accept files that are not the beginning of the log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, whole, err := auditLog(args, *file)
		if err != nil {
			return err
		}
		// Logs with keys of their own have no common chain. Replicas each have one.
		if logs := audit.Logs(args); len(logs) > 1 {
			return verifyEach(cmd.OutOrStdout(), logs, v)
		}
		v.Whole = whole
		return verifyAudit(cmd.OutOrStdout(), names, v)
	}
	return cmd
}

// verifyEach verifies several logs and reports on each. It goes on after a log that is
// wrong, since the other ones may be the witnesses of what happened.
func verifyEach(w io.Writer, logs [][]string, v audit.FilesOptions) error {
	bad := 0
	// Each has its folder as a heading, since records of replicas have the same
	// numbers.
	for _, files := range logs {
		fmt.Fprintf(w, "%s:\n", files[0])
		if err := verifyAudit(w, files, v); err != nil {
			bad++
			fmt.Fprintln(w, "wrong:", err)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d logs are not as they were written", bad, len(logs))
	}
	return nil
}

// verifyAudit verifies one log and prints what the result vouches for. A log that was
// changed is an error whose text names the place. The text has the number of the record
// and the file, so that people can look at it.
func verifyAudit(w io.Writer, files []string, v audit.FilesOptions) error {
	r, keys, err := audit.VerifyFiles(files, v)
	if err != nil {
		return err
	}
	if len(v.KeyFiles) > 0 {
		keys = strings.Join(v.KeyFiles, ", ")
	}
	// Notes come before the verdict: they say what it does not cover, such as a tail
	// without a checkpoint.
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "note: and %d more\n", r.More)
	}
	if r.Problem != nil {
		return errors.New(r.Problem.String())
	}
	_, err = fmt.Fprintf(w, "ok: %d records (%d to %d), %s to %s\n", r.Records, r.First, r.Last,
		r.Begin.Format(time.RFC3339), r.End.Format(time.RFC3339))
	// Without a key the chain shows accidents only: who can write the folder can
	// compute all of it anew.
	if keys != "" && err == nil {
		_, err = fmt.Fprintf(w, "%d checkpoints signed with the key in %s vouch for the records up to %d\n",
			r.Checkpoints, keys, r.Covered)
	}
	return err
}

// newAuditShow returns "aegis audit show". It trusts the log: a record that was changed
// is shown as it is now.
func newAuditShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [FILE...]",
		Args:  cobra.ArbitraryArgs,
		Short: "Show records of the log",
		Long: `Shows the records that all given filters select, as a table, or with --json as
the lines of the log. It does not verify them.

Times are RFC 3339 (2030-01-31T12:00:00Z) or durations back from now (90m, 24h).`,
		Example: "  aegis audit show --since 24h --outcome forbidden\n" +
			"  aegis audit show --identity alice --tool 'gitea_repo_*' --json\n" +
			"  aegis audit show --follow --event tool_invocation",
	}
	file := configFlag(cmd)
	follow := cmd.Flags().BoolP("follow", "f", false, "print what is written from now on, until interrupted")
	withFilter(cmd, "print the lines as they are in the log",
		func(cmd *cobra.Command, args []string, filter audit.Filter, p *audit.Printer) error {
			names, whole, err := auditLog(args, *file)
			if err != nil {
				return err
			}
			at, err := audit.Locate(names, whole)
			if err != nil {
				return err
			}
			if !*follow {
				skipped, err := audit.Show(at.Sources, filter, p)
				return skippedLines(cmd, skipped, err)
			}
			// A rotated file gets no further records; to follow it would wait for ever.
			if at.Live == "" {
				return errors.New("none of the files is written to any more; follow the log itself")
			}
			return audit.Follow(cmd.Context(), at.Live, filter, p)
		})
	return cmd
}

// skippedLines reports how many lines are no records, and passes err on. They are
// counted and not shown: a line that is no record may have been written by anybody,
// with escapes for the terminal in it.
func skippedLines(cmd *cobra.Command, skipped int, err error) error {
	if skipped > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "aegis: %d lines are no records; \"aegis audit verify\" says more\n", skipped)
	}
	return err
}

// withFilter adds the flags that select records and say how they are printed, and makes the
// command do its work with them. Times count back from when the command runs.
func withFilter(cmd *cobra.Command, jsonUsage string,
	work func(*cobra.Command, []string, audit.Filter, *audit.Printer) error) {
	var filter audit.Filter
	var p audit.Printer
	since := cmd.Flags().String("since", "", "not before this `TIME`")
	until := cmd.Flags().String("until", "", "before this `TIME`")
	cmd.Flags().StringVar(&filter.Identity, "identity", "", "login, or name of a static token")
	cmd.Flags().StringVar(&filter.Tool, "tool", "", "name of a tool; * and ? match")
	cmd.Flags().StringVar(&filter.Outcome, "outcome", "", "ok, or the kind of an error")
	cmd.Flags().StringVar(&filter.Event, "event", "", "kind of record, such as tool_invocation or bearer_refused")
	cmd.Flags().BoolVar(&p.JSON, "json", false, jsonUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		now := time.Now()
		if filter.Since, err = parseTime(*since, now); err != nil {
			return misused(fmt.Errorf("--since: %w", err))
		}
		if filter.Until, err = parseTime(*until, now); err != nil {
			return misused(fmt.Errorf("--until: %w", err))
		}
		// A glob that is wrong matches nothing, and an empty answer would look like the
		// truth.
		if _, err := path.Match(filter.Tool, ""); err != nil {
			return misused(errors.New("--tool: is no glob; * stands for any characters, ? for one"))
		}
		p.W = cmd.OutOrStdout()
		return work(cmd, args, filter, &p)
	}
}

// newAuditMerge returns "aegis audit merge". Each replica has a log with a chain of its
// own, so that an order among them comes from the clocks alone.
func newAuditMerge() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "merge LOG...",
		Short: "Show the records of several replicas in the order of time",
		Long: `Reads the logs of several replicas, folders or files, and shows the records that
all given filters select in the order of time, each with the name of its replica. With
--json a line is that of the log with the name as one more member in front. It does
not verify them: "aegis audit verify" does, for the same folders.

Times are RFC 3339 (2030-01-31T12:00:00Z) or durations back from now (90m, 24h).`,
		Example: "  aegis audit merge aegis-1/audit aegis-2/audit --since 24h\n" +
			"  aegis audit merge --json --identity alice logs/*/audit",
		Args: cobra.MinimumNArgs(1),
	}
	withFilter(cmd, "print the lines of the logs, with the replica as one more member",
		func(cmd *cobra.Command, args []string, filter audit.Filter, p *audit.Printer) error {
			skipped, err := audit.MergeFiles(args, filter, p)
			return skippedLines(cmd, skipped, err)
		})
	return cmd
}

// parseTime reads a time, or a duration back from now; "" is no time. Durations are
// what people want of the last hours, times what an auditor copies from a report.
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	// A negative one would be in the future, where there are no records.
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, errors.New("is neither a time like 2030-01-31T12:00:00Z nor a duration like 24h")
	}
	return t, nil
}
