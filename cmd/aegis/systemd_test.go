//go:build linux

package main

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/proxy/gitea/demo"
)

// supervised is "aegis serve" as systemd starts it.
type supervised struct {
	*running
	cmd    *exec.Cmd
	inbox  *net.UnixConn
	done   chan struct{}
	demo   *demo.Demo
	config string
}

// newSupervised prepares a configuration that listens on addr.
func newSupervised(t *testing.T, addr, more string) *supervised {
	t.Helper()
	gitea, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gitea.Close)
	tok, err := gitea.Token(testToken)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &supervised{
		running: &running{t: t, file: filepath.Join(dir, "aegis.yaml"), addr: addr, gitea: gitea.URL().String(),
			giteaToken: tok.GiteaToken.Reveal(), log: &syncBuffer{},
			client: &http.Client{Transport: &http.Transport{}}, base: "http://" + addr},
		demo: gitea, done: make(chan struct{}),
	}
	s.config = s.variant(1, more)
	s.write(s.config)
	s.inbox, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.inbox.Close() })
	return s
}

// start starts the process with sockets at the descriptors 3 and up. A shell in
// between is what knows the process's number beforehand.
func (s *supervised) start(names string, sockets ...*os.File) {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" serve -c "$1"`, s.program(exe),
		s.file)
	s.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.inbox.LocalAddr().String(), "WATCHDOG_USEC=300000")
	if len(sockets) > 0 {
		s.cmd.Env = append(s.cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(sockets)), "LISTEN_FDNAMES="+names)
	}
	s.cmd.ExtraFiles = sockets
	s.cmd.Stderr, s.cmd.Stdout = s.log, io.Discard
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // its state is looked at
		close(s.done)
	}()
	s.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
	})
}

// program is the test binary under the name that makes it the program.
func (s *supervised) program(exe string) string {
	link := filepath.Join(filepath.Dir(s.file), "aegis")
	if err := os.Symlink(exe, link); err != nil {
		s.t.Fatal(err)
	}
	return link
}

// hear returns the next message that begins with a prefix; those of the watchdog
// come in between.
func (s *supervised) hear(prefix string) string {
	s.t.Helper()
	buf := make([]byte, 4096)
	for deadline := time.Now().Add(patience); ; {
		if err := s.inbox.SetReadDeadline(deadline); err != nil {
			s.t.Fatal(err)
		}
		n, err := s.inbox.Read(buf)
		if err != nil {
			s.t.Fatalf("no message %s: %v\n%s", prefix, err, s.log)
		}
		if text := string(buf[:n]); strings.HasPrefix(text, prefix) {
			return text
		}
	}
}

func (s *supervised) ended() int {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatalf("it does not end: %s", s.log)
	}
	return s.cmd.ProcessState.ExitCode()
}

func socket(t *testing.T) (*os.File, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, ln.Addr().String()
}

// TestUnderSystemd: a life on a socket that was handed over, told step by step.
func TestUnderSystemd(t *testing.T) {
	t.Parallel()
	f, addr := socket(t)
	s := newSupervised(t, addr, "")
	s.start("aegis.socket", f)
	if got := s.hear("READY=1"); !strings.Contains(got, "STATUS=serving http://") {
		t.Errorf("ready: %q", got)
	}
	s.until("it answers on the socket", func() bool { return s.readyz()["gitea"] == "ok" })
	s.hear("WATCHDOG=1")

	s.write("listen: [broken\n")
	s.hear("RELOADING=1\nMONOTONIC_USEC=")
	if got := s.hear("READY=1"); !strings.Contains(got, "stays in force") {
		t.Errorf("after a broken file: %q", got)
	}
	s.write(s.config + "# mended\n")
	s.hear("RELOADING=1")
	if got := s.hear("READY=1"); strings.Contains(got, "stays in force") {
		t.Errorf("after it was mended: %q", got)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.hear("RELOADING=1")
	s.hear("READY=1")

	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.hear("STOPPING=1")
	if code := s.ended(); code != 0 {
		t.Errorf("exit %d: %s", code, s.log)
	}
}

// TestSocketsMustFit: a socket where the configuration does not say so is an error
// before anything is served, and says what to do.
func TestSocketsMustFit(t *testing.T) {
	t.Parallel()
	f, addr := socket(t)
	other := unusedAddr(t)
	for name, c := range map[string]struct {
		listen, names string
		sockets       []*os.File
		want          string
	}{
		"another port": {other, "aegis", []*os.File{f}, "ListenStream="},
		"no use":       {addr, "aegis:http", []*os.File{f, f}, "no use for it"},
		"two mains":    {addr, "a:b", []*os.File{f, f}, "two sockets for one purpose"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSupervised(t, c.listen, "")
			s.start(c.names, c.sockets...)
			if code := s.ended(); code == 0 || !strings.Contains(s.log.String(), c.want) {
				t.Errorf("exit %d: %s", code, s.log)
			}
		})
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have, want string
		ok         bool
	}{
		{"[::]:443", ":443", true},
		{"[::]:443", "0.0.0.0:https", true},
		{"127.0.0.1:8080", "localhost:8080", true},
		{"127.0.0.1:8080", ":8080", true}, // narrower than written
		{"[::]:8080", "127.0.0.1:8080", false},
		{"0.0.0.0:8080", "localhost:8080", false},
		{"[::]:8443", ":443", false},
	} {
		have, err := net.ResolveTCPAddr("tcp", c.have)
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(have, c.want, "listen"); (err == nil) != c.ok {
			t.Errorf("%s for %s: %v", c.have, c.want, err)
		}
	}
}

// TestAnswers: the watchdog's question needs a real 200.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for status, ok := range map[int]bool{http.StatusOK: true, http.StatusServiceUnavailable: false} {
		var asked bytes.Buffer
		err := doctor.Healthy(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(&asked, r.Method+" "+r.URL.Path)
			w.WriteHeader(status)
		}))
		if (err == nil) != ok || asked.String() != "GET /healthz" {
			t.Errorf("%d: %v, asked %s", status, err, &asked)
		}
	}
}

// TestBothSockets: the main one and the plain one beside TLS.
func TestBothSockets(t *testing.T) {
	t.Parallel()
	f, addr := socket(t)
	plainFile, plainAddr := socket(t)
	s := newSupervised(t, addr, fmt.Sprintf("public_url: https://%s\n"+
		"tls: {mode: files, http_listen: %q, cert_file: cert.pem, key_file: key.pem}\n", tlsHost, plainAddr))
	dir := filepath.Dir(s.file)
	roots := x509.NewCertPool()
	roots.AddCert(selfSigned(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), 1))
	s.overTLS(roots)
	s.start("http:aegis", plainFile, f)
	s.hear("READY=1")
	s.until("it answers over TLS", func() bool { return s.readyz()["certificate"] == "ok" })
	if got := plain(t, plainAddr, "/mcp"); got != "308 https://"+tlsHost+"/mcp" {
		t.Errorf("the plain socket answers %s", got)
	}
}
