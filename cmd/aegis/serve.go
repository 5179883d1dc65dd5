package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/server"
)

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP clients",
		Long: `Serves MCP clients until it is told to stop (SIGINT or SIGTERM); calls in flight
may then finish within server.shutdown_timeout. A second signal ends at once.

Nothing listens before the whole configuration has been found right. A Gitea
that is not there yet is waited for: /readyz says so, and calls fail until it is.`,
		Example: "  aegis serve\n  aegis serve -c /etc/aegis/aegis.yaml",
		Args:    cobra.NoArgs,
	}
	file := configFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, srv, log, err := build(*file, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer srv.Close()
		for _, w := range cfg.Warnings() {
			log.Warn().Msg(w.String())
		}
		ln, err := listen(cmd.Context(), cfg.Listen)
		if err != nil {
			return err
		}
		return failed(serve(cmd.Context(), srv, ln, log))
	}
	return cmd
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, failed(fmt.Errorf("cannot listen on %s: %w; is another program using the port? Choose one with listen in the configuration (demo: --listen)", addr, err))
	}
	return ln, nil
}

// serve runs srv on ln until ctx ends.
func serve(ctx context.Context, srv *server.Server, ln net.Listener, log zerolog.Logger) error {
	log.Info().Str("listen", ln.Addr().String()).Str("endpoint", srv.Endpoint()).Int("tools", len(srv.Tools())).Str("version", buildVersion()).Msg("serving")
	go srv.Start(ctx)
	return srv.Serve(ctx, ln)
}

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a configuration without serving it",
		Long: `Loads the configuration and builds everything short of listening, just as serve
does, and reports every problem with its line. Gitea is not asked.

With --print it then writes the effective configuration, defaults filled in and
secrets hidden.`,
		Example: "  aegis check -c aegis.yaml\n  aegis check --print",
		Args:    cobra.NoArgs,
	}
	file := configFlag(cmd)
	show := cmd.Flags().Bool("print", false, "print the effective configuration, secrets hidden")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		name, err := findConfig(*file)
		if err != nil {
			return err
		}
		cfg, srv, _, err := build(name, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer srv.Close()
		for _, w := range cfg.Warnings() {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
		}
		if *show {
			out, err := config.Effective(cfg)
			if err != nil {
				return failed(err)
			}
			_, err = cmd.OutOrStdout().Write(out)
			return failed(err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: ok; %d tools at %s\n", name, len(srv.Tools()), srv.Endpoint())
		return failed(err)
	}
	return cmd
}

// healthTimeout bounds a health check; container runtimes kill slower ones.
const healthTimeout = 5 * time.Second

func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running server whether it is well",
		Long: `Asks the server that this configuration describes, on this machine, for /healthz
(or /readyz with --ready) and exits with 0 when it is well and 1 when it is not.
Made for container health checks.`,
		Example: "  aegis health -c /etc/aegis/aegis.yaml\n  aegis health --url http://127.0.0.1:8080 --ready",
		Args:    cobra.NoArgs,
	}
	file := configFlag(cmd)
	base := cmd.Flags().String("url", "", "address of the server; instead of reading a configuration")
	ready := cmd.Flags().Bool("ready", false, "also require that Gitea answers (/readyz)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *base == "" {
			cfg, err := loadConfig(*file)
			if err != nil {
				return err
			}
			*base = "http://" + localAddr(cfg.Listen)
		}
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		return checkHealth(cmd, *base+path)
	}
	return cmd
}

func checkHealth(cmd *cobra.Command, url string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return misused(err)
	}
	// A proxy of the environment has no part in asking this machine.
	client := &http.Client{Transport: &http.Transport{Proxy: nil}}
	res, err := client.Do(req)
	if err != nil {
		return failed(fmt.Errorf("the server does not answer: %w", err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return failed(fmt.Errorf("%s answers %s", url, res.Status))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "ok")
	return failed(err)
}

// localAddr turns a listen address into one to connect to.
func localAddr(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}
