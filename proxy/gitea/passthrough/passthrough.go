// Package passthrough hands requests that are not for Aegis itself to Gitea as
// they are: web pages, git over HTTP, LFS, packages, WebSockets, in both
// directions as streams and without bounds on size or time.
//
// Gitea learns the client's address, host and scheme from Aegis alone. Whatever a
// client says of them is removed, and so is every header by which a reverse proxy
// would tell Gitea who somebody is: with reverse proxy authentication switched on,
// one such header is a login.
package passthrough

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
)

// Options describe the way to Gitea.
type Options struct {
	// Gitea is the server's base address. Paths go to it unchanged: a sub-path of
	// Gitea's is part of what clients ask for, as Gitea's own links have it.
	Gitea *url.URL
	// Public is the address that clients use, which Gitea is told; nil: the Host
	// that the client asked for, and the scheme of its connection.
	Public *url.URL
	// Strip are further request headers to remove.
	Strip []string
	// Ours reports whether a text is a bearer token of Aegis's own. Requests lose
	// those before Gitea sees them; nil: there are none.
	Ours func(token string) bool
	// Transport carries the requests. Required.
	Transport http.RoundTripper
	// Stopping ends event streams when it is done, as they would not end by
	// themselves; nil: they go on.
	Stopping context.Context
	// Log receives failures.
	Log zerolog.Logger
}

type pass struct {
	o     Options
	strip map[string]bool
	proxy *httputil.ReverseProxy
}

// New returns the handler. Requests must carry a [proxy.RequestInfo], and their Host
// must have been checked.
func New(o Options) http.Handler {
	p := &pass{o: o, strip: map[string]bool{}}
	for _, name := range o.Strip {
		p.strip[canonical(name)] = true
	}
	p.proxy = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      o.Transport,
		ModifyResponse: p.watch,
		ErrorHandler:   p.failed,
		BufferPool:     &buffers{},
		ErrorLog:       log.New(lines{o.Log}, "", 0),
	}
	return p
}

// ServeHTTP passes one request through.
func (p *pass) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := proxy.RequestInfoFrom(r.Context())
	if x == nil { // a wiring mistake
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	// CONNECT would make Aegis a proxy to anywhere, TRACE shows a client the headers
	// that Aegis adds.
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		refuse(w, x, http.StatusMethodNotAllowed,
			proxy.NewError(proxy.KindMethodNotAllowed, "this method is not passed on", nil))
		return
	}
	// A push or a download takes as long as it takes. Without a deadline there is
	// none to lift.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	// Without it the server reads what is left of the request itself as soon as the answer
	// begins. The transport that is still sending it to Gitea then meets an error, and the
	// answer is cut off. HTTP/2 is full duplex always.
	_ = control.EnableFullDuplex()
	p.proxy.ServeHTTP(w, r)
}

// rewrite turns the client's request into ours. The hop-by-hop headers, and those
// that the client's Connection header names, are gone already, so that header
// cannot remove what is set here.
func (p *pass) rewrite(pr *httputil.ProxyRequest) {
	out := pr.Out
	// The path stays as it was escaped: git and packages have names with %2F in them.
	out.URL.Scheme, out.URL.Host = p.o.Gitea.Scheme, p.o.Gitea.Host
	out.URL.RawQuery = pr.In.URL.RawQuery // unparsable ones too: they are Gitea's to refuse
	for name := range out.Header {
		if c := canonical(name); p.strip[c] || forged(c) {
			delete(out.Header, name)
		}
	}
	withholdCookies(out.Header)
	if p.withhold(out) {
		p.o.Log.Warn().Str("request_id", proxy.RequestInfoFrom(pr.In.Context()).RequestID).
			Msg("a request for Gitea carried a token of Aegis, which was removed; " +
				"tokens of auth.tokens are for the MCP endpoint alone")
	}
	host, scheme := pr.In.Host, "http"
	if pr.In.TLS != nil {
		scheme = "https"
	}
	if p.o.Public != nil {
		host, scheme = p.o.Public.Host, p.o.Public.Scheme
	}
	out.Host = host
	x := proxy.RequestInfoFrom(pr.In.Context())
	out.Header.Set("X-Forwarded-Host", host)
	out.Header.Set("X-Forwarded-Proto", scheme)
	out.Header.Set("X-Forwarded-For", x.Addr)
	out.Header.Set("X-Real-Ip", x.Addr)
	out.Header.Set("X-Request-Id", x.RequestID)
}

// canonical folds case and the two spellings of a word's end: servers behind CGI
// or WSGI take _ for -.
func canonical(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// forged reports whether a header, in canonical form, is one that only a reverse
// proxy may write.
func forged(name string) bool {
	return forgedNames[name] ||
		slices.ContainsFunc(forgedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

var (
	// What reverse proxies and single sign-on in front of Gitea write, by families and
	// by name.
	forgedPrefixes = []string{"x-forwarded-", "x-webauth-", "x-remote-", "remote-", "x-auth-request-", "x-original-"}
	forgedNames    = map[string]bool{
		"forwarded": true, "x-forwarded": true, "x-real-ip": true, "x-client-ip": true, "x-cluster-client-ip": true,
		"true-client-ip": true, "cf-connecting-ip": true, "fastly-client-ip": true, "x-host": true,
		"x-rewrite-url": true, "x-scheme": true, "x-url-scheme": true, "front-end-https": true, "x-user": true,
		"x-auth-user": true, "x-authenticated-user": true, "x-ssl-client-s-dn": true, "x-request-id": true,
	}
)

// watch lets event streams end when the server stops.
func (p *pass) watch(res *http.Response) error {
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if p.o.Stopping == nil || !strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
		return nil
	}
	body := res.Body
	stop := context.AfterFunc(p.o.Stopping, func() { _ = body.Close() }) // its error means nothing any more
	res.Body = &watched{body, stop}
	return nil
}

// watched is the body of an event stream, which ends when the server stops.
type watched struct {
	io.ReadCloser
	stop func() bool
}

// Close closes the stream and forgets it.
func (w *watched) Close() error {
	w.stop()
	return w.ReadCloser.Close()
}

// failed answers a request that Gitea did not.
func (p *pass) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := proxy.RequestInfoFrom(r.Context())
	// Clients go away all the time; that is no trouble worth a warning.
	if errors.Is(err, context.Canceled) {
		p.o.Log.Debug().Str("request_id", x.RequestID).Msg("the client went away while its request was passed through")
	} else {
		p.o.Log.Warn().Str("request_id", x.RequestID).Err(err).Msg("a request could not be passed through")
	}
	refuse(w, x, http.StatusBadGateway,
		proxy.NewError(proxy.KindUpstreamUnavailable, "Gitea does not answer; try again in a moment", err))
}

// refuse answers in Gitea's place. No cache may keep that as Gitea's answer.
func refuse(w http.ResponseWriter, x *proxy.RequestInfo, status int, err *proxy.Error) {
	w.Header().Set("Cache-Control", "no-store")
	proxy.WriteError(w, x, status, err)
}

// buffers recycles what bodies are copied through.
type buffers struct{ pool sync.Pool }

// bufferSize is what httputil uses itself, 32 KiB: large enough for packs of git, small
// enough for many clients.
const bufferSize = 32 << 10

// Get returns a buffer.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, bufferSize)
}

// Put takes a buffer back.
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// lines passes the standard library's messages on. They may name a path, so they
// are for debugging.
type lines struct{ log zerolog.Logger }

// Write logs one message.
func (l lines) Write(p []byte) (int, error) {
	l.log.Debug().Str("message", strings.TrimSpace(string(p))).Msg("passthrough")
	return len(p), nil
}
