package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/server"
)

func newDemo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try Aegis with a built-in Gitea",
		Long: `Starts Aegis before a small Gitea of its own: users, repositories with files and
branches, issues, pull requests and releases, all in memory. Reads and writes
work and stay consistent until the program ends. It prints what an MCP client
needs.

A configuration file may set anything but the upstream (gitea.url), which is
always the built-in one.`,
		Example: "  aegis demo\n  aegis demo --listen 127.0.0.1:9000 --token a-token-of-my-own\n  aegis demo -c aegis.yaml",
		Args:    cobra.NoArgs,
	}
	file := cmd.Flags().StringP("config", "c", "", "configuration `FILE` (default none)")
	addr := cmd.Flags().String("listen", "", "`ADDR` to listen on (default 127.0.0.1:8080, or the configuration's)")
	token := cmd.Flags().String("token", "", "bearer `TOKEN` for clients, 16 characters or longer (default a random one)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		demo, err := server.StartDemo()
		if err != nil {
			return failed(err)
		}
		defer demo.Close()
		cfg, err := demoConfig(demo, *file, *addr, *token)
		if err != nil {
			return err
		}
		log, err := newLog(cfg.Log, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		ln, err := listen(cmd.Context(), cfg.Listen)
		if err != nil {
			return err
		}
		cfg.Listen = ln.Addr().String() // port 0 has become a real one
		srv, err := newServer(cfg, log)
		if err != nil {
			_ = ln.Close() // the error that counts is the other one
			return err
		}
		defer srv.Close()
		bearer := cfg.Auth.Tokens[len(cfg.Auth.Tokens)-1].Token.Reveal()
		if err := printDemo(cmd.OutOrStdout(), srv, cfg.Listen, bearer); err != nil {
			return failed(err)
		}
		return failed(serve(cmd.Context(), srv, ln, log))
	}
	return cmd
}

// demoConfig is the file's configuration, or the default one, with the demo's
// upstream and its token, which comes last.
func demoConfig(demo *server.Demo, file, addr, token string) (*config.Config, error) {
	tok, err := demo.Token(token)
	if err != nil {
		return nil, failed(err)
	}
	cfg := config.Default()
	cfg.Gitea.URL = demo.URL()
	cfg.Auth.Tokens = []config.Token{tok}
	if file != "" {
		if cfg, err = loadDemoFile(file, cfg); err != nil {
			return nil, err
		}
		demo.Adopt(cfg.Auth.Tokens)
		cfg.Gitea.URL = demo.URL()
		if cfg.IsSet("auth.tokens") {
			cfg.Auth.Tokens = append(cfg.Auth.Tokens, tok)
		}
	}
	if addr != "" {
		cfg.Listen = addr
	}
	if problems := cfg.Validate(); len(problems) > 0 {
		return nil, problems
	}
	return cfg, nil
}

func printDemo(w io.Writer, srv *server.Server, addr, token string) error {
	_, err := fmt.Fprintf(w, `Aegis is serving a built-in demo Gitea. Stop it with Ctrl-C.

  MCP endpoint   %[1]s
  Bearer token   %[2]s
  Tools          %[3]d

Add it to Claude Code:

  claude mcp add --transport http gitea %[1]s --header "Authorization: Bearer %[2]s"

Or call a tool by hand:

  curl -s http://%[4]s%[5]s \
    -H 'Authorization: Bearer %[2]s' \
    -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gitea_issue_list","arguments":{"owner":"acme","repo":"garden","limit":3}}}'

`, srv.Endpoint(), token, len(srv.Tools()), localAddr(addr), server.MCPPath)
	return err
}
