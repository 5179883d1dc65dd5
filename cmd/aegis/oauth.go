package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/kv/open"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/server"
)

// newOAuth groups what an operator does with grants of people. It goes over the control socket of a
// running Aegis, which holds the store and its caches.
func newOAuth() *cobra.Command {
	return group("oauth", "Show and revoke what people allowed MCP clients", "", newOAuthList(), newOAuthRevoke())
}

// newOAuthList returns "aegis oauth list". The store has one owner at a time, so a
// running Aegis answers for it.
func newOAuthList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the clients that people allowed",
		Long: `Lists every grant: who allowed which client what, since when, and when it was
last used. A running Aegis of this configuration is asked over its control socket
in data_dir; without one, its store is read.`,
		Example: "  aegis oauth list\n  aegis oauth list --login alice --json",
	}
	login := cmd.Flags().String("login", "", "only those of this Gitea `LOGIN`")
	asJSON := cmd.Flags().Bool("json", false, "print a JSON array")
	withConfig(cmd, func(cmd *cobra.Command, _ []string, cfg *config.Config) error {
		// It filters here and not in the server, whose control socket has one question
		// for all.
		all, err := server.Operator(cfg).List(cmd.Context())
		if err != nil {
			return err
		}
		// Never nil: in JSON, no grants are an empty array.
		list := slices.DeleteFunc(append([]grant.Grant{}, all...), func(g grant.Grant) bool {
			return *login != "" && !strings.EqualFold(g.Login, *login)
		})
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), list, true)
		}
		return printGrants(cmd.OutOrStdout(), list)
	})
	return cmd
}

// printGrants prints a table. A client without a verified name could have any, which is
// said beside it.
func printGrants(w io.Writer, list []grant.Grant) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no client is allowed")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "GRANT\tLOGIN\tCLIENT\tSINCE\tLAST USED\tSCOPES")
	for _, g := range list {
		name := g.ClientName
		// A client that registered itself chose its name, and may have chosen that of
		// another one.
		if !g.Verified {
			name += " (unverified)"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, g.Login, name, day(g.Created), day(g.LastUsed),
			strings.Join(g.Scopes, " "))
	}
	return tw.Flush()
}

// day is a time to the minute, in UTC as the audit log has it.
func day(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// newOAuthRevoke returns "aegis oauth revoke". A running Aegis is asked to do it: it
// would go on to accept tokens that it has in memory if the store alone changed.
func newOAuthRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke [GRANT]",
		Short: "Revoke a grant, or all of a person",
		Long: `Ends a grant that "aegis oauth list" shows, or with --login all of a person. Its
tokens are void at once. Gitea keeps its own permission for Aegis; people revoke that
in Gitea under Settings, Applications.`,
		Example: "  aegis oauth revoke 6f1c2a…\n  aegis oauth revoke --login alice",
		Args:    cobra.MaximumNArgs(1),
	}
	login := cmd.Flags().String("login", "", "end all grants of this Gitea `LOGIN`")
	// An empty argument, as an unset variable of a script gives, counts as none: it
	// must not become "all".
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if (strings.Join(args, "") == "") == (*login == "") {
			return misused(errors.New("name one grant, or a person with --login"))
		}
		return nil
	}
	withConfig(cmd, func(cmd *cobra.Command, args []string, cfg *config.Config) error {
		which := grant.Revocation{Grant: strings.Join(args, ""), Login: *login} // there is one argument at most
		n, err := server.Operator(cfg).Revoke(cmd.Context(), which)
		switch {
		case err != nil:
			return err
		// A script that revokes must learn that nothing was ended: the id may be
		// mistyped, and the grant still good.
		case n == 0:
			return errors.New(`there is no such grant; "aegis oauth list" shows all`)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "ended %d\n", n)
		return err
	})
	return cmd
}

// newKeys returns "aegis keys". There is no command that removes a key: client ids are
// derived from the old ones.
func newKeys() *cobra.Command {
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key and seal the store with it",
		Long: `Puts a new random key in front of the store's key file. When no Aegis has the
store open, everything in it is sealed anew at once; a running one takes the new key
when it is reloaded (SIGHUP), and seals values anew as it reads them. Older keys stay
in the file, since client ids were derived from them; back the file up apart from the
store.`,
		Example: "  aegis keys rotate -c /etc/aegis/aegis.yaml && systemctl reload aegis",
	}
	withConfig(rotate, func(cmd *cobra.Command, _ []string, cfg *config.Config) error {
		// Values are sealed anew only when no Aegis has the store open, since the
		// file has one owner.
		r, err := open.RotateKeys(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		next := fmt.Sprintf("%d values sealed anew", r.Resealed)
		if r.InUse {
			next = "reload the running Aegis so that it uses it"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "new key %s; %s\n", r.KeyID, next)
		return err
	})
	return group("keys", "Manage the keys of the store", "", rotate)
}
