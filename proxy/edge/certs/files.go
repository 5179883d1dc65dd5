package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// files serves the certificate of two PEM files.
type files struct {
	certFile, keyFile string
	host              string // the public name, which the certificate should have
	log               zerolog.Logger

	// pair is read by each handshake, and exchanged when the files change.
	pair atomic.Pointer[tls.Certificate]

	mu      sync.Mutex
	problem string // why the files could not be read again
}

// newFiles reads the pair: a start without a certificate that can be served is an error.
func newFiles(opts Options) (*files, error) {
	f := &files{certFile: opts.TLS.CertFile, keyFile: opts.TLS.KeyFile, log: opts.Log}
	if opts.Base != nil {
		f.host = opts.Base.Hostname()
	}
	pair, err := readPair(f.certFile, f.keyFile)
	if err != nil {
		return nil, err
	}
	f.pair.Store(pair)
	return f, nil
}

// start warns only now, as a command that looks prints the warnings itself.
func (f *files) start(context.Context) error {
	f.warn(f.pair.Load().Leaf)
	return nil
}

// stop has nothing to end: the watcher is that of [TLS].
func (f *files) stop() {}

func (f *files) paths() []string { return []string{f.certFile, f.keyFile} }

func (f *files) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.pair.Load(), nil
}

// challenge has none to answer, as another program gets the certificates.
func (f *files) challenge(http.ResponseWriter, *http.Request) bool { return false }

// again takes the files' certificate, or keeps the one in use when it does not
// do: two files are not replaced at once, so that this may pass by itself.
func (f *files) again() {
	pair, err := readPair(f.certFile, f.keyFile)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.problem = oneLine(err)
		f.log.Error().Str("problem", f.problem).Msg("the new certificate cannot be used; the old one stays in use")
		return
	}
	f.problem = ""
	old := f.pair.Swap(pair)
	if bytes.Equal(old.Leaf.Raw, pair.Leaf.Raw) { // a file was touched; that is worth no line
		return
	}
	f.log.Info().Time("not_after", pair.Leaf.NotAfter).Msg("the certificate was read again")
	f.warn(pair.Leaf)
}

// warn logs what is wrong with a certificate; the operator may know better.
func (f *files) warn(leaf *x509.Certificate) {
	for _, w := range f.warnings(leaf, time.Now()) {
		f.log.WithLevel(w.level).Msg(w.text)
	}
}

// warning is what clients or strangers will make of a certificate and its key.
type warning struct {
	level zerolog.Level
	key   string // of the configuration
	text  string
}

// soonOver is how long before its end a certificate should have been renewed.
const soonOver = 14 * 24 * time.Hour

// warnings are ordered: what makes clients refuse the certificate comes first.
func (f *files) warnings(leaf *x509.Certificate, now time.Time) (list []warning) {
	add := func(level zerolog.Level, key, text string) { list = append(list, warning{level, key, text}) }
	day := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
	switch {
	case now.After(leaf.NotAfter):
		add(zerolog.ErrorLevel, "tls.cert_file", "the certificate has ended on "+day(leaf.NotAfter)+
			" and is not valid now; clients will refuse it: renew it")
	case now.Before(leaf.NotBefore):
		add(zerolog.ErrorLevel, "tls.cert_file", "the certificate begins on "+day(leaf.NotBefore)+
			" and is not valid now; clients will refuse it: check this machine's clock")
	// One that lives for less than four weeks is near its end for most of its life.
	case leaf.NotAfter.Sub(leaf.NotBefore) > 2*soonOver && now.Add(soonOver).After(leaf.NotAfter):
		add(zerolog.WarnLevel, "tls.cert_file", "the certificate ends on "+day(leaf.NotAfter)+"; renew it")
	}
	if f.host != "" && leaf.VerifyHostname(f.host) != nil {
		add(zerolog.WarnLevel, "tls.cert_file",
			"the certificate is not for "+f.host+", the host of public_url; clients will refuse it")
	}
	// A group may be meant: programs that get certificates often share one with those that serve.
	if info, err := os.Stat(f.keyFile); err == nil && info.Mode().Perm()&0o004 != 0 {
		add(zerolog.WarnLevel, "tls.key_file",
			"everyone on this machine may read it; take the right from others: chmod o-r")
	}
	return list
}

func (f *files) status() []CertStatus {
	leaf := f.pair.Load().Leaf
	f.mu.Lock()
	defer f.mu.Unlock()
	return []CertStatus{{
		Host: nameOf(leaf), NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
		Issuer: leaf.Issuer.CommonName, Problem: f.problem,
	}}
}

// nameOf returns the first name that a certificate is for; the subject, which clients do not
// look at any more, only for one without any.
func nameOf(leaf *x509.Certificate) string {
	switch {
	case len(leaf.DNSNames) > 0:
		return leaf.DNSNames[0]
	case len(leaf.IPAddresses) > 0:
		return leaf.IPAddresses[0].String()
	}
	return leaf.Subject.CommonName
}

// maxPEM bounds a PEM file; bundles of all public authorities have 250 KB.
const maxPEM = 4 << 20

// readFile reads a PEM file that key names, within bounds. It follows links, by which ACME
// clients and Kubernetes exchange files.
func readFile(key, file string) ([]byte, error) {
	f, err := os.Open(file)
	if err == nil {
		defer f.Close()
		var data []byte
		data, err = io.ReadAll(io.LimitReader(f, maxPEM+1))
		if err == nil && len(data) > maxPEM {
			return nil, &KeyError{key, "is larger than 4 MiB", "check that it is the right file"}
		}
		if err == nil {
			return data, nil
		}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // the path is in the configuration already
	}
	return nil, &KeyError{key, "cannot be read: " + err.Error(), "check path, owner and mode of the file"}
}

// readPair reads a certificate with its key. Complaints about both files come together. What is
// no PEM is said before the library is asked, whose words are about the first block alone.
func readPair(certFile, keyFile string) (*tls.Certificate, error) {
	cert, err1 := readFile("tls.cert_file", certFile)
	key, err2 := readFile("tls.key_file", keyFile)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(cert); block == nil {
		return nil, &KeyError{"tls.cert_file", "holds no PEM certificate",
			"name the file that begins with -----BEGIN CERTIFICATE-----"}
	}
	if block, _ := pem.Decode(key); block == nil {
		return nil, &KeyError{"tls.key_file", "holds no PEM private key",
			"name the file with -----BEGIN PRIVATE KEY-----"}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// The library's words name types of PEM blocks and keys, never content.
		return nil, &KeyError{"tls.cert_file", "and tls.key_file do not make a pair: " + err.Error(),
			"name a certificate, its own first and then the intermediates, and its unencrypted private key"}
	}
	// GODEBUG=x509keypairleaf=0 leaves it out, and what follows needs it.
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, &KeyError{"tls.cert_file", "cannot be read: " + err.Error(), "name a certificate"}
		}
	}
	return &pair, nil
}

// readPool reads the authorities of a PEM file. One without a certificate would trust none, and
// is an error: more likely it is the wrong file.
func readPool(key, file string) (*x509.CertPool, error) {
	data, err := readFile(key, file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, &KeyError{key, "holds no PEM certificate",
			"name a file with certificates of authorities, each from -----BEGIN CERTIFICATE-----"}
	}
	return pool, nil
}
