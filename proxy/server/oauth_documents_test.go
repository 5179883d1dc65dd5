package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"aegis/proxy/oauth/client"
)

// internet stands in for the hosts of client metadata documents: TLS with an
// authority of its own, and names that resolve to a public address.
type internet struct {
	docs    map[string]string // by host and path
	private map[string]bool   // hosts that resolve to a private address
	server  *httptest.Server
	roots   *x509.CertPool
}

func newInternet(t testing.TB, docs map[string]string) *internet {
	t.Helper()
	n := &internet{docs: docs, private: map[string]bool{}, roots: x509.NewCertPool()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "internet"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true}
	for name := range docs {
		host, _, _ := strings.Cut(name, "/")
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	n.roots.AddCert(cert)
	n.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, ok := n.docs[r.Host+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if to, ok := strings.CutPrefix(doc, "-> "); ok {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(doc))
	}))
	n.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	n.server.Config.ErrorLog = log.New(io.Discard, "", 0) // hosts that are not there fail the handshake
	n.server.StartTLS()
	t.Cleanup(n.server.Close)
	return n
}

// fetch leads the fetches of a server here.
func (n *internet) fetch(o *client.Options) {
	o.Roots, o.Limit = n.roots, patience
	o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if n.private[host] {
			return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, n.server.Listener.Addr().String())
	}
}

// TestClientDocuments: case 3, through the whole server.
func TestClientDocuments(t *testing.T) {
	doc := func(id, rest string) string {
		return `{"client_id":"https://` + id + `","client_name":"Documented","redirect_uris":["http://127.0.0.1/callback"]` + rest + `}`
	}
	n := newInternet(t, map[string]string{
		"both.example/c":     doc("both.example/c", `,"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["private_key_jwt","none"]`),
		"jwt.example/c":      doc("jwt.example/c", `,"token_endpoint_auth_method":"private_key_jwt"`),
		"other.example/c":    doc("both.example/c", ""),
		"moved.example/c":    "-> https://both.example/c",
		"big.example/c":      doc("big.example/c", `,"padding":"`+strings.Repeat("x", 6<<10)+`"`),
		"inside.example/c":   doc("inside.example/c", ""),
		"nojson.example/c":   "<html>",
		"claude.ai/fetch-me": doc("claude.ai/fetch-me", ""),
	})
	n.private["inside.example"] = true
	h := newHouse(t, houseOptions{fetch: n.fetch, oauth: "documents: {deny_domains: [claude.ai]}\n"})
	a := app{h, "https://both.example/c", "http://127.0.0.1:4711/callback"}
	h.works(a.connect("alice").field("access_token"), "alice")
	for id, says := range map[string]string{
		"https://jwt.example/c":      "token_endpoint_auth_method",
		"https://other.example/c":    "client_id",
		"https://moved.example/c":    "redirect",
		"https://big.example/c":      "5",
		"https://inside.example/c":   "public",
		"https://nojson.example/c":   "JSON",
		"https://claude.ai/fetch-me": "not accept",
		"https://absent.example/c":   "",
	} {
		p := h.person("alice")
		if to := p.open(app{h, id, a.redirect}.address()); to != nil || p.status < 400 || !strings.Contains(p.page, says) {
			t.Errorf("%s: %d to %v: %s", id, p.status, to, bodyOf(p.page))
		}
	}
}

// bodyOf is a page without its head.
func bodyOf(page string) string {
	_, body, _ := strings.Cut(page, "<body>")
	return body
}
