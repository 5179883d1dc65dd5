package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/config"
	"aegis/proxy/server"
)

// adminTokenVariable may hold the token that makes the application. It is not
// $GITEA_TOKEN, which mode token has for calls: one that may make applications can do
// more.
const adminTokenVariable = "GITEA_ADMIN_TOKEN"

// appFlags say which application in Gitea to make. They are also what the wizard fills
// in when it makes the application on the way.
type appFlags struct {
	gitea, ca, public, token, name, dir string
	show, force                         bool
}

// newGitea returns "aegis setup gitea".
func newGitea() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gitea",
		Short: "Make the OAuth application in Gitea",
		Long: `Makes the confidential OAuth application in Gitea that auth.oauth needs, over its API,
with the redirect URI <public_url>/oauth/callback, and writes its client id and secret
to oauth_client_id and oauth_client_secret in a folder, for their owner alone.

It may be run again: when the files are there and Gitea knows the application, nothing
is done. With --force the application gets a new secret, which ends the old one.

The token belongs to the user who will own the application, with the scope write:user.
It is used once and not kept.`,
		Example: "  aegis setup gitea --url https://git.example.org --public-url https://aegis.example.org " +
			"--admin-token file:admin.token\n" +
			"  GITEA_ADMIN_TOKEN=… aegis setup gitea --url http://gitea:3000 --public-url https://aegis.example.org " +
			"--dir /etc/aegis/secrets",
	}
	f := &appFlags{}
	cmd.Flags().StringVar(&f.gitea, "url", "", "address of Gitea, `URL` (required)")
	cmd.Flags().StringVar(&f.public, "public-url", "", "public address of Aegis, `URL` (required)")
	cmd.Flags().StringVar(&f.token, "admin-token", "", "Gitea `TOKEN`, or file:PATH (default $"+adminTokenVariable+")")
	cmd.Flags().StringVar(&f.name, "name", "Aegis", "`NAME` of the application, which people read in Gitea")
	cmd.Flags().StringVar(&f.dir, "dir", "secrets", "`FOLDER` for the two files")
	cmd.Flags().StringVar(&f.ca, "gitea-ca", "", "PEM `FILE` with a private authority of Gitea's certificate")
	cmd.Flags().BoolVar(&f.show, "show-secret", false, "also print the secret")
	cmd.Flags().BoolVar(&f.force, "force", false, "make a new secret, and replace the files")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		// Cobra's own required flags would accept an empty one, which an unset variable
		// of a script gives.
		for _, required := range [][2]string{{"url", f.gitea}, {"public-url", f.public}} {
			if err := webAddress(required[1]); err != nil {
				return misused(fmt.Errorf("--%s: %w", required[0], err))
			}
		}
		token, err := secretValue("admin-token", f.token, adminTokenVariable)
		if err != nil {
			return err
		}
		// It is not asked for: the command is made for scripts and containers.
		if token == "" {
			return misused(errors.New("--admin-token: required; make a token with the scope write:user in Gitea, " +
				"under Settings, Applications"))
		}
		app, done, err := makeApp(cmd.Context(), f, token)
		if err != nil {
			return err
		}
		return printApp(cmd, f, app, done)
	}
	return cmd
}

// giteaAt returns Gitea for questions. The client is the one that Aegis uses, so that
// what is found here holds there: the proxy variables of the environment are ignored,
// and redirects are not followed.
func giteaAt(address, ca string) (doctor.Gitea, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil {
		return doctor.Gitea{}, misused(err)
	}
	client, err := server.GiteaHTTP(config.Gitea{CAFile: ca})
	if err != nil {
		return doctor.Gitea{}, misused(err)
	}
	return doctor.Gitea{URL: u, HTTP: client}, nil
}

// callbackOf is the redirect URI of Aegis at Gitea, which Gitea compares byte by byte.
func callbackOf(public string) string { return strings.TrimRight(public, "/") + "/oauth/callback" }

// Names of the files in the folder for secrets.
const (
	fileClientID     = "oauth_client_id"
	fileClientSecret = "oauth_client_secret"
)

// makeApp makes the application and writes its files. done is false when there
// was nothing to do.
func makeApp(ctx context.Context, f *appFlags, token string) (app doctor.App, done bool, err error) {
	g, err := giteaAt(f.gitea, f.ca)
	if err != nil {
		return app, false, err
	}
	defer g.HTTP.CloseIdleConnections()
	idFile, secretFile := filepath.Join(f.dir, fileClientID), filepath.Join(f.dir, fileClientSecret)
	// The files remember which application is ours, since people may rename it in
	// Gitea.
	known, err := os.ReadFile(idFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return app, false, err
	}
	// Gitea never shows a secret again: without the file it is lost, and a new one must
	// be made.
	_, err = os.Stat(secretFile)
	have := len(known) > 0 && err == nil
	list, err := g.Apps(ctx, token)
	if err != nil {
		return app, false, err
	}
	callback := callbackOf(f.public)
	// By the id where there is one: names are not unique in Gitea.
	at := slices.IndexFunc(list, func(a doctor.App) bool {
		return a.ClientID == strings.TrimSpace(string(known)) || len(known) == 0 && a.Name == f.name
	})
	switch {
	case have && !f.force && at >= 0 && list[at].Confidential && slices.Contains(list[at].RedirectURIs, callback):
		return list[at], false, nil
	case (have || at >= 0) && !f.force:
		return app, false, fmt.Errorf("there is an application already, in Gitea or in %s, "+
			"and both do not fit together; "+
			"--force gives it the redirect URI %s and a new secret, which ends the old one", f.dir, callback)
	}
	// An application that is there is changed and not replaced: what people allowed it
	// stays.
	app = doctor.App{Name: f.name, RedirectURIs: []string{callback}}
	if at >= 0 {
		app.ID = list[at].ID
	}
	// From here on Gitea has it, and the secret is in this process alone until the
	// files are written.
	if app, err = g.MakeApp(ctx, token, app); err != nil {
		return app, false, err
	}
	err = errors.Join(writeSecret(idFile, app.ClientID, true), writeSecret(secretFile, app.Secret, true))
	return app, true, err
}

// writeSecret writes a file for its owner alone, in a folder for its owner alone.
// It replaces another only with replace, and then whole.
func writeSecret(path, value string, replace bool) error {
	// An existing folder keeps its mode; the files themselves are closed to others.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if replace {
		return WriteFile(path, []byte(value+"\n"), 0o600)
	}
	// O_EXCL follows no link either, and leaves no moment between a look and the write.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// printApp prints what goes into the configuration. The secret is in a file, and on the
// terminal only with --show-secret: terminals and CI logs keep what they show.
func printApp(cmd *cobra.Command, f *appFlags, app doctor.App, done bool) error {
	out, head := cmd.OutOrStdout(), "The OAuth application %q is there; nothing was done.\n\n"
	if done {
		head = "Made the OAuth application %q in Gitea.\n\n"
	}
	fmt.Fprintf(out, head, app.Name)
	// A relative path would start at the folder of the configuration, which may be
	// another one.
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `  client id      %s
  redirect URI   %s
  secret         in %s

In the configuration:

  auth:
    oauth:
      enabled: true
      client_id: %s
      client_secret: file:%s
`, app.ClientID, callbackOf(f.public), filepath.Join(f.dir, fileClientSecret), app.ClientID,
		filepath.Join(dir, fileClientSecret))
	if f.show && app.Secret != "" {
		fmt.Fprintf(out, "\nSecret: %s\n", app.Secret)
	}
	return err
}
