package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/policy"
	"aegis/proxy/server"
)

func newPolicy() *cobra.Command {
	return group("policy", "Test and explain what teams may do", "", newPolicyTest(), newPolicyExplain())
}

// maxSuite bounds a file of calls. It is parsed whole; real suites have some kilobytes.
const maxSuite = 8 << 20

// newPolicyTest returns "aegis policy test", which is made for continuous integration:
// an unexpected decision is exit code 1, a file that cannot be read 2.
func newPolicyTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Check a list of calls against their expected decisions",
		Long: `Reads a YAML file of calls with the decision that is expected for each, and makes
the decisions offline: nothing is sent to Gitea, whose answers stand in the file where
a rule needs them. Exits with 1 when a decision is another one, so that a change of the
configuration cannot open what should be closed. docs/teams.md has the format.`,
		Example: "  aegis policy test -c aegis.yaml policy_test.yaml",
		Args:    cobra.ExactArgs(1),
	}
	verbose := cmd.Flags().BoolP("verbose", "v", false, "also print what is as expected")
	var suite []byte
	// The suite is read before the configuration is loaded: its name is on the command
	// line, and most likely mistyped.
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		info, err := os.Stat(args[0])
		if err == nil && info.Size() > maxSuite {
			err = fmt.Errorf("%s is larger than 8 MiB", args[0])
		}
		if err == nil {
			suite, err = os.ReadFile(args[0])
		}
		if err != nil {
			return misused(err)
		}
		return nil
	}
	withServer(cmd, func(cmd *cobra.Command, args []string, _ *config.Config, srv *server.Server) error {
		// A suite that cannot be read is exit code 2: a pipeline must not take it for a
		// decision that changed.
		parsed, err := policy.ParseSuite(suite)
		if err != nil {
			return misused(fmt.Errorf("%s: %w", args[0], err))
		}
		outcomes := parsed.Run(cmd.Context(), srv.Rules)
		wrong := 0
		for _, o := range outcomes {
			mark, text := "FAIL ", fmt.Sprintf("want %s, got %s", o.Want, o.Got)
			switch {
			case o.Err != nil:
				text = o.Err.Error()
			case o.OK && !*verbose:
				continue
			case o.OK:
				mark, text = "ok   ", fmt.Sprint(o.Got)
			}
			// An error counts as a failure: a call that could not be decided is not one
			// that is as expected.
			if o.Err != nil || !o.OK {
				wrong++
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s): %s\n", mark, o.Name, cmp.Or(o.Team, "default"), text)
		}
		if wrong > 0 {
			return fmt.Errorf("%d of %d decisions are not as expected", wrong, len(outcomes))
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d decisions are as expected\n", len(outcomes))
		return err
	})
	return cmd
}

// newPolicyExplain returns "aegis policy explain". It makes the same decision as a call
// does, with the same function, and prints the rule beside it.
func newPolicyExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say which rule decides about a call",
		Long: `Says whether a call would be allowed and which rule decides. Gitea is not asked; where
a rule needs to know something of Gitea, such as the default branch, the call is denied
and the text says so.`,
		Example: "  aegis policy explain --team web --tool gitea_repository_delete " +
			`--args '{"owner":"acme","repo":"web"}'`,
	}
	team := cmd.Flags().String("team", "", "the `TEAM` whose endpoint is called (default the default endpoint)")
	tool := cmd.Flags().String("tool", "", "name of the `TOOL`")
	args := cmd.Flags().String("args", "{}", "its arguments, as a `JSON` object")
	login := cmd.Flags().String("login", "", "on whose behalf, a Gitea `LOGIN`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case *tool == "":
			return misused(errors.New("name the tool with --tool"))
		// It is said of the flag: a shell that removed the quotes is the usual cause.
		case !json.Valid([]byte(*args)):
			return misused(errors.New("--args is not valid JSON"))
		}
		return nil
	}
	withServer(cmd, func(cmd *cobra.Command, _ []string, _ *config.Config, srv *server.Server) error {
		rules, ok := srv.Rules(*team)
		if !ok {
			return misused(fmt.Errorf("the configuration has no team %q", *team))
		}
		// Without answers of Gitea: what needs one is denied, as in a real call that
		// Gitea does not answer.
		v, err := policy.Try(cmd.Context(), rules, nil,
			policy.Request{Login: *login, Tool: *tool, Args: json.RawMessage(*args)})
		if err != nil {
			return misused(err)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), v)
		return err
	})
	return cmd
}
