package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/config/watch"
)

// Options are what a [TLS] is made of.
type Options struct {
	// TLS is the configuration, checked, with mode auto or files.
	TLS config.TLS
	// Hosts are the names to get certificates for with mode auto, at least one.
	Hosts []string
	// Base is the public https address; redirects lead to its host.
	Base *url.URL
	// Listen is the address of the encrypted listener, host:port.
	Listen string
	// DataDir is the folder for certificates of mode auto.
	DataDir string
	// Storage returns what keeps certificates of mode auto in place of DataDir,
	// for several processes; it is called once by [TLS.Start]. Nil: the folder.
	Storage func() certmagic.Storage
	Log     zerolog.Logger
}

// TLS has the certificates of one process. Build it with [New]; it does nothing
// by itself before [TLS.Start].
type TLS struct {
	opts    Options
	source  source
	clients atomic.Pointer[x509.CertPool] // nil: clients need no certificate
	config  *tls.Config

	reloading sync.Mutex // held for as long as files are read, or attempts end
	mu        sync.Mutex // held for a moment
	clientErr error      // why client_ca could not be read again
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// source is where certificates come from: [auto] or [files].
type source interface {
	start(ctx context.Context) error
	certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// challenge answers an ACME HTTP challenge, and reports whether it did.
	challenge(w http.ResponseWriter, r *http.Request) bool
	status() []CertStatus
	// again reads or asks for certificates without waiting.
	again()
	// paths are the files to watch.
	paths() []string
	stop()
}

// KeyError is what is wrong with one key of the configuration.
type KeyError struct {
	// Key is the key, such as tls.cert_file.
	Key string
	// What is wrong, and what to Do about it. Neither holds a secret.
	What, Do string
}

// Error returns the key, what is wrong and what to do.
func (e *KeyError) Error() string { return e.Key + ": " + e.What + "; " + e.Do }

// New reads the files that the configuration names. It opens no port and asks
// no authority. The error joins one [*KeyError] for each file that does not do.
func New(opts Options) (*TLS, error) {
	t := &TLS{opts: opts}
	var errs []error
	if opts.TLS.ClientCA != "" {
		pool, err := readPool("tls.client_ca", opts.TLS.ClientCA)
		errs = append(errs, err)
		t.clients.Store(pool)
	}
	var err error
	if opts.TLS.Mode == "files" {
		t.source, err = newFiles(opts)
	} else {
		t.source, err = newAuto(opts)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	t.config = t.serverConfig()
	return t, nil
}

// Start begins to keep certificates: it loads those that are stored, gets those
// that are missing, and watches files. It returns when stored certificates can
// be served. An authority that does not answer is no error: it is asked again,
// and handshakes fail until then. Call [TLS.Close] afterwards, also on an error.
func (t *TLS) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	t.stop = cancel
	t.mu.Unlock()
	if err := t.source.start(ctx); err != nil {
		return err
	}
	w := &watch.Watcher{Files: t.paths, Changed: t.Reload, Since: time.Now()}
	t.running.Go(func() { w.Run(ctx) })
	return nil
}

// Close ends what Start began.
func (t *TLS) Close() {
	t.mu.Lock()
	stop := t.stop
	t.stop = nil
	t.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	t.running.Wait()
	// A reload that was asked for otherwise, by a signal, may still run.
	t.reloading.Lock()
	defer t.reloading.Unlock()
	t.source.stop()
}

func (t *TLS) paths() []string {
	paths := t.source.paths()
	if t.opts.TLS.ClientCA != "" {
		paths = append(paths, t.opts.TLS.ClientCA)
	}
	return paths
}

// Reload reads the files again, or asks the authority for missing certificates
// without waiting for the next attempt. What does not do leaves what is in use,
// and is logged and in [TLS.Status].
func (t *TLS) Reload() {
	t.reloading.Lock()
	defer t.reloading.Unlock()
	t.source.again()
	if t.opts.TLS.ClientCA == "" { // switching it on needs a start
		return
	}
	pool, err := readPool("tls.client_ca", t.opts.TLS.ClientCA)
	t.mu.Lock()
	t.clientErr = err
	t.mu.Unlock()
	if err != nil {
		t.opts.Log.Error().Err(err).Msg("the new client authorities cannot be used; the old ones stay in use")
		return
	}
	t.clients.Store(pool)
}

// Warnings returns what is wrong with the certificate that was read from files, each
// with its key; what clients will refuse comes first. An authority's certificates have
// none before [TLS.Start].
func (t *TLS) Warnings() (list []string) {
	f, ok := t.source.(*files)
	if !ok {
		return nil
	}
	for _, w := range f.warnings(f.pair.Load().Leaf, time.Now()) {
		list = append(list, w.key+": "+w.text)
	}
	return list
}

// Status returns the state of each certificate.
func (t *TLS) Status() []CertStatus {
	list := t.source.status()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range list {
		if list[i].Problem == "" && t.clientErr != nil {
			list[i].Problem = t.clientErr.Error()
		}
	}
	return list
}

// CertStatus is the state of one certificate.
type CertStatus struct {
	// Host is the name that it is for; with mode files its first name.
	Host string
	// NotBefore and NotAfter are its validity, zero while there is none.
	NotBefore, NotAfter time.Time
	// Issuer is who issued it.
	Issuer string
	// Problem is why it could not be got, renewed or read again; "" when all is
	// well. It is one line and holds no secret.
	Problem string
}

// Valid reports whether the certificate can be served at a time.
func (s CertStatus) Valid(now time.Time) bool {
	return !s.NotAfter.IsZero() && !now.Before(s.NotBefore) && now.Before(s.NotAfter)
}

// acmeProtocol is the ALPN name of the TLS-ALPN-01 challenge (RFC 8737).
const acmeProtocol = "acme-tls/1"

// ciphers of TLS 1.2: forward secret and authenticated. Those of 1.3 all are.
func ciphers() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// Config returns the configuration of the encrypted listener.
func (t *TLS) Config() *tls.Config { return t.config.Clone() }

// serverConfig makes the configuration once; what changes, certificates and client
// authorities, it looks up at each handshake.
func (t *TLS) serverConfig() *tls.Config {
	base := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		CipherSuites:   ciphers(),
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: t.source.certificate,
	}
	// The authority's challenge shows no client certificate. It speaks nothing
	// else, and so does this configuration: no request can come this way.
	challenge := base.Clone() // before base gets its hook, which this one must not have
	challenge.NextProtos = []string{acmeProtocol}
	challenge.SessionTicketsDisabled = true
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if t.opts.TLS.Mode == "auto" && slices.Equal(hello.SupportedProtos, []string{acmeProtocol}) {
			return challenge, nil
		}
		pool := t.clients.Load()
		if pool == nil { // the configuration as it is
			return nil, nil
		}
		c := base.Clone()
		c.GetConfigForClient = nil
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, pool
		// A ticket would outlive the authority that its client was trusted for.
		c.SessionTicketsDisabled = true
		return c, nil
	}
	return base
}
