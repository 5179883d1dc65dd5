package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/client"
)

// clock is a clock that stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ring derives keys from masters, the current one first.
func ring(masters ...string) func(string) [][]byte {
	return func(label string) [][]byte {
		var out [][]byte
		for _, m := range masters {
			h := hmac.New(sha256.New, []byte(m))
			h.Write([]byte(label))
			out = append(out, h.Sum(nil))
		}
		return out
	}
}

func oauthConfig() config.OAuth { return config.Default().Auth.OAuth }

// internet is the network as a resolver of the tests sees it: names, addresses,
// and one TLS server that stands for all hosts.
type internet struct {
	mu      sync.Mutex
	names   map[string][]netip.Addr // no entry: a public address
	pages   map[string]http.HandlerFunc
	hits    map[string]int
	lookups map[string]int
	dialled []string
	server  *httptest.Server
	roots   *x509.CertPool
	down    bool
}

var publicAddr = netip.MustParseAddr("93.184.216.34")

func newInternet(t testing.TB) *internet {
	t.Helper()
	n := &internet{
		names: map[string][]netip.Addr{}, pages: map[string]http.HandlerFunc{},
		hits: map[string]int{}, lookups: map[string]int{}, roots: x509.NewCertPool(),
	}
	n.server = httptest.NewUnstartedServer(http.HandlerFunc(n.serve))
	n.server.TLS = &tls.Config{GetCertificate: authority(t, n.roots)}
	n.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that hang up are the point of some tests
	n.server.StartTLS()
	t.Cleanup(n.server.Close)
	return n
}

// authority returns a maker of certificates for any name, trusted by roots.
func authority(t testing.TB, roots *x509.CertPool) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	roots.AddCert(ca)
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), DNSNames: []string{hello.ServerName},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
	}
}

func (n *internet) serve(w http.ResponseWriter, r *http.Request) {
	url := "https://" + r.Host + r.URL.RequestURI()
	n.mu.Lock()
	n.hits[url]++
	page := n.pages[url]
	n.mu.Unlock()
	if page == nil {
		http.NotFound(w, r)
		return
	}
	page(w, r)
}

func (n *internet) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups[host]++
	if n.down {
		return nil, errors.New("no route to the name server")
	}
	if a, found := n.names[host]; found {
		return slices.Clone(a), nil
	}
	return []netip.Addr{publicAddr}, nil
}

func (n *internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, address)
	n.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, n.server.Listener.Addr().String())
}

func (n *internet) set(url string, page http.HandlerFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages[url] = page
}

func (n *internet) cut(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

func (n *internet) hit(url string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hits[url]
}

func (n *internet) dials() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dialled)
}

// options are those of a resolver on n; the store is in memory.
func (n *internet) options(c *clock) client.Options {
	return client.Options{
		Config: oauthConfig(), Store: kv.NewMemory(c.Now), Keys: ring("first"),
		Lookup: n.lookup, Dial: n.dial, Roots: n.roots, Now: c.Now,
	}
}

func build(t testing.TB, o client.Options) *client.Resolver {
	t.Helper()
	r, err := client.NewResolver(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// resolver returns one that never reaches a network.
func resolver(t testing.TB, change func(*client.Options)) *client.Resolver {
	t.Helper()
	c := newClock()
	o := client.Options{Config: oauthConfig(), Store: kv.NewMemory(c.Now), Keys: ring("first"), Now: c.Now}
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no network here") }
	o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network here") }
	if change != nil {
		change(&o)
	}
	return build(t, o)
}

// page serves a document with these members.
func page(members map[string]any, headers ...string) http.HandlerFunc {
	body, err := json.Marshal(members)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write(body)
	}
}

// document has the members that a document needs.
func document(url string, uris ...string) map[string]any {
	return map[string]any{"client_id": url, "client_name": "Some Client", "redirect_uris": uris, "token_endpoint_auth_method": "none"}
}

func kindOf(err error) client.ErrorKind {
	var e *client.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Kind
}

// wantError fails unless err has this kind and a text that fits an
// error_description and repeats no part of what was sent.
func wantError(t *testing.T, err error, kind client.ErrorKind, sent ...string) {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("error %v, want kind %s", err, kind)
		return
	}
	checkText(t, e.Public, sent...)
}

func checkText(t *testing.T, text string, sent ...string) {
	t.Helper()
	if text == "" {
		t.Error("no text")
	}
	for _, r := range text {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			t.Errorf("%q holds %q, which an error_description cannot", text, r)
		}
	}
	for _, s := range sent {
		if s != "" && len(s) > 8 && strings.Contains(text, s) {
			t.Errorf("%q repeats %q", text, s)
		}
	}
}

// spyStore counts what is asked of it and keeps nothing.
type spyStore struct {
	kv.Store
	calls atomic.Int64
}

func (s *spyStore) Get(context.Context, string) (kv.Entry, error) {
	s.calls.Add(1)
	return kv.Entry{}, kv.ErrNotFound
}

func (s *spyStore) Put(context.Context, string, []byte, time.Duration) error {
	s.calls.Add(1)
	return nil
}

func (s *spyStore) Delete(context.Context, string) error {
	s.calls.Add(1)
	return nil
}

// buildApproved is build with the document at url approved by a person.
func buildApproved(t testing.TB, o client.Options) *client.Resolver {
	t.Helper()
	r := build(t, o)
	got, err := r.Client(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Keep(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	return r
}
