package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aegis/proxy/edge/certs/acmetest"
)

const tlsHost = "aegis.test"

// overTLS makes r's client trust roots and find every name on this machine.
func (r *running) overTLS(roots *x509.CertPool) {
	r.base = "https://" + tlsHost
	r.client = &http.Client{
		Transport: &http.Transport{
			ForceAttemptHTTP2: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, r.addr)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// health runs "aegis health" and returns its exit code and output.
func (r *running) health(args ...string) (int, string) {
	var out bytes.Buffer
	code := run(context.Background(), append([]string{"health", "-c", r.file}, args...), &out, &out)
	return code, out.String()
}

// well waits until "aegis health" finds it well: it does not wait long for an
// answer, which a slow machine may need.
func (r *running) well(args ...string) {
	r.t.Helper()
	var out string
	if !eventually(func() bool {
		var code int
		code, out = r.health(args...)
		return code == 0
	}) {
		r.t.Errorf("health: %s", out)
	}
}

// plain asks the plain listener and returns the status and where it leads.
func plain(t *testing.T, addr, path string) string {
	t.Helper()
	client := &http.Client{Transport: direct.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return fmt.Sprint(res.StatusCode, " ", res.Header.Get("Location"))
}

// selfSigned writes a certificate that is its own authority, and its key.
func selfSigned(t *testing.T, certFile, keyFile string, serial int64) *x509.Certificate {
	t.Helper()
	return certificateFor(t, certFile, keyFile, serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// certificateFor is selfSigned for a time.
func certificateFor(t *testing.T, certFile, keyFile string, serial int64, from, to time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{tlsHost}, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestServeWithFiles(t *testing.T) {
	t.Parallel()
	redirect := unusedAddr(t)
	roots := x509.NewCertPool()
	var cert, key string
	r := serveTest(t, func(r *running) string {
		dir := filepath.Dir(r.file)
		cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		roots.AddCert(selfSigned(t, cert, key, 1))
		r.overTLS(roots)
		return r.variant(1, fmt.Sprintf("public_url: https://%s\ntls: {mode: files, http_listen: %q, cert_file: cert.pem, key_file: key.pem}\n", tlsHost, redirect))
	})
	if _, err := r.call(); err != nil {
		t.Fatal(err)
	}
	if c := r.readyz()["certificate"]; c != "ok" {
		t.Errorf("readyz says of the certificate: %s", c)
	}
	r.well("--ready")
	if got := plain(t, redirect, "/mcp?x=1"); got != "308 https://aegis.test/mcp?x=1" {
		t.Errorf("the plain listener answers %s", got)
	}

	// The signal makes the certificate be read again, and the configuration.
	roots.AddCert(selfSigned(t, cert, key, 2))
	r.write(strings.Replace(mustRead(t, r.file), "max_items: 1", "max_items: 2", 1))
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.until("the new certificate is served", func() bool {
		r.client.CloseIdleConnections()
		res, err := r.client.Get(r.base + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.TLS.PeerCertificates[0].SerialNumber.Int64() == 2
	})
	r.well()

	// A broken one changes nothing but what is told.
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.until("readyz tells of the broken certificate", func() bool { return strings.HasPrefix(r.readyz()["certificate"], "valid until ") })
	r.well("--ready")
}

func mustRead(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestServeRefusesBadFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	text := fmt.Sprintf(`listen: %s
gitea: {url: "http://127.0.0.1:1"}
auth:
  tokens: [{name: a, token: %s, gitea_token: x}]
tls:
  mode: files
  http_listen: off
  cert_file: missing.pem
  key_file: gone.pem
`, unusedAddr(t), testToken)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"serve", "check"} {
		var out bytes.Buffer
		if code := run(context.Background(), []string{command, "-c", file}, &out, &out); code != 2 {
			t.Errorf("%s: exit %d", command, code)
		}
		for _, want := range []string{":8:14: tls.cert_file: cannot be read", ":9:13: tls.key_file: cannot be read"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %s", command, want, out.String())
			}
		}
	}
}

// TestCheckWarnsOfCertificates: what clients will refuse is said before anybody serves it.
func TestCheckWarnsOfCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, file := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "aegis.yaml")
	year := 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		from, to      time.Duration
		host          string
		mode          os.FileMode
		want, without string
	}{
		"good":      {-time.Hour, year, tlsHost, 0o600, "", "warning"},
		"short":     {-time.Hour, time.Hour, tlsHost, 0o600, "", "warning"}, // as authorities for machines give them
		"ended":     {-year, -time.Hour, tlsHost, 0o600, "warning: tls.cert_file: the certificate has ended on ", ""},
		"to come":   {time.Hour, year, tlsHost, 0o600, "warning: tls.cert_file: the certificate begins on ", ""},
		"ends soon": {-year, 5 * 24 * time.Hour, tlsHost, 0o600, "; renew it", "clients will refuse"},
		"elsewhere": {-time.Hour, year, "other.test", 0o600, "warning: tls.cert_file: the certificate is not for other.test, the host of public_url", ""},
		"open key":  {-time.Hour, year, tlsHost, 0o644, "warning: tls.key_file: everyone on this machine may read it", ""},
	} {
		certificateFor(t, cert, key, 1, time.Now().Add(c.from), time.Now().Add(c.to))
		if err := os.Chmod(key, c.mode); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("listen: 127.0.0.1:8443\npublic_url: https://%s:8443\ngitea: {url: http://127.0.0.1:3000}\nauth: {tokens: [{name: a, token: %s, gitea_token: x}]}\n"+
			"tls: {mode: files, http_listen: \"off\", cert_file: %q, key_file: %q}\n", c.host, testToken, cert, key)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"check", "-c", file}, &out, &errs); code != 0 {
			t.Errorf("%s: exit %d: %s", name, code, errs.String())
		}
		if !strings.Contains(errs.String(), c.want) || c.without != "" && strings.Contains(errs.String(), c.without) {
			t.Errorf("%s: %s", name, errs.String())
		}
	}
}

// TestHealthWithClientCertificate: where clients need a certificate, so does the
// health check, and it has flags for one.
func TestHealthWithClientCertificate(t *testing.T) {
	t.Parallel()
	roots := x509.NewCertPool()
	var cert, key string
	r := serveTest(t, func(r *running) string {
		dir := filepath.Dir(r.file)
		cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		roots.AddCert(selfSigned(t, cert, key, 1))
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		r.overTLS(roots)
		r.client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
		return r.variant(1, "public_url: https://"+tlsHost+"\ntls: {mode: files, http_listen: off, cert_file: cert.pem, key_file: key.pem, client_ca: cert.pem}\n")
	})
	if code, out := r.health(); code != 1 {
		t.Errorf("health without a certificate: exit %d: %s", code, out)
	}
	r.well("--cert", cert, "--key", key)
	if code, out := r.health("--cert", cert); code != 2 {
		t.Errorf("health with half a certificate: exit %d: %s", code, out)
	}
}

// TestServeWithAuthority starts while the certificate authority is down: nobody
// is served, the plain port leads nowhere else, and a reload changes none of it.
// Then the authority comes.
func TestServeWithAuthority(t *testing.T) {
	site := acmetest.NewSite(t)
	a := acmetest.New(t, site, acmetest.Options{})
	a.Down()
	r := &running{t: t, file: filepath.Join(t.TempDir(), "aegis.yaml"), addr: site.Listen, log: &syncBuffer{}, gitea: "http://127.0.0.1:1", giteaToken: "x"}
	r.overTLS(a.Roots)
	more := fmt.Sprintf(`public_url: https://%s
tls:
  mode: auto
  http_listen: %s
  acme: {directory: %q, ca_file: %s, agree_tos: true, challenges: [http-01]}
`, tlsHost, site.Plain, a.Directory, a.RootFile)
	r.write(r.variant(1, more))
	r.start()
	r.until("the log tells of the authority", func() bool { return strings.Contains(r.log.String(), "no certificate could be got") })
	challenge := func() {
		t.Helper()
		if got := plain(t, site.Plain, "/.well-known/acme-challenge/abc"); got != "404 " {
			t.Errorf("the challenge path answers %s", got)
		}
		if got := plain(t, site.Plain, "/healthz"); got != "308 https://aegis.test/healthz" {
			t.Errorf("the plain listener answers %s", got)
		}
	}
	challenge()
	if _, err := r.client.Get(r.base + "/healthz"); err == nil {
		t.Error("served without a certificate")
	}
	if code, out := r.health(); code != 1 {
		t.Errorf("health without a certificate: exit %d: %s", code, out)
	}

	r.write(r.variant(2, more))
	r.until("the reload", func() bool { return strings.Contains(r.log.String(), "loaded anew") })
	challenge()

	a.Up(t)
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.until("the certificate is served", func() bool { return r.readyz()["certificate"] == "ok" })
	challenge()
	r.well()
	if _, err := os.Stat(filepath.Join(filepath.Dir(r.file), "data", "certificates")); errors.Is(err, os.ErrNotExist) {
		t.Error("the certificate is not kept in data_dir")
	}
}
