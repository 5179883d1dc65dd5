//go:build !nodemo

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/gitea/demo"
	"aegis/proxy/server"
)

// newDemo returns "aegis demo". Its listener is opened before the server is built, since
// the public address has the port, which the system may have chosen.
func newDemo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try Aegis with a built-in Gitea",
		Long: `Starts Aegis before a small Gitea of its own: users, repositories with files and
branches, issues, pull requests and releases, all in memory. Reads and writes
work and stay consistent until the program ends. It prints what an MCP client
needs.

A configuration file may set anything but the upstream (gitea.url), which is
always the built-in one, and tls.mode, which is off.`,
		Example: "  aegis demo\n  aegis demo --listen 127.0.0.1:9000 --token a-token-of-my-own\n" +
			"  aegis demo -c aegis.yaml",
	}
	file := cmd.Flags().StringP("config", "c", "", "configuration `FILE` (default none)")
	addr := cmd.Flags().String("listen", "", "`ADDR` to listen on (default 127.0.0.1:8080, or the configuration's)")
	token := cmd.Flags().String("token", "",
		"bearer `TOKEN` for clients, 16 characters or longer (default a random one)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		// First, since the configuration needs its address. It is a listener of its own
		// on loopback: calls take the same way as to a real Gitea.
		gitea, err := demo.Start()
		if err != nil {
			return err
		}
		defer gitea.Close()
		cfg, err := demoConfig(gitea, *file, *addr, *token)
		if err != nil {
			return err
		}
		forget, err := demoData(cfg)
		if err != nil {
			return err
		}
		defer forget()
		log, err := newLog(cfg, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		ln, err := listen(cmd.Context(), cfg.Listen, mainHint)
		if err != nil {
			return err
		}
		cfg.Listen = ln.Addr().String() // port 0 has become a real one
		gitea.SignIn(cfg, cfg.Base().String())
		srv, err := newServer(server.Open, cfg, log)
		if err != nil {
			_ = ln.Close() // err says what went wrong
			return err
		}
		defer srv.Close()
		// The demo's own is the last one, after those of a file.
		bearer := cfg.Auth.Tokens[len(cfg.Auth.Tokens)-1].Token.Reveal()
		if err := printDemo(cmd.OutOrStdout(), srv, cfg.Listen, bearer); err != nil {
			return err
		}
		announce(log.Logger, srv, ln)
		return srv.Serve(cmd.Context(), ln)
	}
	return cmd
}

// demoConfig is the file's configuration, or the default one, with the demo's
// upstream and its token, which comes last.
func demoConfig(gitea *demo.Demo, file, addr, token string) (*config.Config, error) {
	tok, err := gitea.Token(token)
	if err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.Gitea.URL = gitea.URL()
	cfg.Auth.Tokens = []config.Token{tok}
	// The defaults are the demo's, so that a file for it may have three lines.
	if file != "" {
		env := config.OSEnv(filepath.Dir(file))
		env.Base = cfg // what the file leaves out is the demo's
		if cfg, err = config.LoadEnv(file, env); err != nil {
			return nil, blamed(err)
		}
		// Tokens of a file are for a real Gitea; the built-in one takes them as its
		// user's, so that the file works here unchanged.
		gitea.Adopt(cfg.Auth.Tokens)
		cfg.Gitea.URL = gitea.URL()
		if cfg.IsSet("auth.tokens") {
			cfg.Auth.Tokens = append(cfg.Auth.Tokens, tok)
		}
	}
	if addr != "" {
		cfg.Listen = addr
	}
	// A certificate for the name of a real deployment cannot be had here, and the
	// authority would be asked for one.
	cfg.TLS.Mode = "off"
	// Again, since address and token came after the file was checked.
	if problems := cfg.Validate(); len(problems) > 0 {
		return nil, problems
	}
	return cfg, nil
}

// demoData gives the demo a folder of its own for what it keeps, unless the file
// names one, and returns what removes it.
func demoData(cfg *config.Config) (forget func(), err error) {
	if cfg.IsSet("data_dir") {
		return func() {}, nil
	}
	// Not below the working folder: a demo leaves nothing behind, and two of them do
	// not meet.
	cfg.DataDir, err = os.MkdirTemp("", "aegis-demo-")
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "windows" && !cfg.IsSet("audit.path") {
		cfg.Audit.Path = "off" // the log needs locks that only Unix systems give
	}
	return func() { _ = os.RemoveAll(cfg.DataDir) }, nil // the system empties its temporary folder
}

// printDemo prints commands that work as they are: a person pastes the first one, and
// has a connected client. The token is shown: it is worth something on this machine
// alone, and only while the demo runs.
func printDemo(w io.Writer, srv *server.Server, addr, token string) error {
	_, err := fmt.Fprintf(w, `Aegis is serving a built-in demo Gitea. Stop it with Ctrl-C.

  MCP endpoint   %[1]s
  Bearer token   %[2]s
  Tools          %[3]d

Add it to Claude Code:

  claude mcp add --transport http gitea %[1]s --header "Authorization: Bearer %[2]s"

Or leave the header out and sign in as %[7]s with the password %[8]s;
%[1]s is then all that an MCP client needs.

Or call a tool by hand:

  curl -s http://%[4]s%[5]s \
    -H 'Authorization: Bearer %[2]s' \
    -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' \
    -d '%[6]s'

`, srv.Endpoint(), token, len(srv.Tools()), localAddr(addr), server.MCPPath, demoRequest(srv),
		demo.Login, demo.Password)
	return err
}

// demoRequest is a JSON-RPC request that works with the tools of srv.
func demoRequest(srv *server.Server) string {
	const tool, args = "gitea_issue_list", `{"owner":"acme","repo":"garden","limit":3}`
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	// A configuration may have taken the tool away; the printed command must work all
	// the same.
	if _, err := srv.Selection().Lookup(tool); err != nil {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	}
	for _, t := range srv.Tools() {
		if t.Name == tool {
			return call(`{"name":"` + tool + `","arguments":` + args + `}`)
		}
	}
	// In search mode tools are called through this one.
	return call(`{"name":"gitea_call_tool","arguments":{"name":"` + tool + `","arguments":` + args + `}}`)
}
