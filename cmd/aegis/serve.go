package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"aegis/config"
	"aegis/proxy/server"
)

// newServe returns "aegis serve".
func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP clients",
		Long: `Serves MCP clients until it is told to stop (SIGINT or SIGTERM); calls in flight
may then finish within server.shutdown_timeout. A second signal ends at once.

Nothing listens before the whole configuration has been found right. A Gitea
that is not there yet is waited for: /readyz says so, and calls fail until it is.

When the configuration changes, or on SIGHUP, it is loaded anew; calls in flight
finish as they began. A broken file changes nothing: the log says what is wrong.`,
		Example: "  aegis serve\n  aegis serve -c /etc/aegis/aegis.yaml",
	}
	file := configFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		name, err := findConfig(*file)
		if err != nil {
			return err
		}
		return serveFile(cmd.Context(), name, cmd.ErrOrStderr())
	}
	return cmd
}

// serveFile serves what a configuration file describes, and follows its changes.
func serveFile(ctx context.Context, name string, stderr io.Writer) error {
	// Before all else: a signal that comes while the first configuration is loaded must not
	// end the process.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	// The watcher compares times of files with it. A change between loading and
	// watching would otherwise be lost until the next one.
	since := time.Now()
	// Sockets that systemd handed over must be closed on every way out, so they are
	// taken before anything can fail.
	svc, err := newService()
	if err != nil {
		return err
	}
	defer svc.Close()
	// The first loading goes through the reloader too: it remembers which files were
	// read, found or not.
	r := &reloader{file: name, stderr: stderr, service: svc}
	cfg, err := r.load()
	if err != nil {
		return blamed(err)
	}
	log, err := newLog(cfg, stderr)
	if err != nil {
		return err
	}
	srv, err := newServer(server.Open, cfg, log)
	if err != nil {
		return err
	}
	r.live = server.NewLive(srv)
	defer r.live.Close()
	for _, w := range cfg.Warnings() {
		log.Warn().Msg(w.String())
	}
	ctx, cancel := context.WithCancel(ctx)
	// The deferred calls end the reloader before the server is closed: a reload under
	// way uses it.
	var reloading sync.WaitGroup
	defer reloading.Wait()
	defer cancel()
	// The reloader begins when the listeners are open: a reload before that would
	// report a service that does not listen yet.
	return svc.serve(ctx, r.live, cfg.Listen, log.Logger, func() {
		reloading.Go(func() { r.run(ctx, hangup, since) })
	})
}

// mainHint is what to do when the main listener cannot be opened.
const mainHint = "is another program using the port? Choose one with listen in the configuration (demo: --listen)"

// listen opens a listener; hint ends the error. It goes through ListenConfig to end
// with ctx, as looking up the name of a host may take long.
func listen(ctx context.Context, addr, hint string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; %s", addr, err, hint)
	}
	return ln, nil
}

// serve listens on addr, and on the plain listener beside it if there is one, or takes
// systemd's sockets for them, and runs live until ctx ends. It calls listening once
// both are open. The main listener is opened first, since an error of it is what people
// expect to read.
func (s *service) serve(ctx context.Context, live *server.Live, addr string, log zerolog.Logger,
	listening func()) error {
	ln, err := s.listenMain(ctx, addr)
	if err != nil {
		return err
	}
	// The listeners are those of the first generation: both addresses are settings that
	// a reload keeps.
	srv := live.Server()
	plain, err := s.listenPlain(ctx, srv.PlainListen())
	if err != nil {
		_ = ln.Close() // err says what went wrong
		return err
	}
	announce(log, srv, ln)
	// systemd hears of the end before the watchdog is stopped, so that the time for
	// calls in flight is not taken for a hang.
	defer s.serving(live, log)()
	defer context.AfterFunc(ctx, s.stopping)()
	listening()
	return live.Serve(ctx, ln, plain)
}

// announce logs what is served where. The address is the listener's, not the
// configuration's: port 0 has become a real one. Tests and the demo read it there.
func announce(log zerolog.Logger, srv *server.Server, ln net.Listener) {
	log.Info().Str("listen", ln.Addr().String()).Str("endpoint", srv.Endpoint()).
		Int("tools", len(srv.Tools())).Str("version", buildVersion()).Msg("serving")
}

// newCheck returns "aegis check". It builds what serve builds, from the same function,
// so that a configuration that passes also starts.
func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a configuration without serving it",
		Long: `Loads the configuration and builds everything short of listening, just as serve
does, and reports every problem with its line, and a certificate in files that
clients will refuse. Gitea is not asked.

With --print it then writes the effective configuration, defaults filled in and
secrets hidden; with --team NAME the rules of that team alone, with what it takes
from the top of the file.`,
		Example: "  aegis check -c aegis.yaml\n  aegis check --print\n  aegis check --print --team web",
	}
	file := configFlag(cmd)
	show := cmd.Flags().Bool("print", false, "print the effective configuration, secrets hidden")
	team := cmd.Flags().String("team", "", "print the effective rules of this `TEAM`; needs --print")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		name, err := findConfig(*file)
		if err != nil {
			return err
		}
		// Nothing would be printed of the team, and "ok" would look as if it had been
		// checked alone.
		if *team != "" && !*show {
			return misused(errors.New("--team needs --print"))
		}
		cfg, err := loadConfig(name)
		if err != nil {
			return err
		}
		srv, err := dryServer(cfg, "", cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer srv.Close()
		for _, w := range cfg.Warnings() {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
		}
		// Certificates are files beside the configuration, and expire without a change
		// of it.
		for _, w := range srv.CertificateWarnings() {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
		}
		if *show {
			// It is all that goes to standard output, without the line "ok", so that
			// it can be written to a file, and loaded again once it has its secrets.
			out, err := config.Effective(cfg)
			if *team != "" {
				if out, err = config.EffectiveTeam(cfg, *team); err != nil {
					return misused(err)
				}
			}
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: ok; %d tools at %s\n", name, len(srv.Tools()), srv.Endpoint())
		for _, team := range slices.Sorted(maps.Keys(cfg.Teams)) {
			// The team is there: its name comes from the same configuration.
			sel, _ := srv.Team(team)
			fmt.Fprintf(cmd.OutOrStdout(), "  team %s: %d tools at %s/%s\n", team, len(sel.Tools()), srv.Endpoint(),
				team)
		}
		return nil
	}
	return cmd
}

// healthTimeout bounds a health check unless a flag does; container runtimes kill slow
// ones, and say less than this does.
const healthTimeout = 5 * time.Second

// newHealth returns "aegis health". Images without a shell have no curl, so the program
// asks itself.
func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running server whether it is well",
		Long: `Asks the server that this configuration describes, on this machine, for /healthz
(or /readyz with --ready) and exits with 0 when it is well and 1 when it is not.
Made for container health checks. Over TLS, the server's certificate is verified
unless its address is a loopback address.`,
		Example: "  aegis health -c /etc/aegis/aegis.yaml\n  aegis health --url http://127.0.0.1:8080 --ready",
	}
	file := configFlag(cmd)
	base := cmd.Flags().String("url", "", "address of the server; instead of reading a configuration")
	ready := cmd.Flags().Bool("ready", false, "also require that Gitea answers (/readyz)")
	cert := cmd.Flags().String("cert", "", "PEM `FILE` with the certificate to show, where tls.client_ca asks for one")
	key := cmd.Flags().String("key", "", "PEM `FILE` with its private key")
	// A container runtime has a time limit of its own, which this one must stay below
	// to be able to say what is wrong.
	patience := cmd.Flags().Duration("timeout", healthTimeout, "how long to wait for the answer")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		// Before the configuration is loaded: the files are named on the command line,
		// and mistyped there.
		secure, err := clientPair(*cert, *key)
		if err != nil {
			return err
		}
		// The address that the configuration listens on, not public_url: a proxy in
		// between has its own health check.
		if *base == "" {
			cfg, err := loadConfig(*file)
			if err != nil {
				return err
			}
			*base = "http://" + localAddr(cfg.Listen)
			if cfg.TLS.Mode != "off" {
				*base = "https://" + localAddr(cfg.Listen)
				if hosts := cfg.TLSHosts(); len(hosts) > 0 {
					secure.ServerName = hosts[0] // what the certificate is for; the address is loopback
				}
			}
		}
		// The bound is for all of it: name, connection, handshake and answer.
		ctx, cancel := context.WithTimeout(cmd.Context(), *patience)
		defer cancel()
		cmd.SetContext(ctx)
		return checkHealth(cmd, *base+path, secure)
	}
	return cmd
}

// clientPair returns the TLS configuration of a client with a certificate to show; both
// files may be "". It serves two commands, health and doctor, where tls.client_ca asks
// every client for a certificate.
func clientPair(cert, key string) (*tls.Config, error) {
	// The server of Aegis speaks no older version either.
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if cert == "" && key == "" {
		return secure, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, misused(fmt.Errorf("--cert and --key: %w", err))
	}
	secure.Certificates = []tls.Certificate{pair}
	return secure, nil
}

// checkHealth asks one address. A redirect is not followed: it would ask another server
// than the one that is meant.
func checkHealth(cmd *cobra.Command, address string, secure *tls.Config) error {
	req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, address, nil)
	if err != nil {
		return misused(err)
	}
	// On a loopback address no other machine is in between, and nothing secret is sent.
	// Whether the certificate is right is a check of /readyz.
	secure.InsecureSkipVerify = loopback(req.URL)
	// A proxy of the environment has no part in asking this machine. Made for this one
	// request, and closed with it.
	client := &http.Client{
		Transport:     &http.Transport{Proxy: nil, TLSClientConfig: secure, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, res.Status)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "ok")
	return err
}

// loopback reports whether the host of u is a loopback address. Names are not resolved:
// what a name means is not this machine's to decide.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// localAddr turns a listen address into one to connect to. A listener on all interfaces
// has no address that a client could connect to; on Linux 0.0.0.0 would work, elsewhere
// it does not.
func localAddr(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		// The listener may be for IPv6 alone, where the IPv4 loopback is refused.
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}
