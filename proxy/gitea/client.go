// Package gitea carries calls out: it is the only package that talks to Gitea.
//
// A [Client] turns a validated [proxy.Call] into exactly one HTTP request with
// the caller's own credential, and Gitea's answer into a [proxy.Result] or a
// [proxy.Error]. It follows no redirect, keeps no cookie, forwards no header of
// the client and sends a credential to no other host. A request that may change
// something is never sent twice.
package gitea

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/buffers"
	"aegis/proxy/internal/http1"
)

// What holds where the configuration says nothing.
const (
	defaultTimeout     = 30 * time.Second
	defaultConnections = 128
	defaultResponse    = 32 << 20
	defaultBinary      = 4 << 20
)

// Limits bound what a Client accepts, and say how it names itself. They come from other
// blocks of the configuration than Gitea's own.
type Limits struct {
	// MaxBinaryBytes bounds files, decoded, in either direction; 0 means 4 MiB.
	MaxBinaryBytes int64
	// Version goes out as User-Agent "aegis/<Version>"; "" means the version of
	// the running build.
	Version string
	// Around wraps what sends the requests of calls; nil leaves it.
	Around func(http.RoundTripper) http.RoundTripper
	// Scrub returns what Gitea says in an error, one line of at most 8 KiB, without
	// what looks like a credential. Required: it holds whatever masking does.
	Scrub func([]byte) []byte
}

// Client talks to one Gitea. It is safe for concurrent use. It holds no credential: each
// request carries that of its caller, and nothing is remembered of it.
type Client struct {
	scheme, host string
	prefix       string // escaped path down to /api/v1
	prefixPlain  string // the same, unescaped
	agent        string
	timeout      time.Duration
	maxResponse  int64
	maxBinary    int64

	pooled connections // reuses connections
	single connections // one connection per request, see send
	around func(http.RoundTripper) http.RoundTripper
	scrub  func([]byte) []byte
	log    zerolog.Logger
	sleep  func(context.Context, time.Duration) bool

	bodies  buffers.Pool
	version atomic.Pointer[string]
	paging  pageSizes
}

// New returns a Client for the server that cfg describes. It sends nothing. The error names
// the key of the configuration that is wrong. A Gitea that is not there yet is no reason
// not to start.
func New(cfg config.Gitea, limits Limits, log zerolog.Logger) (*Client, error) {
	if cfg.URL == nil || cfg.URL.Host == "" {
		return nil, errors.New("gitea.url: required; give the base address of Gitea, such as https://git.example.org")
	}
	if limits.Scrub == nil { // without it, errors would carry what Gitea quotes
		return nil, errors.New("gitea: Limits.Scrub is required")
	}
	transport, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	single := transport.Clone()
	// See sendOnce: requests that may change something and have no body.
	single.DisableKeepAlives = true
	around := limits.Around
	if around == nil {
		around = func(next http.RoundTripper) http.RoundTripper { return next }
	}
	return &Client{
		scheme:      cfg.URL.Scheme,
		host:        cfg.URL.Host,
		prefix:      strings.TrimRight(cfg.URL.EscapedPath(), "/") + "/api/v1",
		prefixPlain: strings.TrimRight(cfg.URL.Path, "/") + "/api/v1",
		agent:       "aegis/" + buildVersion(limits.Version),
		timeout:     or(time.Duration(cfg.Timeout), defaultTimeout),
		maxResponse: or(int64(cfg.MaxResponseBytes), defaultResponse),
		maxBinary:   or(limits.MaxBinaryBytes, defaultBinary),
		pooled:      pool(cfg, transport),
		single:      http1.NoUpgrade{Next: single},
		around:      around,
		scrub:       limits.Scrub,
		log:         log,
		sleep:       sleep,
	}, nil
}

// connections is a pool of connections to Gitea.
type connections interface {
	http.RoundTripper
	CloseIdleConnections()
}

// pool returns what sends the requests of calls: transport, or for a Gitea next door,
// without TLS or a proxy between, what needs no goroutines for it. The two that net/http
// has for each connection hand every request and answer over, which is a tenth of what a
// call costs there.
func pool(cfg config.Gitea, transport *http.Transport) connections {
	host, port := cfg.URL.Hostname(), cfg.URL.Port()
	// A name in another script would have to be encoded first, as net/http does.
	plain := cfg.URL.Scheme == "http" && transport.Proxy == nil && strings.IndexFunc(host, notASCII) < 0
	if !plain || !http1.Supported {
		return http1.NoUpgrade{Next: transport}
	}
	return http1.New(http1.Options{
		Address:     net.JoinHostPort(host, cmp.Or(port, "80")),
		Dial:        transport.DialContext,
		MaxConns:    transport.MaxConnsPerHost,
		MaxHead:     transport.MaxResponseHeaderBytes,
		IdleTimeout: transport.IdleConnTimeout,
	})
}

// or returns v, or fallback when v is not positive.
func or[T ~int | ~int64](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

// buildVersion returns version, or what the build says of itself.
func buildVersion(version string) string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "dev"
}

// newTransport returns the connection pool. Compression stays off: a body that was unpacked
// on the way has neither Gitea's bytes nor a size known up front. No proxy is taken from
// the environment: what lies between Aegis and Gitea sees tokens where there is no TLS, so
// the configuration names it.
func newTransport(cfg config.Gitea) (*http.Transport, error) {
	roots, err := rootCAs(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	// All of them may be idle: else a burst of calls would close connections that the
	// next one opens again.
	connections := or(cfg.MaxConnections, defaultConnections)
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxConnsPerHost:        connections,
		MaxIdleConns:           connections,
		MaxIdleConnsPerHost:    connections,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
	if cfg.Proxy != nil && cfg.Proxy.Host != "" {
		t.Proxy = http.ProxyURL(&cfg.Proxy.URL)
	}
	return t, nil
}

// PassTransport returns a connection pool of its own to the server that cfg
// describes, for requests that are passed through. WebSockets and event streams
// keep their connections, so these are not bounded: the clients' connections are.
func PassTransport(cfg config.Gitea) (*http.Transport, error) {
	t, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	t.MaxConnsPerHost = 0
	t.ExpectContinueTimeout = time.Second
	return t, nil
}

// rootCAs returns the system's authorities and those of file; nil means the
// system's alone.
func rootCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("gitea.ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	// Without this a mistyped file would trust the system's authorities alone, and fail
	// at the first call.
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("gitea.ca_file: %s holds no PEM certificate", file)
	}
	return pool, nil
}

// Login asks Gitea whose credential cred is (GET /user). Errors are [*proxy.Error]. It is
// the one way to find out: nothing in a token says whose it is.
func (c *Client) Login(ctx context.Context, cred proxy.Credential) (proxy.Person, error) {
	var user struct {
		ID      int64  `json:"id"`
		Login   string `json:"login"`
		IsAdmin bool   `json:"is_admin"`
	}
	if err := c.ask(ctx, "/user", "", cred, &user); err != nil {
		return proxy.Person{}, err
	}
	if user.Login == "" {
		return proxy.Person{}, proxy.NewError(proxy.KindUpstreamError,
			"Gitea did not say whose token this is; check that gitea.url is the address of a Gitea server", nil)
	}
	// A person who has signed in will list something soon: learn the page sizes now,
	// so that a call is one request.
	c.pageSizes(ctx, cred)
	return proxy.Person{ID: user.ID, Login: user.Login, Admin: user.IsAdmin}, nil
}

// Version asks Gitea for its version (GET /version). The answer also names the source of
// later results. Errors are [*proxy.Error]. It is asked without a credential, as at the
// start there is none.
func (c *Client) Version(ctx context.Context) (string, error) {
	var v struct {
		Version string `json:"version"`
	}
	if err := c.ask(ctx, "/version", "", proxy.Credential{}, &v); err != nil {
		return "", err
	}
	// It goes into every result, to a model: one short line.
	version := proxy.Shorten(clean(v.Version), 64)
	if version == "" {
		return "", proxy.NewError(proxy.KindUpstreamError,
			"the server at gitea.url names no version; check that it is the address of a Gitea server", nil)
	}
	c.version.Store(&version)
	return version, nil
}

// Ready reports whether Gitea answers. A Gitea that shows its version to
// signed-in users only is ready too. Errors are [*proxy.Error].
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.Version(ctx)
	var e *proxy.Error
	if errors.As(err, &e) && (e.Kind == proxy.KindUnauthorized || e.Kind == proxy.KindForbidden) {
		return nil
	}
	return err
}

// Close closes the idle connections. Calls in flight finish.
func (c *Client) Close() { c.pooled.CloseIdleConnections() }

// ask sends a GET of Aegis's own and decodes the JSON answer into v. These count in no
// limit and no audit record, as no client asked for them.
func (c *Client) ask(ctx context.Context, path, query string, cred proxy.Credential, v any) error {
	req := &request{method: http.MethodGet, path: path, query: query, accept: mediaJSON, cred: cred, repeatable: true}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ans, err := c.exchange(ctx, req, &proxy.CallStats{})
	if err != nil {
		return err
	}
	if ans.status != http.StatusOK {
		return c.failure(req, ans)
	}
	if err := json.Unmarshal(ans.body, v); err != nil {
		return proxy.NewError(proxy.KindUpstreamError,
			"the server at gitea.url answers, but not as Gitea does; check the address and its sub-path", nil)
	}
	return nil
}

// source names the server for results.
func (c *Client) source() string {
	if v := c.version.Load(); v != nil {
		return "gitea " + *v
	}
	return "gitea"
}

// url returns the address of a request. Path and RawPath are both set so that
// net/http sends the escaped path exactly as it was built, through an HTTP
// proxy and over HTTP/2 too.
func (c *Client) url(req *request) (*url.URL, error) {
	plain, err := url.PathUnescape(req.path)
	if err != nil {
		return nil, err
	}
	return &url.URL{
		Scheme: c.scheme, Host: c.host,
		Path: c.prefixPlain + plain, RawPath: c.prefix + req.path, RawQuery: req.query,
	}, nil
}
