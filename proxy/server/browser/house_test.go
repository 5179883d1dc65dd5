package browser_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
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

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/server"
)

// keyPair is a certificate for localhost and its key.
type keyPair struct {
	cert      *x509.Certificate
	certPEM   []byte
	keyPEM    []byte
	authority *x509.CertPool
}

func newPair() keyPair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{cert: &x509.Certificate{}}
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return keyPair{cert: &x509.Certificate{}}
	}
	cert, _ := x509.ParseCertificate(der)          // was made two lines above
	private, _ := x509.MarshalPKCS8PrivateKey(key) // likewise
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return keyPair{cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), pool}
}

// house is a whole Aegis before a Gitea double, and a client that waits for its
// answer on loopback.
type house struct {
	t        *testing.T
	double   *fakegitea.Server
	gitea    string
	url      string // public address
	endpoint string
	program  *http.Client
	app      string // client_id at Gitea
	client   *httptest.Server
	answers  chan url.Values // what came to the client's redirect URI
}

// newHouse serves; secure over https, with further lines for the configuration.
func newHouse(t *testing.T, secure bool, oauth string, top ...string) *house {
	t.Helper()
	h := &house{t: t, double: fakegitea.New(fakegitea.Options{}), answers: make(chan url.Values, 16), program: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	up := httptest.NewServer(h.double)
	t.Cleanup(up.Close)
	h.gitea = up.URL
	h.client = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			h.answers <- r.URL.Query()
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>client</title><h1>Back at the client</h1>")
		}
	}))
	t.Cleanup(h.client.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.url = "http://" + ln.Addr().String()
	dir := t.TempDir()
	if secure {
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		h.url = "https://localhost:" + port
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		for name, data := range map[string][]byte{cert: pair().certPEM, key: pair().keyPEM} {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		top = append(top, fmt.Sprintf("tls: {mode: files, cert_file: %q, key_file: %q}", cert, key))
		h.program.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pair().authority}}
	}
	h.endpoint = h.url + "/mcp"
	app, secret := h.double.RegisterOAuthApp("Aegis", true, h.url+"/oauth/callback")
	h.app = app
	text := fmt.Sprintf("listen: %s\npublic_url: %s\ngitea: {url: %q}\ndata_dir: %q\nauth:\n  oauth:\n    enabled: true\n    client_id: %s\n    client_secret: %s\n",
		ln.Addr(), h.url, h.gitea, filepath.Join(dir, "data"), app, secret)
	for line := range strings.Lines(oauth) {
		text += "    " + line
	}
	h.serve(ln, filepath.Join(dir, "aegis.yaml"), text+"\n"+strings.Join(top, "\n"))
	return h
}

func (h *house) serve(ln net.Listener, file, text string) {
	h.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		h.t.Fatal(err)
	}
	log := server.Log{Logger: zerolog.Nop()}
	process, err := server.Open(cfg, "test", log)
	if err != nil {
		h.t.Fatal(err)
	}
	srv, err := server.New(process, cfg, log)
	if err != nil {
		h.t.Fatal(err)
	}
	live := server.NewLive(srv)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- live.Serve(ctx, ln, nil) }()
	h.t.Cleanup(func() { h.program.CloseIdleConnections(); cancel(); <-done; live.Close() })
}

// post sends a body as a program does and returns the status, the header and a
// JSON answer.
func (h *house) post(path, body string, headers ...string) (int, http.Header, map[string]any) {
	h.t.Helper()
	q, err := http.NewRequest(http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	res, err := h.program.Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	var m map[string]any
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&m); err != nil {
		h.t.Fatalf("%s: %d %s", path, res.StatusCode, text)
	}
	return res.StatusCode, res.Header, m
}

// call calls a method of MCP.
func (h *house) call(token, method, params string) (int, http.Header, map[string]any) {
	h.t.Helper()
	return h.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`,
		"Authorization", "Bearer "+token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
}

// register makes a client known and returns its id.
func (h *house) register(name string, redirects ...string) string {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": redirects, "token_endpoint_auth_method": "none"})
	if err != nil {
		h.t.Fatal(err)
	}
	status, _, m := h.post("/register", string(body), "Content-Type", "application/json")
	if status != http.StatusCreated {
		h.t.Fatalf("register: %d %v", status, m)
	}
	return m["client_id"].(string)
}

const verifier = "the-verifier-of-these-tests-0123456789-0123456789"

// authorizeURL is what a client opens in the browser.
func (h *house) authorizeURL(id, redirect string) string {
	return h.authorizeWith(id, redirect, "the-state")
}

func (h *house) authorizeWith(id, redirect, state string) string {
	return h.authorizeFor(id, redirect, state, h.endpoint)
}

func (h *house) authorizeFor(id, redirect, state, resource string) string {
	sum := sha256.Sum256([]byte(verifier))
	return h.url + "/authorize?" + url.Values{"client_id": {id}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {resource}}.Encode()
}

func (h *house) callback() string { return h.client.URL + "/callback" }

// answer waits for what the client gets.
func (h *house) answer() url.Values {
	h.t.Helper()
	select {
	case q := <-h.answers:
		return q
	case <-time.After(patience):
		h.t.Fatal("the client hears nothing")
		return nil
	}
}

func (h *house) redeem(id, redirect, code string) (int, map[string]any) {
	h.t.Helper()
	status, _, m := h.post("/token", url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {id},
		"redirect_uri": {redirect}, "code_verifier": {verifier}, "resource": {h.endpoint}}.Encode())
	return status, m
}
