package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"aegis/proxy/policy"
)

func newPolicy() *cobra.Command {
	return group("policy", "Test and explain what teams may do", "", newPolicyTest(), newPolicyExplain())
}

// maxSuite bounds a file of calls.
const maxSuite = 8 << 20

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
	file := configFlag(cmd)
	verbose := cmd.Flags().BoolP("verbose", "v", false, "also print what is as expected")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		info, err := os.Stat(args[0])
		if err != nil {
			return misused(err)
		}
		if info.Size() > maxSuite {
			return misused(fmt.Errorf("%s is larger than 8 MiB", args[0]))
		}
		suite, err := os.ReadFile(args[0])
		if err != nil {
			return misused(err)
		}
		_, srv, _, err := build(*file, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer srv.Close()
		parsed, err := policy.ParseSuite(suite)
		if err != nil {
			return misused(fmt.Errorf("%s: %w", args[0], err))
		}
		outcomes := parsed.Run(cmd.Context(), srv.Rules)
		wrong := 0
		for _, o := range outcomes {
			team := o.Team
			if team == "" {
				team = "default"
			}
			switch {
			case o.Err != nil:
				wrong++
				fmt.Fprintf(cmd.OutOrStdout(), "FAIL  %s (%s): %v\n", o.Name, team, o.Err)
			case !o.OK:
				wrong++
				fmt.Fprintf(cmd.OutOrStdout(), "FAIL  %s (%s): want %s, got %s\n", o.Name, team, o.Want, o.Got)
			case *verbose:
				fmt.Fprintf(cmd.OutOrStdout(), "ok    %s (%s): %s\n", o.Name, team, o.Got)
			}
		}
		if wrong > 0 {
			return failed(fmt.Errorf("%d of %d decisions are not as expected", wrong, len(outcomes)))
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d decisions are as expected\n", len(outcomes))
		return failed(err)
	}
	return cmd
}

func newPolicyExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say which rule decides about a call",
		Long: `Says whether a call would be allowed and which rule decides. Gitea is not asked; where
a rule needs to know something of Gitea, such as the default branch, the call is denied
and the text says so.`,
		Example: `  aegis policy explain --team web --tool gitea_repository_delete --args '{"owner":"acme","repo":"web"}'`,
	}
	file := configFlag(cmd)
	team := cmd.Flags().String("team", "", "the `TEAM` whose endpoint is called (default the default endpoint)")
	tool := cmd.Flags().String("tool", "", "name of the `TOOL`")
	args := cmd.Flags().String("args", "{}", "its arguments, as a `JSON` object")
	login := cmd.Flags().String("login", "", "on whose behalf, a Gitea `LOGIN`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case *tool == "":
			return misused(errors.New("name the tool with --tool"))
		case !json.Valid([]byte(*args)):
			return misused(errors.New("--args is not valid JSON"))
		}
		_, srv, _, err := build(*file, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer srv.Close()
		rules, ok := srv.Rules(*team)
		if !ok {
			return misused(fmt.Errorf("the configuration has no team %q", *team))
		}
		v, err := policy.Try(cmd.Context(), rules, nil, policy.Request{Login: *login, Tool: *tool, Args: json.RawMessage(*args)})
		if err != nil {
			return misused(err)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), v)
		return failed(err)
	}
	return cmd
}
