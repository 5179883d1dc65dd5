package certs_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/edge/certs"
	"aegis/proxy/edge/certs/acmetest"
)

// pki is an authority of the test's own.
type pki struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newPKI(t *testing.T, name string) *pki {
	t.Helper()
	key := newKey(t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &pki{cert, key}
}

func (p *pki) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(p.cert)
	return pool
}

func (p *pki) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
}

// issue returns a certificate and its key, PEM.
func (p *pki) issue(t *testing.T, serial int64) (certPEM, keyPEM []byte) {
	t.Helper()
	key := newKey(t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, p.cert, key.Public(), p.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func (p *pki) pair(t *testing.T, serial int64) tls.Certificate {
	t.Helper()
	cert, key := p.issue(t, serial)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func put(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// inFiles writes a pair and returns the configuration of its files.
func inFiles(t *testing.T, p *pki, serial int64) config.TLS {
	t.Helper()
	dir := t.TempDir()
	cfg := config.TLS{Mode: "files", CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	cert, key := p.issue(t, serial)
	put(t, cfg.CertFile, cert)
	put(t, cfg.KeyFile, key)
	return cfg
}

func TestFilesChange(t *testing.T) {
	t.Parallel()
	p := newPKI(t, "server authority")
	cfg := inFiles(t, p, 10)
	i := serve(t, acmetest.NewSite(t), cfg, "", nil)
	served := func(want string) {
		t.Helper()
		eventually(t, func() error {
			serial, err := i.handshake(&tls.Config{RootCAs: p.pool()})
			if err != nil {
				t.Fatalf("clients saw the change: %v", err)
			}
			if serial != want {
				return errors.New("serves " + serial + ", want " + want)
			}
			return nil
		})
	}
	served("10")

	cert, key := p.issue(t, 11)
	put(t, cfg.CertFile, cert)
	put(t, cfg.KeyFile, key)
	served("11") // by itself

	for name, broken := range map[string][]byte{"empty": nil, "no PEM": []byte("hello"), "another's": p.pem(), "gone": nil} {
		if name == "gone" {
			if err := os.Remove(cfg.CertFile); err != nil {
				t.Fatal(err)
			}
		} else {
			put(t, cfg.CertFile, broken)
		}
		i.Reload()
		served("11")
		if st := i.Status()[0]; st.Problem == "" || !st.Valid(time.Now()) || !strings.Contains(i.log.String(), "the old one stays in use") {
			t.Errorf("%s: status %+v, log %s", name, st, i.log)
		}
	}

	cert, key = p.issue(t, 12)
	put(t, cfg.CertFile, cert)
	put(t, cfg.KeyFile, key)
	i.Reload()
	served("12")
	if st := i.Status()[0]; st.Problem != "" || st.Host != host {
		t.Errorf("status %+v", st)
	}
	if strings.Contains(i.log.String(), "PRIVATE") {
		t.Error("the log holds a key")
	}
}

func TestBadFilesAreReportedTogether(t *testing.T) {
	t.Parallel()
	p := newPKI(t, "server authority")
	good := inFiles(t, p, 1)
	other := inFiles(t, p, 2)
	empty := filepath.Join(t.TempDir(), "empty")
	put(t, empty, nil)
	for name, tc := range map[string]struct {
		cfg  config.TLS
		keys string
	}{
		"missing":    {config.TLS{Mode: "files", CertFile: "/nowhere/c", KeyFile: "/nowhere/k", ClientCA: "/nowhere/ca"}, "tls.client_ca tls.cert_file tls.key_file"},
		"mismatch":   {config.TLS{Mode: "files", CertFile: good.CertFile, KeyFile: other.KeyFile}, "tls.cert_file"},
		"swapped":    {config.TLS{Mode: "files", CertFile: good.KeyFile, KeyFile: good.CertFile}, "tls.cert_file"},
		"empty key":  {config.TLS{Mode: "files", CertFile: good.CertFile, KeyFile: empty}, "tls.key_file"},
		"empty ca":   {config.TLS{Mode: "files", CertFile: good.CertFile, KeyFile: good.KeyFile, ClientCA: empty}, "tls.client_ca"},
		"a folder":   {config.TLS{Mode: "files", CertFile: filepath.Dir(empty), KeyFile: good.KeyFile}, "tls.cert_file"},
		"acme root":  {config.TLS{Mode: "auto", ACME: config.ACME{CAFile: empty}}, "tls.acme.ca_file"},
		"everything": {config.TLS{Mode: "files", CertFile: empty, KeyFile: "/nowhere/k", ClientCA: empty}, "tls.client_ca tls.key_file"},
	} {
		_, err := certs.New(certs.Options{TLS: tc.cfg, Hosts: []string{host}, Base: &url.URL{Host: host}})
		var keys []string
		for _, line := range strings.Split(errText(err), "\n") {
			key, _, _ := strings.Cut(line, ":")
			keys = append(keys, key)
		}
		if got := strings.Join(keys, " "); got != tc.keys || strings.Contains(errText(err), "/nowhere") {
			t.Errorf("%s: keys %q, want %q: %v", name, got, tc.keys, err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	p, clients, strangers := newPKI(t, "server authority"), newPKI(t, "clients"), newPKI(t, "strangers")
	cfg := inFiles(t, p, 1)
	cfg.ClientCA = filepath.Join(t.TempDir(), "clients.pem")
	put(t, cfg.ClientCA, clients.pem())
	i := serve(t, acmetest.NewSite(t), cfg, "", nil)

	cache := tls.NewLRUClientSessionCache(4)
	ask := func(c *tls.Config) error {
		c.RootCAs, c.ServerName = p.pool(), host
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: len(c.NextProtos) == 0}}
		defer client.CloseIdleConnections()
		res, err := client.Get("https://" + i.site.Listen + "/")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	known := clients.pair(t, 5)
	stranger := func(serial int64) *tls.Config {
		pair := strangers.pair(t, serial)
		// A client that ignores which authorities the server names.
		return &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
	}
	if err := ask(&tls.Config{Certificates: []tls.Certificate{known}, ClientSessionCache: cache}); err != nil {
		t.Errorf("a client of the authority is refused: %v", err)
	}
	for name, c := range map[string]*tls.Config{
		"none":          {},
		"stranger":      stranger(6),
		"none, old TLS": {MaxVersion: tls.VersionTLS12},
		// The door that ACME challenges come in by leads nowhere else.
		"challenge": {NextProtos: []string{"acme-tls/1"}},
		"both":      {NextProtos: []string{"acme-tls/1", "http/1.1"}},
	} {
		if ask(c) == nil {
			t.Errorf("%s: served", name)
		}
	}

	// The authority is replaced: who was trusted is not any more, not by a kept
	// session either.
	put(t, cfg.ClientCA, strangers.pem())
	i.Reload()
	if err := ask(stranger(7)); err != nil {
		t.Errorf("a client of the new authority is refused: %v", err)
	}
	if ask(&tls.Config{Certificates: []tls.Certificate{known}, ClientSessionCache: cache}) == nil {
		t.Error("a client of the old authority is served")
	}

	// A broken file takes nothing away and gives nothing.
	put(t, cfg.ClientCA, []byte("broken"))
	i.Reload()
	if err := ask(stranger(8)); err != nil || ask(&tls.Config{}) == nil || i.Status()[0].Problem == "" {
		t.Errorf("error %v, status %+v", err, i.Status())
	}
}

// TestChallengeWithClientCertificates: the certificate authority has none.
func TestChallengeWithClientCertificates(t *testing.T) {
	s := acmetest.NewSite(t)
	a := acmetest.New(t, s, acmetest.Options{})
	clients := newPKI(t, "clients")
	cfg := auto(acme(a, "tls-alpn-01"))
	cfg.ClientCA = filepath.Join(t.TempDir(), "clients.pem")
	put(t, cfg.ClientCA, clients.pem())
	i := serve(t, s, cfg, t.TempDir(), nil)
	i.secured(t, a)
	conn, err := tls.Dial("tcp", s.Listen, &tls.Config{RootCAs: a.Roots, ServerName: i.host, NextProtos: []string{"acme-tls/1"}})
	if err == nil { // some certificate may be shown, but nobody listens
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+i.host+"\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if body, _ := io.ReadAll(conn); len(body) > 0 {
			t.Errorf("answered without a client certificate: %s", body)
		}
	}
}

func TestPlainListener(t *testing.T) {
	t.Parallel()
	p := newPKI(t, "server authority")
	x, err := certs.New(certs.Options{TLS: inFiles(t, p, 1), Base: &url.URL{Scheme: "https", Host: host + ":8443", Path: "/sub"}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(x.Plain())
	defer srv.Close()
	get := "GET %s HTTP/1.1\r\nHost: x\r\n\r\n"
	for request, want := range map[string]string{
		strings.Replace(get, "%s", "/", 1):                                     "308 https://aegis.test:8443/",
		strings.Replace(get, "%s", "/a%2Fb?q=1&r=%20", 1):                      "308 https://aegis.test:8443/a%2Fb?q=1&r=%20",
		strings.Replace(get, "%s", "//evil.example/x", 1):                      "308 https://aegis.test:8443/evil.example/x",
		strings.Replace(get, "%s", "http://evil.example/x", 1):                 "308 https://aegis.test:8443/x",
		strings.Replace(get, "%s", "http:.evil.example", 1):                    "308 https://aegis.test:8443/",
		strings.Replace(get, "%s", "/.well-known/acme-challenge/x", 1):         "404 ",
		"HEAD /x HTTP/1.1\r\nHost: evil.example\r\n\r\n":                       "308 https://aegis.test:8443/x",
		"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n":           "403 ",
		"GET /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n": "403 ",
		"PUT /.well-known/x HTTP/1.0\r\n\r\n":                                  "403 ",
	} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		method, _, _ := strings.Cut(request, " ")
		res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if got := res.Status[:4] + res.Header.Get("Location"); got != want || strings.Contains(string(body), "Bearer") {
			t.Errorf("%q: %s, want %s; %s", request, got, want, body)
		}
		if id := res.Header.Get("X-Request-Id"); want[0] == '4' && (id == "" || !strings.Contains(string(body), `"kind":"`) ||
			!strings.Contains(string(body), `"message":"`) || !strings.Contains(string(body), `"request_id":"`+id+`"`)) {
			t.Errorf("%q: an error without its parts: %s", request, body)
		}
		_ = conn.Close()
	}
}

// FuzzPlain: whatever is asked for, a redirect leads to the configured host and
// carries nothing that could end a header.
func FuzzPlain(f *testing.F) {
	x, err := certs.New(certs.Options{TLS: config.TLS{Mode: "auto"}, Hosts: []string{host}, Base: &url.URL{Scheme: "https", Host: host}})
	if err != nil {
		f.Fatal(err)
	}
	h := x.Plain()
	for _, s := range []string{"/", "//evil/", "/a?b#c", "/%0d%0aX: y", "http://evil/", "x:.evil", "*", "/\\evil", "/?\r\n"} {
		f.Add(s, "evil.example")
	}
	f.Fuzz(func(t *testing.T, target, hostHeader string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.HasPrefix(u.Path, "/.well-known/acme-challenge/") {
			return
		}
		r := &http.Request{Method: http.MethodGet, URL: u, Host: hostHeader, Header: http.Header{}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		location := w.Header().Get("Location")
		to, err := url.Parse(location)
		if w.Code != http.StatusPermanentRedirect || err != nil || to.Scheme != "https" || to.Host != host || !strings.HasPrefix(location, "https://"+host+"/") || strings.ContainsAny(location, "\r\n") {
			t.Fatalf("%q leads to %q (%d, %v)", target, location, w.Code, err)
		}
	})
}
