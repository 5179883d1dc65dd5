package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aegis/cmd/aegis/internal/setup"
	"aegis/proxy/server"
)

// Bounds on what a mistyped address can make the command read, and for how long.
const (
	maxDescription = 32 << 20 // bytes of an API description; Gitea's has about 1 MB
	fetchTimeout   = time.Minute
	tooLong        = "the API description is larger than %d MiB"
)

func newCatalog() *cobra.Command {
	return group("catalog", "Work with tool catalogs", "", newCatalogBuild())
}

// newCatalogBuild returns "aegis catalog build", for servers whose API differs from the
// one that the built-in catalog was made of, such as Forgejo.
func newCatalogBuild() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Make a catalog from another server's API description",
		Long: `Reads the Swagger 2.0 description of a Gitea or Forgejo server, a file or an
http(s) address such as https://git.example.org/swagger.v1.json, and writes a
catalog that gitea.catalog in the configuration uses. Operations that Aegis knows
keep their names and words; others get a name made of their route and the
description's own words.

What was left out, and what differs from the built-in catalog, is reported on
standard error.`,
		Example: "  aegis catalog build --from https://git.example.org/swagger.v1.json -o catalog.json",
	}
	_ = configFlag(cmd) // accepted everywhere; this command needs none
	from := cmd.Flags().String("from", "", "`FILE` or URL of the API description")
	out := cmd.Flags().StringP("output", "o", "", "`FILE` to write; it is replaced when it exists")
	for _, name := range []string{"from", "output"} {
		_ = cmd.MarkFlagRequired(name) // fails for unknown flags only
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		data, err := readDescription(cmd.Context(), *from)
		if err != nil {
			return err
		}
		text, report, err := server.BuildCatalog(data)
		if err != nil {
			return fmt.Errorf("%s: %w", *from, err)
		}
		// A running Aegis may watch the file, and must never read half of it.
		if err := setup.WriteFile(*out, text, 0o644); err != nil {
			return err
		}
		// The report is for the person who decides whether this catalog will do; a
		// script has the exit code.
		_, err = fmt.Fprint(cmd.ErrOrStderr(), report)
		return err
	}
	return cmd
}

// readDescription reads a file, or fetches an address. The environment's proxy
// variables apply: this is an operator's command, not a call. The file is not checked
// here: what is no description, the builder says.
func readDescription(ctx context.Context, from string) ([]byte, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		f, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readBounded(f, maxDescription, tooLong)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	// Redirects are followed: no credentials are sent, and servers move such files.
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s; is that the address of the API description (/swagger.v1.json)?", from,
			res.Status)
	}
	return readBounded(res.Body, maxDescription, tooLong)
}
