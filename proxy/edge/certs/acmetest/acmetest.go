// Package acmetest runs a real ACME certificate authority for tests: Pebble, the
// server that Let's Encrypt tests clients with, and a DNS server that resolves
// every name to this machine. It is no part of the program.
package acmetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
)

// Site has the loopback addresses, host:port, that the authority validates.
type Site struct {
	// Listen is the encrypted listener, for TLS-ALPN-01.
	Listen string
	// Plain is the plain listener, for HTTP-01.
	Plain string
}

// NewSite returns a site of free ports. The authority must know them before it runs, so they are
// not those of listeners, which the test opens on them later.
func NewSite(t testing.TB) Site {
	t.Helper()
	addrs := freeAddrs(t, 2)
	return Site{addrs[0], addrs[1]}
}

// Authority is a running certificate authority.
type Authority struct {
	// Directory is its ACME directory.
	Directory string
	// RootFile has the certificate of the directory itself, PEM.
	RootFile string
	// Roots are what its certificates come from.
	Roots *x509.CertPool
	// Orders counts the requests for new certificates that were taken. Pebble refuses
	// one in twenty for its nonce, as clients must be able to repeat them.
	Orders atomic.Int32

	addr    string
	handler http.Handler
	cert    tls.Certificate
	server  *http.Server
}

// Options of an authority; the zero value is a usual one.
type Options struct {
	// EAB are the keys of external accounts by their id; nil: none is needed.
	EAB map[string]string
}

// New runs an authority that validates s until the test ends.
func New(t testing.TB, s Site, opts Options) *Authority {
	t.Helper()
	// Pebble waits some seconds before it validates, so that clients learn to wait.
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	for id, key := range opts.EAB {
		if err := store.AddExternalAccountKeyByID(id, key); err != nil {
			t.Fatal(err)
		}
	}
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{
		"default": {Description: "default"}, // for years
	})
	validator := va.New(quiet, port(s.Plain), port(s.Listen), false, newDNS(t, quiet), store)
	// No Retry-After, which has whole seconds: tests would wait for them.
	front := wfe.New(quiet, store, validator, issuer, []string{"authority.test"}, false, len(opts.EAB) > 0, 0, 0)

	a := &Authority{
		addr: freeAddrs(t, 1)[0], Roots: x509.NewCertPool(), RootFile: filepath.Join(t.TempDir(), "authority.pem"),
	}
	a.Directory = "https://" + a.addr + wfe.DirectoryPath
	a.Roots.AddCert(issuer.GetRootCert(0).Cert)
	inner := front.Handler() // its paths are fixed, /order-plz is that of new orders
	a.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/order-plz" {
			w = &orderWriter{w, &a.Orders}
		}
		inner.ServeHTTP(w, r)
	})
	a.cert = certificate(t)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Certificate[0]})
	if err := os.WriteFile(a.RootFile, root, 0o600); err != nil {
		t.Fatal(err)
	}
	a.Up(t)
	t.Cleanup(a.Down)
	return a
}

// Up lets the authority answer again after [Authority.Down].
func (a *Authority) Up(t testing.TB) {
	t.Helper()
	ln, err := net.Listen("tcp", a.addr)
	if err != nil {
		t.Fatal(err)
	}
	a.server = &http.Server{Handler: a.handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{a.cert}}}
	server := a.server
	go func() { _ = server.ServeTLS(ln, "", "") }()
}

// Down makes it refuse connections. What it has issued and ordered stays.
func (a *Authority) Down() { _ = a.server.Close() }

// certificate returns one for the authority's own address, signed by itself, as clients must
// be given what they trust (tls.acme.ca_file) and trust nothing of the system's by mistake.
func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(loopback())},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// newDNS runs a DNS server that knows every name, and returns its address. The validator asks
// it alone, so that names of tests need not exist and nothing leaves the machine.
func newDNS(t testing.TB, quiet *log.Logger) string {
	t.Helper()
	addr := freeAddrs(t, 1)[0]
	dns, err := challtestsrv.New(challtestsrv.Config{DNSAddrs: []string{addr}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	dns.SetDefaultDNSIPv4(loopback())
	dns.SetDefaultDNSIPv6("") // by default every name is ::1, too
	go dns.Run()
	t.Cleanup(dns.Shutdown)
	// The server has no way to say that it listens.
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return addr
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// loopback is an address of this machine that the tests of this process have most likely
// for themselves, where the system has more than 127.0.0.1: a port that was found free
// stays so until it is listened on, whatever else runs here.
var loopback = sync.OnceValue(func() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	own := net.IPv4(127, b[0]|1, b[1], b[2]|1).String()
	ln, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		return "127.0.0.1"
	}
	_ = ln.Close() // it had no connections
	return own
})

// port is that of an address which [freeAddrs] returned.
func port(addr string) int { return int(netip.MustParseAddrPort(addr).Port()) }

// freeAddrs returns different loopback addresses that nothing listens on.
func freeAddrs(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for range n {
		ln, err := net.Listen("tcp", net.JoinHostPort(loopback(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close() // not before all are found
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs
}

// orderWriter counts an order that is taken. By the answer, as requests that are refused for
// their nonce come again.
type orderWriter struct {
	http.ResponseWriter
	orders *atomic.Int32
}

// WriteHeader begins the answer.
func (w *orderWriter) WriteHeader(status int) {
	if status == http.StatusCreated {
		w.orders.Add(1)
	}
	w.ResponseWriter.WriteHeader(status)
}
