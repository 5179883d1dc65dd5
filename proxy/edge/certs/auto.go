package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"
	"github.com/rs/zerolog"
	"go.uber.org/zap"

	"aegis/proxy"
)

const (
	// loadTimeout bounds how long the start waits for stored certificates, whose
	// loading may ask an OCSP responder.
	loadTimeout = 5 * time.Second
	// tryAgain is the pause after a failure of our own, such as a full disk.
	// Failures of the authority are tried again by the library: after a minute
	// at first, then at growing intervals up to six hours, as authorities count them.
	tryAgain = time.Minute
)

// auto gets certificates from an ACME authority and renews them.
type auto struct {
	opts  Options
	roots *x509.CertPool // nil: the system's
	log   zerolog.Logger
	// loading is how long the start waits for stored certificates.
	loading time.Duration
	// For tests: how often certificates are checked for renewal (0: the library's
	// default), and not to ask the authority when it is best to renew (RFC 9773).
	check   time.Duration
	ageOnly bool

	built  chan struct{} // closed when what follows is there
	cache  *certmagic.Cache
	magic  *certmagic.Config
	issuer *certmagic.ACMEIssuer

	mu       sync.Mutex
	problems map[string]string // why a host has no new certificate
	// attempt ends the work of begin, so that again can begin anew; what the library does by
	// itself goes on.
	attempt context.CancelFunc
	working sync.WaitGroup
	ctx     context.Context // of everything since start; nil before it
}

// newAuto reads the authority's own roots, and touches nothing else.
func newAuto(opts Options) (*auto, error) {
	a := &auto{opts: opts, log: opts.Log, loading: loadTimeout, problems: map[string]string{},
		built: make(chan struct{})}
	if file := opts.TLS.ACME.CAFile; file != "" {
		var err error
		if a.roots, err = readPool("tls.acme.ca_file", file); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// start loads what is stored, so that a restart serves at once, and leaves what is missing to
// the background: an authority that is away must not keep the process from starting.
func (a *auto) start(ctx context.Context) error {
	if a.opts.Storage != nil {
		a.build(a.opts.Storage())
	} else {
		dir := filepath.Join(a.opts.DataDir, "certificates")
		if err := writable(dir); err != nil {
			return fmt.Errorf("certificates cannot be kept: %w; let Aegis write to data_dir", err)
		}
		a.build(&certmagic.FileStorage{Path: dir})
	}
	a.ctx = ctx
	loaded, wait := a.begin(), time.After(a.loading)
	for range a.opts.Hosts {
		select {
		case <-loaded:
		case <-wait:
			return nil
		}
	}
	return nil
}

// writable makes a folder and tries to write to it: a certificate that was ordered and cannot
// be kept would be ordered again at each start, until the authority's limit is reached.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// build makes the library's parts. Its log goes to ours. The event that it may leave out comes
// with every handshake.
func (a *auto) build(storage certmagic.Storage) {
	log := zap.New(&bridge{log: a.log})
	a.cache = certmagic.NewCache(certmagic.CacheOptions{
		// One configuration for all, which is made below with this cache.
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return a.magic, nil },
		RenewCheckInterval: a.check,
		Logger:             log,
	})
	a.magic = certmagic.New(a.cache, certmagic.Config{
		Storage:           storage,
		Logger:            log,
		OnEvent:           a.event,
		ShouldEmitFunc:    func(name string) bool { return name != "tls_get_certificate" },
		DefaultServerName: a.opts.Hosts[0],
		DisableARI:        a.ageOnly,
	})
	a.issuer = certmagic.NewACMEIssuer(a.magic, a.template(log))
	a.magic.Issuers = []certmagic.Issuer{a.issuer}
	close(a.built)
}

// template is what the library needs to know of the authority and of our listeners. The
// library would open a port of its own for a challenge that none of ours answers.
func (a *auto) template(log *zap.Logger) certmagic.ACMEIssuer {
	cfg := a.opts.TLS.ACME
	host, port := split(a.opts.Listen)
	t := certmagic.ACMEIssuer{
		CA:                      cfg.Directory.String(),
		Email:                   cfg.Email,
		Agreed:                  cfg.AgreeTOS,
		TrustedRoots:            a.roots,
		DisableHTTPChallenge:    !slices.Contains(cfg.Challenges, "http-01") || a.opts.TLS.HTTPListen == "off",
		DisableTLSALPNChallenge: !slices.Contains(cfg.Challenges, "tls-alpn-01"),
		ListenHost:              host,
		AltTLSALPNPort:          port,
		HTTPProxy:               func(*http.Request) (*url.URL, error) { return nil, nil }, // none by surprise
		Logger:                  log,
	}
	if a.opts.TLS.HTTPListen != "off" {
		// The library looks whether the port is served, and it is: by us.
		_, t.AltHTTPPort = split(a.opts.TLS.HTTPListen)
	}
	if cfg.EABKeyID != "" {
		t.ExternalAccount = &acme.EAB{KeyID: cfg.EABKeyID, MACKey: cfg.EABMACKey.Reveal()}
	}
	return t
}

// split returns the host and port of an address that config has checked; the port is a number,
// which is what the library takes.
func split(addr string) (string, int) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0
	}
	n, _ := strconv.Atoi(port)
	return host, n
}

// begin works for each host until it has a certificate, and sends a value for
// each that was loaded from storage or is not there.
func (a *auto) begin() <-chan struct{} {
	ctx, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	a.attempt = cancel
	a.mu.Unlock()
	loaded := make(chan struct{}, len(a.opts.Hosts))
	for _, host := range a.opts.Hosts {
		a.working.Go(func() { a.keep(ctx, host, loaded) })
	}
	return loaded
}

// keep loads or gets the certificate of host. From then on the library renews it.
func (a *auto) keep(ctx context.Context, host string, loaded chan<- struct{}) {
	_, err := a.magic.CacheManagedCertificate(ctx, host)
	loaded <- struct{}{} // start waits for that, and for no order
	for {
		// Any other failure is not a reason to order: what is there could not be read.
		if errors.Is(err, fs.ErrNotExist) {
			a.log.Info().Str("host", host).Str("directory", a.opts.TLS.ACME.Directory.String()).
				Msg("getting a certificate")
			if err = a.magic.ObtainCertAsync(ctx, host); err == nil {
				_, err = a.magic.CacheManagedCertificate(ctx, host)
			}
		}
		if err == nil {
			// One that is due is renewed now and not at the next round.
			if err = a.cache.RenewManagedCertificates(ctx); err != nil {
				a.note(host, err)
			}
			return
		}
		if ctx.Err() != nil {
			return
		}
		a.note(host, err)
		a.log.Error().Str("host", host).Str("problem", oneLine(err)).Msg("no certificate; trying again in a minute")
		select {
		case <-ctx.Done():
			return
		case <-time.After(tryAgain):
		}
		_, err = a.magic.CacheManagedCertificate(ctx, host)
	}
}

// note keeps why a host has no new certificate, for status.
func (a *auto) note(host string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.problems[host] = oneLine(err)
}

// event keeps what status tells, and says in the log what an operator must know.
func (a *auto) event(ctx context.Context, name string, data map[string]any) error {
	host, _ := data["identifier"].(string)
	renewal, _ := data["renewal"].(bool)
	switch name {
	case "cert_obtained":
		a.mu.Lock()
		delete(a.problems, host)
		a.mu.Unlock()
		a.log.Info().Str("host", host).Bool("renewal", renewal).Msg("got a certificate")
	case "cert_failed":
		if ctx.Err() != nil { // it was given up, and has not failed
			return nil
		}
		err, _ := data["error"].(error)
		if err == nil {
			err = errors.New("unknown")
		}
		a.note(host, err)
		msg := "no certificate could be got; connections to this host fail until it is there, and it is tried again"
		if renewal {
			msg = "the certificate could not be renewed; the old one is served, and it is tried again"
		}
		a.log.Error().Str("host", host).Str("problem", oneLine(err)).Msg(msg)
	}
	return nil
}

// again asks at once for what is missing, instead of after the current pause.
func (a *auto) again() {
	if a.missing() == 0 || a.ctx.Err() != nil {
		return
	}
	a.cancel()
	a.working.Wait() // two attempts for one host would be two orders
	a.begin()
}

// missing returns the number of hosts without a certificate. Those whose renewal fails are not
// among them: the library has the time until the old one ends.
func (a *auto) missing() (n int) {
	for _, host := range a.opts.Hosts {
		if a.leaf(host) == nil {
			n++
		}
	}
	return n
}

// cancel ends the attempts under way, with their pauses. What the authority has
// begun for them is left to it, and the next attempt begins anew.
func (a *auto) cancel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.attempt != nil {
		a.attempt()
	}
}

// stop may be called after a start that failed, when nothing was built.
func (a *auto) stop() {
	a.cancel()
	a.working.Wait()
	if a.cache != nil {
		a.cache.Stop()
	}
}

// paths are none: what the library keeps is no business of the watcher.
func (a *auto) paths() []string { return nil }

// certificate picks by the name that the client asks for; without one it is the first host's.
func (a *auto) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return a.magic.GetCertificate(hello)
}

// challenge answers the authority's HTTP-01 request.
func (a *auto) challenge(w http.ResponseWriter, r *http.Request) bool {
	// Another process may be ordering already while this one still starts.
	select {
	case <-a.built:
	case <-r.Context().Done():
		return false
	}
	return a.issuer.HandleHTTPChallenge(w, r)
}

// leaf returns the certificate of host that is served; nil: there is none.
func (a *auto) leaf(host string) *x509.Certificate {
	// After a renewal the old one may still be in the cache.
	var newest *x509.Certificate
	for _, c := range a.cache.AllMatchingCertificates(host) {
		if c.Leaf != nil && (newest == nil || c.Leaf.NotAfter.After(newest.NotAfter)) {
			newest = c.Leaf
		}
	}
	return newest
}

// status is one line for each host, also for those that never had a certificate.
func (a *auto) status() []CertStatus {
	list := make([]CertStatus, 0, len(a.opts.Hosts))
	for _, host := range a.opts.Hosts {
		s := CertStatus{Host: host}
		if a.cache != nil { // else readiness is asked before start has come so far
			if leaf := a.leaf(host); leaf != nil {
				s.NotBefore, s.NotAfter, s.Issuer = leaf.NotBefore, leaf.NotAfter, leaf.Issuer.CommonName
			}
		}
		a.mu.Lock()
		s.Problem = a.problems[host]
		a.mu.Unlock()
		if s.Problem == "" && s.NotAfter.IsZero() {
			s.Problem = "not there yet"
		}
		list = append(list, s)
	}
	return list
}

// oneLine is an error's text for a log line, bounded: an authority's answer is in it, which may
// be a page of HTML.
func oneLine(err error) string {
	return proxy.Clip(strings.Join(strings.Fields(err.Error()), " "), 500)
}
