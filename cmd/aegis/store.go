package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/kv/open"
)

// They work on the store itself, not over a running Aegis, since they are for the time
// before it runs.
func newStore() *cobra.Command {
	return group("store", "Check and move the store of sign-ins", "", newStoreCheck(), newStoreMigrate())
}

// newStoreCheck returns "aegis store check". Redis is often run as a cache: without
// persistence, or with eviction, it loses sign-ins without an error.
func newStoreCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether the store is fit to be relied on",
		Long: `Connects to the store of the configuration and says what is unsafe. For Redis and
Valkey: whether the user may do all that is needed, whether entries survive a
restart and are never evicted, how long a request takes; for every store whether
its keys open what it holds. It exits with 1 when there is a failure. A store in a
file must not be in use.`,
		Example: "  aegis store check\n  aegis store check --json",
	}
	asJSON := cmd.Flags().Bool("json", false, "print a JSON array")
	withConfig(cmd, func(cmd *cobra.Command, _ []string, cfg *config.Config) error {
		list := open.Check(cmd.Context(), cfg)
		text, unfit := "", false
		for _, f := range list {
			// Warnings do not count: the store can be used with them.
			unfit = unfit || f.Grade == "failure"
			text += strings.TrimSuffix(fmt.Sprintf("%s: %s; %s", f.Grade, f.What, f.Do), "; ") + "\n"
		}
		var err error
		if *asJSON {
			err = printJSON(cmd.OutOrStdout(), list, true)
		} else {
			_, err = io.WriteString(cmd.OutOrStdout(), text)
		}
		if err == nil && unfit {
			err = errors.New("the store is not fit for use")
		}
		return err
	})
	return cmd
}

// newStoreMigrate returns "aegis store migrate". Both ends are whole configurations,
// since an address without its keys and its prefix names no store.
func newStoreMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Copy the store of one configuration into that of another",
		Long: `Copies all sign-ins, tokens and certificates from the store of one configuration
into the store of another: from a file to Redis, back, or to another Redis. Stop
Aegis first. The target must be empty, and have the source's keys: put the lines of
the source's key file into the target's store.keys or key_file. The source stays as
it is.`,
		Example: "  aegis store migrate --from aegis.yaml --to aegis-redis.yaml",
	}
	from := cmd.Flags().String("from", "", "`FILE` with the configuration of the source")
	to := cmd.Flags().String("to", "", "`FILE` with the configuration of the target")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		// Not cobra's required flags: this says both in one sentence.
		if *from == "" || *to == "" {
			return misused(errors.New("name both configurations, with --from and --to"))
		}
		source, err := loadConfig(*from)
		if err != nil {
			return err
		}
		target, err := loadConfig(*to)
		if err != nil {
			return err
		}
		m, err := open.Migrate(cmd.Context(), source, target)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(),
			"copied %d entries; %d were of use to running replicas alone, or have expired\n", m.Copied, m.Skipped)
		return err
	}
	return cmd
}
