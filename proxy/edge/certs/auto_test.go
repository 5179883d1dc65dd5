package certs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/edge/certs"
	"aegis/proxy/edge/certs/acmetest"
)

const host = "aegis.test"

// patience is how long a test waits for what must happen. The library tries again a
// minute after a failure, and that must not be the end either.
const patience = 5 * time.Minute

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// instance is one process that serves TLS.
type instance struct {
	*certs.TLS
	site acmetest.Site
	host string
	log  *lockedBuffer
	stop func()
}

// serve runs an instance until it is stopped or the test ends.
func serve(t *testing.T, s acmetest.Site, cfg config.TLS, dataDir string, tune func(*certs.TLS)) *instance {
	t.Helper()
	cfg.HTTPListen = s.Plain
	i := &instance{site: s, host: host, log: &lockedBuffer{}}
	if cfg.Mode == "auto" {
		// The library remembers for the whole process which names failed to be renewed.
		_, port, _ := net.SplitHostPort(s.Listen)
		i.host = "aegis-" + port + ".test"
	}
	opts := certs.Options{
		TLS: cfg, Hosts: []string{i.host}, Base: &url.URL{Scheme: "https", Host: i.host}, Listen: s.Listen, DataDir: dataDir, Log: zerolog.New(i.log),
	}
	var err error
	if i.TLS, err = certs.New(opts); err != nil {
		t.Fatal(err)
	}
	certs.LoadWithin(i.TLS, patience)
	if tune != nil {
		tune(i.TLS)
	}
	ln, plain := listen(t, s.Listen), listen(t, s.Plain)
	secure := &http.Server{ErrorLog: log.New(io.Discard, "", 0), TLSConfig: i.Config(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "secret over "+r.Proto)
	})}
	unsafe := &http.Server{Handler: i.Plain()}
	go func() { _ = unsafe.Serve(plain) }()
	if err := i.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	go func() { _ = secure.ServeTLS(ln, "", "") }()
	i.stop = sync.OnceFunc(func() {
		_ = secure.Close()
		_ = unsafe.Close()
		_ = ln.Close()
		i.Close()
	})
	t.Cleanup(i.stop)
	return i
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func auto(acme config.ACME) config.TLS { return config.TLS{Mode: "auto", ACME: acme} }

// acme is the configuration for an authority and one way to prove a host.
func acme(a *acmetest.Authority, challenge string) config.ACME {
	u := &config.URL{}
	_ = u.UnmarshalText([]byte(a.Directory)) // a nil address fails the test soon enough
	return config.ACME{Directory: u, CAFile: a.RootFile, AgreeTOS: true, Challenges: []string{challenge}}
}

// handshake connects as a client that trusts the authority, and returns the
// certificate's serial number.
func (i *instance) handshake(c *tls.Config) (string, error) {
	c.ServerName = i.host
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", i.site.Listen, c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// secured waits until clients can connect, and returns the serial number.
func (i *instance) secured(t *testing.T, a *acmetest.Authority) string {
	t.Helper()
	serial := ""
	eventually(t, func() (err error) {
		if serial, err = i.handshake(&tls.Config{RootCAs: a.Roots}); err != nil {
			return fmt.Errorf("%w; the log: %s", err, i.log)
		}
		return nil
	})
	return serial
}

// eventually tries until there is no error, for a bounded time.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestIssuanceByEachChallenge(t *testing.T) {
	for _, challenge := range []string{"http-01", "tls-alpn-01"} {
		t.Run(challenge, func(t *testing.T) {
			s := acmetest.NewSite(t)
			a := acmetest.New(t, s, acmetest.Options{})
			i := serve(t, s, auto(acme(a, challenge)), t.TempDir(), nil)
			i.secured(t, a)
			st := i.Status()
			if len(st) != 1 || st[0].Host != i.host || !st[0].Valid(time.Now()) || st[0].Problem != "" || st[0].Issuer == "" {
				t.Errorf("status %+v", st)
			}
			if text := i.log.String(); !strings.Contains(text, "got a certificate") {
				t.Errorf("the log does not say so: %s", text)
			}
			protocol(t, i, a)
		})
	}
}

// protocol holds that clients get HTTP/2, and nothing older than TLS 1.2.
func protocol(t *testing.T, i *instance, a *acmetest.Authority) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: a.Roots, ServerName: i.host},
	}}
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + i.site.Listen + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "secret over HTTP/2.0" {
		t.Errorf("%q, %v", body, err)
	}
	if _, err := i.handshake(&tls.Config{RootCAs: a.Roots, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	weak := &tls.Config{RootCAs: a.Roots, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}}
	if _, err := i.handshake(weak); err == nil {
		t.Error("a CBC cipher is accepted")
	}
	if _, err := i.handshake(&tls.Config{RootCAs: a.Roots, MaxVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("TLS 1.2 is refused: %v", err)
	}
}

func TestExternalAccount(t *testing.T) {
	s := acmetest.NewSite(t)
	const key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
	a := acmetest.New(t, s, acmetest.Options{EAB: map[string]string{"kid-1": key}})
	account := acme(a, "http-01")
	account.EABKeyID, account.EABMACKey = "kid-1", config.NewSecret(key)
	i := serve(t, s, auto(account), t.TempDir(), nil)
	i.secured(t, a)
	if strings.Contains(i.log.String(), key) {
		t.Error("the key is in the log")
	}
}

// often is how often tests have certificates checked for renewal.
const often = 50 * time.Millisecond

func TestRenewal(t *testing.T) {
	s := acmetest.NewSite(t)
	a := acmetest.New(t, s, acmetest.Options{})
	i := serve(t, s, auto(acme(a, "http-01")), t.TempDir(), func(x *certs.TLS) { certs.RenewEvery(x, often) })
	first := i.secured(t, a)
	certs.Due(i.TLS, first)
	eventually(t, func() error {
		serial, err := i.handshake(&tls.Config{RootCAs: a.Roots})
		switch {
		case err != nil:
			t.Fatalf("clients saw the renewal: %v", err)
		case serial == first:
			return context.DeadlineExceeded
		}
		return nil
	})
	if !strings.Contains(i.log.String(), `"renewal":true`) {
		t.Errorf("the log does not tell of it: %s", i.log)
	}
}

// TestRenewalFails: the old certificate is served, and everybody may know why it
// is not a new one.
func TestRenewalFails(t *testing.T) {
	s := acmetest.NewSite(t)
	a := acmetest.New(t, s, acmetest.Options{})
	i := serve(t, s, auto(acme(a, "http-01")), t.TempDir(), func(x *certs.TLS) { certs.RenewEvery(x, often) })
	first := i.secured(t, a)
	a.Down()
	certs.Due(i.TLS, first)
	eventually(t, func() error {
		if i.Status()[0].Problem == "" {
			return context.DeadlineExceeded
		}
		return nil
	})
	if st := i.Status()[0]; !st.Valid(time.Now()) {
		t.Errorf("the certificate is gone: %+v", st)
	}
	if serial, err := i.handshake(&tls.Config{RootCAs: a.Roots}); err != nil || serial != first {
		t.Errorf("serial %s, error %v; want the old certificate", serial, err)
	}
	// Status tells of it first.
	eventually(t, func() error {
		if !strings.Contains(i.log.String(), "could not be renewed") {
			return fmt.Errorf("the log does not say so: %s", i.log)
		}
		return nil
	})
}

// TestRestartFromStorage, with the authority up, and then with it down.
func TestRestartFromStorage(t *testing.T) {
	s, dir := acmetest.NewSite(t), t.TempDir()
	a := acmetest.New(t, s, acmetest.Options{})
	i := serve(t, s, auto(acme(a, "tls-alpn-01")), dir, nil)
	first := i.secured(t, a)
	i.stop()
	for _, down := range []bool{false, true} {
		if down {
			a.Down()
		}
		i := serve(t, s, auto(acme(a, "tls-alpn-01")), dir, nil)
		// At once: whoever says that it is up must answer.
		serial, err := i.handshake(&tls.Config{RootCAs: a.Roots})
		if err != nil || serial != first {
			t.Errorf("authority down %v: serial %s, error %v; want the stored certificate", down, serial, err)
		}
		i.stop()
	}
	if n := a.Orders.Load(); n != 1 {
		t.Errorf("%d certificates were ordered, want 1", n)
	}
	checkPrivate(t, dir)
}

// checkPrivate holds that nobody else may read what is stored.
func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	keys := 0
	err := filepath.Walk(filepath.Join(dir, "certificates"), func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if strings.HasSuffix(path, ".key") {
			keys++
		}
		return nil
	})
	if err != nil || keys == 0 {
		t.Errorf("%d keys, error %v", keys, err)
	}
}

// TestNoAuthorityAndNoCertificate: connections fail, nothing is served in plain
// text instead, the reason is told, and it is tried again.
func TestNoAuthorityAndNoCertificate(t *testing.T) {
	s := acmetest.NewSite(t)
	a := acmetest.New(t, s, acmetest.Options{})
	a.Down()
	i := serve(t, s, auto(acme(a, "http-01")), t.TempDir(), nil)
	eventually(t, func() error {
		if !strings.Contains(i.log.String(), "no certificate could be got") {
			return context.DeadlineExceeded
		}
		return nil
	})
	if st := i.Status()[0]; st.Valid(time.Now()) || !strings.Contains(st.Problem, "refused") {
		t.Errorf("status %+v", st)
	}
	if _, err := i.handshake(&tls.Config{InsecureSkipVerify: true}); err == nil {
		t.Error("a handshake succeeds without a certificate")
	}
	for _, addr := range []string{s.Listen, s.Plain} {
		if body := plainText(t, addr); strings.Contains(body, "secret") {
			t.Errorf("%s serves in plain text: %s", addr, body)
		}
	}
	a.Up(t)
	i.Reload() // an operator's signal; by itself it takes a minute at first
	i.secured(t, a)
	if st := i.Status()[0]; st.Problem != "" {
		t.Errorf("a problem that has passed is still told: %+v", st)
	}
}

// plainText sends an HTTP request without encryption and returns all that comes.
func plainText(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: "+host+"\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestStorageMustBeWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := certs.New(certs.Options{
		TLS:   auto(config.ACME{Directory: &config.URL{URL: url.URL{Scheme: "https", Host: "127.0.0.1:1"}}, Challenges: []string{"http-01"}}),
		Hosts: []string{host}, Base: &url.URL{Host: host}, Listen: "127.0.0.1:1", DataDir: filepath.Join(file, "sub"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "data_dir") {
		t.Errorf("error is %v, want one that names data_dir", err)
	}
}
