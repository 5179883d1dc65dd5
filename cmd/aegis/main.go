// Command aegis is an MCP gateway for Gitea: it serves Gitea's REST API to AI
// agents as MCP tools. "aegis --help" lists what it does; every sub-command has
// a help of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"aegis/cmd/aegis/internal/setup"
	"aegis/config"
	"aegis/proxy/server"
)

// version is set by the release build (-ldflags "-X main.version=1.2.3"); a
// plain go build takes it from the module's version control.
var version string

// Exit codes of every sub-command.
const (
	exitOK     = 0
	exitFailed = 1 // the command line was right, and could not be carried out
	exitUsage  = 2 // the command line or the configuration is wrong
)

func main() {
	// The first signal ends politely; stop() gives the second its usual,
	// immediate effect.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	building = collectLess
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit code and touches nothing
// process-wide.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// Commands get their writers from cobra and never use os.Stdout, so that tests can
	// call run side by side.
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	// Whatever wraps them: problems of the file are the answer, and what was attempted
	// with it is not.
	if problems, ok := errors.AsType[config.Problems](err); ok {
		fmt.Fprintln(stderr, problems.Error()) // each line names its file; no prefix, so that editors find it
		return exitUsage
	}
	fmt.Fprintln(stderr, "aegis:", err)
	// A mistake of the command line may be found deep in the work, so it counts
	// wherever it is in the chain.
	_, wrong := errors.AsType[*setup.UsageError](err)
	_, began := errors.AsType[*failure](err)
	switch {
	case wrong:
		return exitUsage
	case began:
		return exitFailed
	}
	// What is left are cobra's own errors about the command line.
	fmt.Fprintln(stderr, `Try "aegis --help".`)
	return exitUsage
}

// failure is an error of a command's work, which began since cobra found the command
// line right. Cobra returns its own errors from the same call, which is why ours are
// wrapped.
type failure struct{ error }

// Unwrap returns the error that the command returned.
func (f *failure) Unwrap() error { return f.error }

// misused marks an error of the command line or of the configuration, which only the work
// itself could find.
func misused(err error) error { return &setup.UsageError{Err: err} }

// newRoot returns the whole command line. It is built anew for each run, as flags keep
// their values.
func newRoot() *cobra.Command {
	root := group("aegis", "An MCP gateway for Gitea", rootHelp,
		newServe(), newDemo(), newCheck(), newTools(), newHealth(), newConfig(), newCatalog(), newMask(), newAudit(),
		newOAuth(), newKeys(), newStore(), newSetup(), newPolicy(), newDoctor(), newVersion(), newMan())
	// Cobra would print every error itself, after forty lines of usage; run prints one
	// line.
	root.SilenceUsage, root.SilenceErrors = true, true
	prepare(root)
	return root
}

// group returns a command that only holds others, and prints its help when it is named
// alone.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		// Without work of its own cobra would not look at the arguments, and "aegis
		// audit verfy" would print this help and succeed.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// Commands come as arguments, so that newRoot shows the whole tree in one
	// expression.
	cmd.AddCommand(commands...)
	return cmd
}

// prepare makes every command below cmd that does not say which arguments it takes take
// none, since cobra's own default lets a mistyped sub-command pass, and marks the errors of
// its work.
func prepare(cmd *cobra.Command) {
	// A parent of other commands is no exception: what follows it and names none of
	// them is a typing mistake.
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	// PreRunE stays as it is: what it checks is the command line, and its errors are
	// marked as that.
	work := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := work(cmd, args); err != nil {
			return &failure{err}
		}
		return nil
	}
	// Those that cobra adds itself, help and completion, come later and keep their own
	// rules.
	for _, c := range cmd.Commands() {
		prepare(c)
	}
}

const rootHelp = `Aegis stands next to a Gitea and serves its whole REST API to AI agents as MCP
tools over HTTP. One YAML file says who may call, which tools they see and what
results may hold.

Try it without a Gitea:    aegis demo
Check a configuration:     aegis check -c aegis.yaml
Serve:                     aegis serve -c aegis.yaml

Without -c, ./aegis.yaml is used, then /etc/aegis/aegis.yaml. Every command
exits with 0 when it did its work, 1 when it failed, and 2 when the command
line or the configuration is wrong.`

// newVersion returns "aegis version". The API is part of it, since which operations are
// tools depends on that version and on no other.
func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Prints the version of this program, of Go, and of the Gitea API it was built for.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout())
		},
	}
	_ = configFlag(cmd) // accepted everywhere; this command needs none
	return cmd
}

// buildVersion is the release version, or what version control says.
func buildVersion() string {
	if version != "" {
		return version
	}
	// "go install aegis/cmd/aegis@v1.2.3" has no linker flags, and still knows its
	// version.
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// printVersion prints the version of the API last: what the catalog was made of decides
// which Gitea fits.
func printVersion(w io.Writer) error {
	// It is read from the embedded catalog; a build with a broken one must not print
	// half a version.
	api, err := server.APIVersion()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "aegis %s\n%s\n%s\n", buildVersion(), runtime.Version(), api)
	return err
}
