package doctor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/config"
	"aegis/proxy/gitea/demo"
	"aegis/proxy/server"
)

const (
	host   = "aegis.test"
	public = "https://" + host
)

// aegis is a running Aegis, known as public, on a loopback port without TLS.
type aegis struct {
	addr string
	cfg  *config.Config
	ref  *server.Examined
}

// common is an Aegis for all tests that need nothing of it but to be there.
type common struct {
	once sync.Once
	a    *aegis
	stop func()
	err  error
}

var usual = &common{stop: func() {}}

func TestMain(m *testing.M) {
	code := m.Run()
	usual.stop()
	os.Exit(code)
}

// plain returns the Aegis that tests share.
func plain(t *testing.T) *aegis {
	t.Helper()
	usual.once.Do(func() {
		dir, err := os.MkdirTemp("", "aegis-doctor-")
		if err != nil {
			usual.err = err
			return
		}
		a, stop, err := launch(dir, func(*config.Config) {})
		usual.a, usual.err = a, err
		usual.stop = func() { _ = errors.Join(stop(), os.RemoveAll(dir)) }
	})
	if usual.err != nil {
		t.Fatal(usual.err)
	}
	return usual.a
}

// start serves a configuration until the test ends.
func start(t *testing.T, change func(*config.Config)) *aegis {
	t.Helper()
	a, stop, err := launch(t.TempDir(), change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// launch serves a configuration until stop.
func launch(dir string, change func(*config.Config)) (a *aegis, stop func() error, err error) {
	gitea, err := demo.Start()
	if err != nil {
		return nil, nil, err
	}
	cfg := config.Default()
	cfg.DataDir = dir
	cfg.Gitea.URL = gitea.URL()
	cfg.PublicURL = &config.URL{URL: url.URL{Scheme: "https", Host: host}}
	change(cfg)
	tok, err := gitea.Token("0123456789abcdef0123456789abcdef")
	if err != nil {
		return nil, nil, err
	}
	cfg.Auth.Tokens = []config.Token{tok}
	gitea.SignIn(cfg, cfg.Base().String())
	if problems := cfg.Validate(); len(problems) > 0 {
		return nil, nil, problems
	}
	ref, err := server.Examine(cfg, "test")
	if err != nil {
		return nil, nil, err
	}
	log := server.Log{Logger: zerolog.Nop()}
	process, err := server.Open(cfg, "test", log)
	if err != nil {
		return nil, nil, err
	}
	srv, err := server.New(process, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, ln) }()
	return &aegis{addr: ln.Addr().String(), cfg: cfg, ref: ref}, func() error {
		cancel()
		err := <-done
		srv.Close()
		ref.Close()
		gitea.Close()
		return err
	}, nil
}

// patience bounds what must happen; it costs nothing when it does.
const patience = 2 * time.Minute

// quick leaves the event stream out.
func quick(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == doctor.StreamPath {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func address(t *testing.T, text string) *config.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &config.URL{URL: *u}
}

// front is a reverse proxy with a certificate before an Aegis. Each field breaks
// it in one way.
type front struct {
	rewrite func(*httputil.ProxyRequest)
	answer  func(*http.Response) error
	wrap    func(http.Handler) http.Handler
	chain   func(ca *authority) tls.Certificate
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	a.cert = a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}, nil, key)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(t *testing.T, template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	signer := a.key
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// leaf returns a certificate for a name that ends after the time.
func (a *authority) leaf(t *testing.T, name string, lives time.Duration) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-10 * time.Hour), NotAfter: time.Now().Add(lives), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// serve starts the proxy and returns what a doctor needs to see it as public.
func (f front) serve(t *testing.T, a *aegis) doctor.Options {
	t.Helper()
	ca := newAuthority(t)
	cert := ca.leaf(t, host, 500*time.Hour)
	if f.chain != nil {
		cert = f.chain(ca)
	}
	inside := &http.Transport{}
	t.Cleanup(inside.CloseIdleConnections) // an unused one would hold up the end of Aegis
	p := &httputil.ReverseProxy{
		Transport: inside,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: a.addr})
			r.Out.Host = r.In.Host
			if f.rewrite != nil {
				f.rewrite(r)
			}
		},
		ModifyResponse: f.answer,
		FlushInterval:  -1,
	}
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // an answer may begin before the request is over
		p.ServeHTTP(w, r)
	})
	if f.wrap != nil {
		h = f.wrap(h)
	}
	outside := httptest.NewUnstartedServer(h)
	outside.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	outside.EnableHTTP2 = true
	outside.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that only look at the port
	outside.StartTLS()
	t.Cleanup(outside.Close)
	o := doctor.Options{
		Base: &url.URL{Scheme: "https", Host: host}, Endpoints: a.ref.Endpoints, Reference: a.ref.Handler, Roots: ca.pool,
		MaxBody: int64(a.cfg.Server.MaxBodyBytes), Resolver: resolver{"198.51.100.7"}, Patience: patience,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != host+":443" {
				return nil, errors.New("connection refused")
			}
			return (&net.Dialer{}).DialContext(ctx, network, outside.Listener.Addr().String())
		},
	}
	// The server's second event is far enough away.
	o.Quiet(10 * time.Millisecond)
	return o
}

// resolver answers every name with the same addresses.
type resolver []string

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var list []netip.Addr
	for _, a := range r {
		list = append(list, netip.MustParseAddr(a))
	}
	if len(list) == 0 {
		return nil, errors.New("no such host")
	}
	return list, nil
}

// findings collects.
type findings struct {
	mu   sync.Mutex
	list []doctor.Finding
}

func (f *findings) add(x doctor.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, x)
}

func (f *findings) bad() []string {
	var out []string
	for _, x := range f.list {
		if x.Status == doctor.Failure || x.Status == doctor.Warning {
			out = append(out, string(x.Status)+" "+x.Check)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f *findings) text() string {
	var b strings.Builder
	for _, x := range f.list {
		b.WriteString(string(x.Status) + "  " + x.Check + "  " + x.Message + "\n        " + x.Fix + "\n")
	}
	return b.String()
}

func examine(t *testing.T, o doctor.Options) *findings {
	t.Helper()
	f := &findings{}
	doctor.Run(t.Context(), o, f.add)
	return f
}
