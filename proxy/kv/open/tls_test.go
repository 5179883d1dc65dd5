package open_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/kv/open"
	"aegis/proxy/kv/redistest"
)

// storeKey is a key of store.keys.
const storeKey = "key-of-all-replicas-0123456789-0123456789"

// issuer makes certificates of an authority of its own, as files.
type issuer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, dir: t.TempDir()}
	i.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return i
}

// issue writes name.pem and name.key.
func (i *issuer) issue(name string, c *x509.Certificate) (cert, key string) {
	i.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := i.cert, i.key
	if parent == nil {
		parent, signer = c, private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &private.PublicKey, signer)
	if err != nil {
		i.t.Fatal(err)
	}
	if i.cert == nil {
		i.key = private
		if i.cert, err = x509.ParseCertificate(der); err != nil {
			i.t.Fatal(err)
		}
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		i.t.Fatal(err)
	}
	cert, key = filepath.Join(i.dir, name+".pem"), filepath.Join(i.dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			i.t.Fatal(err)
		}
	}
	return cert, key
}

// TestStoreOverTLS: with a certificate to show and the right authority all works;
// without either, or with another name, nothing does.
func TestStoreOverTLS(t *testing.T) {
	t.Parallel()
	good, other := newIssuer(t), newIssuer(t)
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	cert, key := good.issue("redis", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"redis.test"}, ExtKeyUsage: both})
	shown, shownKey := good.issue("aegis", &x509.Certificate{ExtKeyUsage: both})
	ca := filepath.Join(good.dir, "ca.pem")
	redis := redistest.StartTLS(t, ca, cert, key)
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	show := fmt.Sprintf(", cert_file: %q, key_file: %q", shown, shownKey)
	for name, c := range map[string]struct {
		scheme, tls string
		ok          bool
	}{
		"as it should be": {"rediss", fmt.Sprintf("ca_file: %q", ca) + show, true},
		"by its name":     {"rediss", fmt.Sprintf("server_name: redis.test, ca_file: %q", ca) + show, true},
		"another name":    {"rediss", fmt.Sprintf("server_name: other.test, ca_file: %q", ca) + show, false},
		"another CA":      {"rediss", fmt.Sprintf("ca_file: %q", filepath.Join(other.dir, "ca.pem")) + show, false},
		"nothing shown":   {"rediss", fmt.Sprintf("ca_file: %q", ca), false},
		"no CA":           {"rediss", strings.TrimPrefix(show, ", "), false},
		"plain":           {"redis", "", false},
	} {
		text := fmt.Sprintf("gitea: {url: http://127.0.0.1:1}\nauth: {tokens: [{name: bot, token: bot-bearer-0123456789abcdef, gitea_token: x}]}\nstore: {kind: redis, url: \"%s://%s\", timeout: 30s, keys: [%s], tls: {%s}}\n",
			c.scheme, redis.Address, storeKey, c.tls)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		bad := 0
		list := open.Check(t.Context(), cfg)
		for _, f := range list {
			if f.Grade == "failure" {
				bad++
			}
		}
		if (bad == 0) != c.ok {
			t.Errorf("%s: %+v", name, list)
		}
	}
}
