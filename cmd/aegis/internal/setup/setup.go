package setup

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/config"
)

// setupFlags answer the questions of "aegis setup" beforehand. The wizard writes its
// answers into them, so that flags, variables and answers are the same to all that
// follows.
type setupFlags struct {
	gitea, ca, mode, tls, public, listen string
	token, name, admin, id, secret       string
	email, cert, key, data, output       string
	force, yes, offline, agree           bool
}

// New returns the command with all its sub-commands.
func New(p Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Write a first configuration, or connect a client",
		Long: `Asks what a first configuration must say, checks Gitea with the answers, and writes
the file and its secrets, for their owner alone. Flags answer beforehand; with --yes
nothing is asked. Nothing that exists is replaced without --force.

"aegis setup gitea" makes the OAuth application in Gitea. The other commands below
this one connect an MCP client to a configured Aegis.`,
		Example: "  aegis setup\n  aegis setup --gitea https://git.example.org --mode oauth --tls auto --agree-tos " +
			"--public-url https://aegis.example.org --admin-token file:admin.token --yes",
	}
	f := &setupFlags{}
	s := cmd.Flags().StringVar
	s(&f.gitea, "gitea", "", "address of Gitea, `URL`")
	s(&f.ca, "gitea-ca", "", "PEM `FILE` with a private authority of Gitea's certificate")
	s(&f.mode, "mode", "", "how callers are known: token or oauth")
	s(&f.tls, "tls", "", "who has the certificate: off (a proxy, or nobody on loopback), auto or files")
	s(&f.public, "public-url", "", "address that clients use, `URL`")
	s(&f.listen, "listen", "", "`ADDR` to listen on (default 127.0.0.1:8080, with TLS :443)")
	s(&f.token, "gitea-token", "", "with mode token: the Gitea `TOKEN` that calls run with, "+
		"or file:PATH (default $GITEA_TOKEN)")
	s(&f.name, "name", "", "with mode token: `NAME` of the caller (default the login)")
	s(&f.admin, "admin-token", "", "with mode oauth: a Gitea `TOKEN` that makes the OAuth application, "+
		"or file:PATH (default $"+adminTokenVariable+")")
	s(&f.id, "client-id", "", "with mode oauth: client `ID` of an application that is there")
	s(&f.secret, "client-secret", "", "with mode oauth: its `SECRET`, or file:PATH (default $GITEA_OAUTH_SECRET)")
	s(&f.email, "email", "", "with tls auto: `ADDRESS` that the certificate authority may write to")
	s(&f.cert, "cert", "", "with tls files: PEM `FILE` with the certificate and its chain")
	s(&f.key, "key", "", "with tls files: PEM `FILE` with its private key")
	s(&f.data, "data-dir", "", "`FOLDER` for what Aegis keeps (default data beside the configuration, "+
		"/var/lib/aegis for one in /etc)")
	cmd.Flags().StringVarP(&f.output, "output", "o", "aegis.yaml", "configuration `FILE` to write")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace the configuration and its secrets")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "ask nothing: take flags and defaults")
	// It is a flag of its own and not part of --yes: a default cannot agree to terms.
	cmd.Flags().BoolVar(&f.agree, "agree-tos", false,
		"with tls auto: agree to the terms of Let's Encrypt, "+termsOfService)
	cmd.Flags().BoolVar(&f.offline, "offline", false, "do not ask Gitea")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return run(cmd, p, f)
	}
	cmd.AddCommand(newGitea())
	// Names of clients are sub-commands and not arguments, so that the shell completes
	// them and the help lists them.
	for _, c := range clients {
		cmd.AddCommand(newClient(p, c))
	}
	return cmd
}

// wizard is one run of this command. The answers are in the flags; here is what follows
// from them.
type wizard struct {
	*setupFlags
	program Program
	ask     *asker
	out     io.Writer
	gitea   doctor.Gitea
	// secrets to write, by file name.
	secrets [][2]string
	// Whose the Gitea token is; the preset for the name of the caller.
	login string
}

// run asks, and writes at the end, so that an interrupted run leaves no configuration.
// Only the application in Gitea is made before, with its two files: Gitea shows the
// secret once.
func run(cmd *cobra.Command, p Program, f *setupFlags) error {
	if _, err := os.Stat(f.output); err == nil && !f.force {
		return fmt.Errorf("%s is there already; choose another file with -o, or replace it with --force", f.output)
	}
	s := &wizard{setupFlags: f, program: p, out: cmd.OutOrStdout()}
	s.ask = &asker{in: bufio.NewReader(cmd.InOrStdin()), out: s.out, quiet: f.yes, done: cmd.Context().Done()}
	s.ask.tty, _ = cmd.InOrStdin().(*os.File) // a file that is no terminal is not one to hide input on
	ctx := cmd.Context()
	// The order matters: Gitea checks tokens, and presets come from earlier answers.
	for _, step := range []func(context.Context) error{s.askGitea, s.askMode, s.askTLS, s.askCallers} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := s.write(); err != nil {
		return err
	}
	return s.next()
}

// askGitea asks for Gitea's address until one answers as Gitea does. It is the first
// question, since a wrong address makes all others pointless.
func (s *wizard) askGitea(ctx context.Context) error {
	for i := range tries {
		address, err := s.ask.ask(s.setupFlags.gitea,
			question{flag: "gitea", text: "Address of Gitea", preset: "http://127.0.0.1:3000", check: webAddress})
		if err != nil {
			return err
		}
		// Also without asking Gitea: the address goes into the file as this reads it.
		if s.gitea, err = giteaAt(address, s.ca); err != nil {
			return err
		}
		if s.offline {
			return nil
		}
		facts, err := s.gitea.Ask(ctx, "")
		if err != nil {
			if s.setupFlags.gitea != "" || s.yes || i == tries-1 {
				return fmt.Errorf("%s: %w (--offline does not ask it)", address, err)
			}
			fmt.Fprintln(s.out, "  "+err.Error())
			continue
		}
		answers := "  Gitea " + facts.Version + " answers."
		if facts.Hidden {
			answers = "  Gitea answers; it tells its version to signed-in users only."
		}
		_, err = fmt.Fprintln(s.out, answers)
		return err
	}
	return nil
}

// askMode asks how callers are known.
func (s *wizard) askMode(context.Context) error {
	return s.ask.answer(question{
		into: &s.mode, flag: "mode", preset: "token", check: oneOf("token", "oauth"),
		text: "How are callers known? token: one shared token; oauth: people sign in with Gitea",
	})
}

// askTLS asks for the certificate and, with presets that depend on it, the addresses.
func (s *wizard) askTLS(context.Context) error {
	if err := s.ask.answer(question{
		into: &s.tls, flag: "tls", preset: "off", check: oneOf("off", "auto", "files"),
		text: "Who has the certificate? off: a reverse proxy, or nobody on this machine; " +
			"auto: Aegis gets one; files: Aegis reads files",
	}); err != nil {
		return err
	}
	// Plain HTTP is for loopback alone; with TLS the port is the one that every client
	// tries.
	listen := "127.0.0.1:8080"
	if s.tls != "off" {
		listen = ":443"
	}
	public := question{
		into: &s.public, flag: "public-url", text: "Address that clients use",
		check: s.checkPublic, needed: s.tls != "off",
	}
	if s.tls == "off" {
		// With TLS there is no preset: no name of this machine could be guessed that a
		// certificate is for.
		public.preset = "http://" + s.program.LocalAddr(cmp.Or(s.listen, listen))
	}
	if err := s.ask.answer(public); err != nil {
		return err
	}
	s.public = strings.TrimRight(s.public, "/")
	if u, err := url.Parse(s.public); err == nil && u.Scheme == "http" && u.Port() != "" {
		listen = net.JoinHostPort(u.Hostname(), u.Port()) // clients come straight to it
	}
	if err := s.ask.answer(question{
		into: &s.listen, flag: "listen", text: "Address to listen on", preset: listen, check: checkListen,
	}); err != nil {
		return err
	}
	switch s.tls {
	case "auto":
		return s.askAuthority()
	case "files":
		return s.ask.answer(
			question{into: &s.cert, flag: "cert", text: "File with the certificate and its chain", needed: true,
				check: readableFile},
			question{into: &s.key, flag: "key", text: "File with its private key", needed: true, check: readableFile},
		)
	}
	return nil
}

// termsOfService is where the authority has the terms that tls auto agrees to.
const termsOfService = "https://letsencrypt.org/repository/"

// askAuthority asks what the certificate authority wants to know.
func (s *wizard) askAuthority() error {
	if !s.agree {
		if err := s.ask.answer(question{
			into: new(string), flag: "agree-tos", needed: true, check: oneOf("yes"),
			text: "The certificate comes from Let's Encrypt. Do you agree to its terms, " + termsOfService +
				"? yes, or stop with Ctrl-C",
		}); err != nil {
			return err
		}
	}
	if s.email != "" || s.yes {
		return nil
	}
	return s.ask.answer(question{into: &s.email, flag: "email", text: "E-mail address for it (may be empty)"})
}

// checkPublic refuses addresses over which tokens would travel in the clear. Loading
// the file would refuse them too; here the question can be asked again.
func (s *wizard) checkPublic(text string) error {
	if err := webAddress(text); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme == "http" && (s.tls != "off" || !local) {
		return errors.New("an https address; plain http is for this machine alone")
	}
	return nil
}

// checkListen checks the form alone: whether the port is free is seen when Aegis starts.
func checkListen(text string) error {
	if _, _, err := net.SplitHostPort(text); err != nil {
		return errors.New("host:port, such as 127.0.0.1:8080 or :443")
	}
	return nil
}

// readableFile opens a file as this user; Aegis may run as another one, which next says.
func readableFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// askCallers asks for what the mode needs. Tokens for clients are made here, as people
// choose bad ones.
func (s *wizard) askCallers(ctx context.Context) error {
	if s.mode == "oauth" {
		return s.askApp(ctx)
	}
	if err := s.ask.answer(question{
		into: &s.token, flag: "gitea-token", variable: "GITEA_TOKEN", secret: true, needed: true,
		check: s.checkToken(ctx),
		text:  "Gitea token that calls run with (make one in Gitea under Settings, Applications)",
	}); err != nil {
		return err
	}
	if err := s.ask.answer(question{ // only now is the login known
		into: &s.name, flag: "name", text: "Name of the caller", preset: cmp.Or(s.login, "agent"), check: checkName,
	}); err != nil {
		return err
	}
	// 256 bits, as "openssl rand -hex 32" makes and the manual recommends.
	bearer := make([]byte, 32)
	_, _ = rand.Read(bearer) // never fails: it ends the process instead
	s.secrets = [][2]string{{"gitea_token", s.token}, {"client_token", fmt.Sprintf("%x", bearer)}}
	return nil
}

// callerName is the pattern of auth.tokens.name in the configuration.
var callerName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// checkName holds what the configuration holds names to, at the question rather than at the end.
func checkName(text string) error {
	if !callerName.MatchString(text) {
		return errors.New("1 to 64 characters of a-z A-Z 0-9 . _ -")
	}
	return nil
}

// checkToken asks Gitea whose a token is. It is the check of the question, so that a
// mistyped token is asked for again.
func (s *wizard) checkToken(ctx context.Context) func(string) error {
	return func(token string) error {
		if s.offline {
			return nil
		}
		u, err := s.gitea.Token(ctx, token)
		if err != nil {
			return err
		}
		if u.Login == "" {
			return errors.New("the token lacks the scope read:user, without which Aegis cannot learn whose it is")
		}
		s.login = u.Login
		// It is printed, since people often make a token with fewer scopes than they
		// mean to use.
		may := "everything that " + u.Login + " may"
		if u.Scopes != nil {
			may = strings.Join(u.Scopes, ", ")
		}
		fmt.Fprintf(s.out, "  The token is %s's and may do: %s\n", u.Login, may)
		return nil
	}
}

// askApp makes the application in Gitea, or asks for one that is there. There are two
// ways: setup makes it with a token that may, or a person made it and copies id and
// secret.
func (s *wizard) askApp(ctx context.Context) error {
	admin, err := secretValue("admin-token", s.admin, adminTokenVariable)
	if err != nil {
		return err
	}
	if admin == "" && s.id == "" {
		if err := s.ask.answer(question{
			into: &admin, flag: "admin-token", secret: true,
			text: "Gitea token with write:user, to make the OAuth application now (empty: it is there already)",
		}); err != nil {
			return err
		}
	}
	// An id that was given means an application that is there; making another one would
	// surprise.
	if admin != "" && s.id == "" {
		app, _, err := makeApp(ctx, &appFlags{
			gitea: s.gitea.URL.String(), ca: s.ca, public: s.public, name: "Aegis", dir: s.secretsDir(), force: s.force,
		}, admin)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "  Gitea has the OAuth application %q.\n", app.Name)
		s.id = app.ClientID
		return nil
	}
	if !s.yes {
		fmt.Fprintf(s.out, "  In Gitea, under Settings, Applications, the application must be confidential,\n"+
			"  with the redirect URI %s\n", callbackOf(s.public))
	}
	if err := s.ask.answer(
		question{into: &s.id, flag: "client-id", text: "Client ID", needed: true},
		question{into: &s.secret, flag: "client-secret", variable: "GITEA_OAUTH_SECRET", text: "Client secret",
			secret: true, needed: true},
	); err != nil {
		return err
	}
	s.secrets = [][2]string{{fileClientSecret, s.secret}}
	return nil
}

// Beside the configuration, which names them by relative paths, so that the whole
// folder can be moved.
func (s *wizard) secretsDir() string { return filepath.Join(filepath.Dir(s.output), "secrets") }

// write writes the secrets and the configuration, which must load.
func (s *wizard) write() error {
	for _, secret := range s.secrets {
		path := filepath.Join(s.secretsDir(), secret[0])
		err := writeSecret(path, secret[1], s.force)
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s is there already; choose another folder with -o, or replace it with --force", path)
		}
		if err != nil {
			return err
		}
	}
	// The draft is beside the file, as its secrets are given by relative paths.
	draft := s.output + ".new"
	if err := writeSecret(draft, strings.TrimSuffix(s.yaml(), "\n"), true); err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft) }() // it has become the file, or is of no use
	// What is wrong now is a bug of these questions or two answers that contradict each
	// other; the file of before is still there.
	if err := s.program.Check(draft); err != nil {
		var problems config.Problems
		if errors.As(err, &problems) {
			return fmt.Errorf("the answers do not fit together:\n%w", problems)
		}
		return err
	}
	// In one step, since a running Aegis may watch the file.
	return os.Rename(draft, s.output)
}
