package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/cmd/aegis/internal/setup"
	"aegis/config"
	"aegis/proxy/server"
)

// doctorFlags are the command line of "aegis doctor".
type doctorFlags struct {
	config, url, client, ca   string
	cert, key                 string
	register, asJSON, noGitea bool
}

// newDoctor returns "aegis doctor".
func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Test the running deployment as clients see it",
		Long: `Asks the running Aegis at its public address, as MCP clients would, and says for
each check what is wrong and how to fix it, in the words of the proxy that stands
before it: name, port, certificate, Host and Origin, the metadata documents byte for
byte, 401 challenges, CORS, encoded slashes, buffering, body size, clocks. Then it asks
Gitea: version, the OAuth application, the scopes of the tokens in the configuration.

Run it where the configuration is; better still, run it once more from another network
with --url alone. Clients that it knows: ` + strings.Join(doctor.Clients(), ", ") + `.

No token is sent to the public address. It exits with 1 when a check fails.`,
		Example: "  aegis doctor -c /etc/aegis/aegis.yaml\n  aegis doctor --client claude\n" +
			"  aegis doctor --url https://aegis.example.org --register",
	}
	var f doctorFlags
	file := configFlag(cmd)
	cmd.Flags().StringVar(&f.url, "url", "",
		"public address to test, `URL` without the MCP path (default public_url); without -c no configuration is read")
	cmd.Flags().StringVar(&f.client, "client", "", "also check what this `CLIENT` needs")
	cmd.Flags().StringVar(&f.ca, "ca", "", "PEM `FILE` with a private authority that clients trust")
	cmd.Flags().StringVar(&f.cert, "cert", "",
		"PEM `FILE` with the certificate to show, where tls.client_ca asks for one")
	cmd.Flags().StringVar(&f.key, "key", "", "PEM `FILE` with its private key")
	cmd.Flags().BoolVar(&f.register, "register", false, "also register a client; nothing is kept of it")
	cmd.Flags().BoolVar(&f.noGitea, "no-gitea", false, "leave Gitea out")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print a JSON array")
	complete := cobra.FixedCompletions(doctor.Clients(), cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("client", complete) // only completion depends on it
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f.config = *file
		return runDoctor(cmd, f)
	}
	return cmd
}

// runDoctor looks at the public address first, and then at Gitea, which needs the
// configuration: with --url alone it is left out.
func runDoctor(cmd *cobra.Command, f doctorFlags) error {
	// Before anything is looked at: the checks take a minute, and the mistake would
	// show at their end.
	if f.client != "" && !slices.Contains(doctor.Clients(), f.client) {
		return misused(fmt.Errorf("--client: unknown client; use one of %s", strings.Join(doctor.Clients(), ", ")))
	}
	var cfg *config.Config // nil when --url stands in for it
	if f.config != "" || f.url == "" {
		var err error
		if cfg, err = loadConfig(f.config); err != nil {
			return err
		}
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	report := &doctorReport{
		out: cmd.OutOrStdout(), asJSON: f.asJSON, findings: []findingJSON{}, count: map[doctor.Status]int{},
	}
	// With --url alone there is nothing to compare answers with: only what holds for
	// every Aegis is checked.
	if cfg == nil {
		if err := runDoctorAt(cmd.Context(), f.url, o, report); err != nil {
			return err
		}
		return report.end()
	}
	// What the configuration describes; the answers of the running Aegis are compared with it.
	examined, err := server.Examine(cfg, buildVersion())
	if err != nil {
		return unbuilt(err)
	}
	// It holds the parts of a server that never listens.
	defer examined.Close()
	// Differences between the running Aegis and this one were made on the way, or the
	// file has changed since it was loaded.
	o.Reference, o.Endpoints, o.MaxBody = examined.Handler, examined.Endpoints, int64(cfg.Server.MaxBodyBytes)
	if err := runDoctorAt(cmd.Context(), cmp.Or(f.url, examined.Base), o, report); err != nil {
		return err
	}
	if !f.noGitea {
		examineGitea(cmd.Context(), cfg, examined, report.add)
	}
	return report.end()
}

// options returns what the command line alone says of the examination.
func (f doctorFlags) options() (o doctor.Options, err error) {
	pair, err := clientPair(f.cert, f.key)
	if err != nil {
		return o, err
	}
	o = doctor.Options{Client: f.client, Register: f.register, Certificates: pair.Certificates}
	if f.ca != "" {
		if o.Roots, err = rootsWith(f.ca); err != nil {
			return o, misused(fmt.Errorf("--ca: %w", err))
		}
	}
	return o, nil
}

// runDoctorAt looks at one public address.
func runDoctorAt(ctx context.Context, address string, o doctor.Options, report *doctorReport) (err error) {
	if o.Base, err = setup.WebAddress(strings.TrimRight(address, "/")); err != nil {
		return misused(errors.New("--url: give the public address such as https://aegis.example.org, " +
			"without the MCP path"))
	}
	if !report.asJSON {
		fmt.Fprintf(report.out, "Looking at %s\n\n", o.Base)
	}
	doctor.Run(ctx, o, report.add)
	return nil
}

// rootsWith returns the system's authorities and those of a file. A private authority
// is added to the system's and does not replace them, as when it is installed where
// clients run.
func rootsWith(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	// It skips what it cannot read without an error, a key in the wrong file for
	// example.
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return pool, nil
}

// doctorReport prints findings as they come, or all at once as JSON.
type doctorReport struct {
	out      io.Writer
	asJSON   bool
	findings []findingJSON
	count    map[doctor.Status]int
}

// findingJSON is a finding as "aegis doctor --json" prints it; the names are an interface.
type findingJSON struct {
	doctor.Finding
	// Says and Mend are message and fix by the names that they had at first. The version
	// after this one drops them.
	Says string `json:"says"`
	Mend string `json:"mend,omitempty"`
}

// marks are the outcomes in text, of one width.
var marks = map[doctor.Status]string{
	doctor.OK: "ok     ", doctor.Skipped: "skipped", doctor.Warning: "WARNING", doctor.Failure: "FAILURE",
}

// add prints a finding at once: some checks wait for seconds. Whether it could be printed is
// seen at the end, since what cannot be written to now cannot be written to then.
func (r *doctorReport) add(f doctor.Finding) {
	r.findings = append(r.findings, findingJSON{f, f.Message, f.Fix})
	r.count[f.Status]++
	if r.asJSON {
		return
	}
	fmt.Fprintf(r.out, "%s  %-15s %s\n", marks[f.Status], f.Check, f.Message)
	lead := "         fix: "
	for line := range strings.SplitSeq(f.Fix, "\n") {
		if line != "" {
			fmt.Fprintln(r.out, lead+line)
			lead = strings.Repeat(" ", len(lead))
		}
	}
}

// end prints what is left, and returns an error when a check failed.
func (r *doctorReport) end() (err error) {
	bad := r.count[doctor.Failure]
	if r.asJSON {
		err = printJSON(r.out, r.findings, false)
	} else {
		_, err = fmt.Fprintf(r.out, "\n%d ok, %d warnings, %d failures\n", r.count[doctor.OK],
			r.count[doctor.Warning], bad)
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d checks failed", bad, len(r.findings))
	}
	return err
}

// examineGitea looks at the server behind Aegis, from here.
func examineGitea(ctx context.Context, cfg *config.Config, examined *server.Examined, report func(doctor.Finding)) {
	// The client that Aegis itself would use, with its authorities and its proxy:
	// another one could succeed where Aegis fails.
	client, err := server.GiteaHTTP(cfg.Gitea)
	if err != nil {
		report(doctor.Finding{Check: "gitea", Status: doctor.Failure, Message: err.Error(),
			Fix: "correct gitea in the configuration"})
		return
	}
	defer client.CloseIdleConnections()
	doctor.ExamineGitea(ctx, doctor.GiteaOptions{
		Gitea: doctor.Gitea{URL: &cfg.Gitea.URL.URL, HTTP: client}, Auth: cfg.Auth, Needed: examined.Needs,
		CheckSignIn: examined.CheckSignIn,
	}, report)
}
