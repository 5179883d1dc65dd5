package setup

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/server"
)

// clientFlags are the flags of the commands for clients. They are the same for all
// clients, so that an administrator can send one line to people who use different ones.
type clientFlags struct {
	target
	config, team, file     string
	write, force, markdown bool
}

// newClient returns the command for an MCP client, which prints or writes what makes it
// use this deployment.
func newClient(p Program, c mcpClient) *cobra.Command {
	cmd := &cobra.Command{
		Use:   c.command,
		Short: "Connect " + c.title,
		Long: "Prints how " + c.title + ` is connected to the Aegis that a configuration describes.
With --write it adds the server to the client's own configuration file and leaves
everything else in it as it is; an entry of the same name that differs is only
replaced with --force. No token is ever printed or written.`,
		Example: "  aegis setup " + c.command + " -c /etc/aegis/aegis.yaml\n  aegis setup " + c.command +
			" --url https://aegis.example.org/mcp",
	}
	f := &clientFlags{}
	file := p.ConfigFlag(cmd)
	cmd.Flags().StringVar(&f.team, "team", "", "endpoint of this `TEAM`")
	cmd.Flags().StringVar(&f.url, "url", "", "`ADDRESS` of the endpoint, instead of reading a configuration")
	cmd.Flags().StringVar(&f.name, "name", "gitea", "`NAME` of the server in the client")
	cmd.Flags().BoolVar(&f.token, "token", false,
		"send a static token from the environment variable "+tokenVariable+", instead of signing in")
	cmd.Flags().BoolVar(&f.write, "write", false, "add it to the client's configuration file")
	cmd.Flags().StringVar(&f.file, "file", "", "the client's configuration `FILE` (default where the client looks)")
	cmd.Flags().BoolVar(&f.force, "force", false, "with --write, replace an entry of the same name")
	cmd.Flags().BoolVar(&f.markdown, "markdown", false, "print it as a section of a Markdown page")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f.config = *file
		return connect(cmd, p, c, f)
	}
	return cmd
}

// connect prints the guide for a client, or writes the client's file. Writing is never
// the default: the file belongs to another program.
func connect(cmd *cobra.Command, p Program, c mcpClient, f *clientFlags) error {
	if err := checkServerName(f.name); err != nil {
		return err
	}
	// Ignored, they would look as if something had been written.
	if !f.write && (f.force || f.file != "") {
		return misused(errors.New("--force and --file need --write"))
	}
	t, err := clientTarget(p, f)
	if err != nil {
		return err
	}
	// Their forms have fields for OAuth alone.
	if t.token && c.hosted {
		return fmt.Errorf("%s has no place for a static token: people must sign in; "+
			"set auth.oauth in the configuration (docs/oauth.md), or leave out --token", c.title)
	}
	// A warning, since a name may have public addresses elsewhere that are not seen
	// from here.
	if c.hosted && !t.public() {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s connects from its maker's own servers, "+
			"which can reach only https on port 443 of a public address; %s is not that\n", c.title, t.url)
	}
	g := c.guide(t)
	if f.write {
		return writeClient(cmd, c, g, f)
	}
	text := g.text()
	if f.markdown {
		text = g.markdown(c)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}

// target is the endpoint that a client is to use.
type target struct {
	url, name string
	// token: the client sends a static token, instead of signing in.
	token bool
}

// public reports whether the makers of hosted clients may be able to reach it. It goes
// by the address alone and asks no name server: "aegis doctor --client" does that.
func (t target) public() bool {
	u, err := url.Parse(t.url)
	if err != nil || u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost") ||
		!strings.Contains(u.Hostname(), ".")
	return !local && (ip == nil || ip.IsGlobalUnicast() && !ip.IsPrivate())
}

// clientTarget finds the endpoint, from --url or from the configuration.
func clientTarget(p Program, f *clientFlags) (target, error) {
	t := f.target
	if f.url != "" {
		if f.team != "" {
			return t, misused(errors.New("--url is the whole address of an endpoint; leave out --team"))
		}
		u, err := url.Parse(f.url)
		// Guides put it into shell commands and files. These characters are legal in a
		// URL, percent-encoded, and needed in none that Aegis serves.
		unsafe := strings.ContainsAny(f.url, "\"'`$\\ ")
		if err != nil || unsafe || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return t, misused(errors.New("--url must be the address of an MCP endpoint, " +
				"such as https://aegis.example.org/mcp"))
		}
		// That path answers 404 to a client, which is hard to tell from a server that
		// is down.
		if u.Path == "" || u.Path == "/" { // the address of Aegis, as doctor takes it; no endpoint is at the root
			t.url = u.JoinPath("mcp").String()
		}
		return t, nil
	}
	cfg, err := p.Load(f.config)
	if err != nil {
		return t, err
	}
	if t.url, err = endpointOf(cfg, f.team); err != nil {
		return t, err
	}
	switch {
	case !f.token && !cfg.Auth.OAuth.Enabled:
		t.token = true // the only way in
	case f.token && len(cfg.Auth.Tokens) == 0:
		return t, errors.New("the configuration has no static tokens (auth.tokens); " +
			"leave out --token, and people sign in")
	}
	return t, nil
}

// endpointOf returns the address of a team's endpoint, "" for the default one. The team
// must exist: a path of none answers 404, which clients report in many ways.
func endpointOf(cfg *config.Config, team string) (string, error) {
	endpoint := server.EndpointOf(cfg)
	if team == "" {
		return endpoint, nil
	}
	if _, ok := cfg.Teams[team]; !ok {
		return "", misused(fmt.Errorf("there is no team %q in the configuration", team))
	}
	return endpoint + "/" + team, nil
}

// serverName is what every client takes. A dash in front would be a flag of the client's
// command.
var serverName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,39}$`)

// checkServerName keeps names to what every client takes and no shell or file
// format reads as something else.
func checkServerName(name string) error {
	if !serverName.MatchString(name) {
		return misused(errors.New("--name must be 1 to 40 letters, digits, - or _, and not begin with -"))
	}
	return nil
}

// writeClient adds the server to the client's configuration file. The file is the one
// that the client reads for this user or project; where there are several, --file names
// another.
func writeClient(cmd *cobra.Command, c mcpClient, g guide, f *clientFlags) error {
	if g.file == nil {
		return fmt.Errorf("%s keeps its servers in no file of its own that could be written; "+
			"follow what \"aegis setup %s\" prints", c.title, c.command)
	}
	path := f.file
	if path == "" {
		path = g.file.path
		// Paths without ~ are those of a project: they are relative to the working
		// folder.
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return fmt.Errorf("%w; name the file with --file", err)
			}
			path = filepath.Join(home, filepath.FromSlash(rest))
		}
	}
	// The file is read, changed and replaced without a lock: clients have none. What a
	// client writes in the same moment is lost, as with any editor.
	before, err := readClientFile(path)
	if err != nil {
		return err
	}
	after, err := g.file.add(before, f.force)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	// The file is left alone then, its time too: version control and clients that watch
	// it see no change.
	if string(after) == string(before) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has it already\n", path)
		return err
	}
	if err := replaceFile(path, after); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "added %s to %s\n%s", f.name, path, g.after)
	return err
}
