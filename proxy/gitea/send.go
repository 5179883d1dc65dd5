package gitea

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"aegis/proxy"
	"aegis/proxy/internal/http1"
)

const (
	// maxErrorBody bounds what is read of an error's body.
	maxErrorBody = 64 << 10
	// maxRetryAfter is the longest wait before the second attempt that a server
	// may ask for; a longer one is the caller's decision.
	maxRetryAfter = 5 * time.Second
	// maxAsked bounds what callers are told of it.
	maxAsked = 24 * time.Hour
	// backoff is the wait before the second attempt when the server names none,
	// plus up to as much again, so that many callers do not come back at once.
	backoff = 100 * time.Millisecond
)

// answer is what came back: the head, and the whole body within its bound, or what was
// picked of it. Streams are not kept open: stages need the whole to judge, mask and bound
// it.
type answer struct {
	status int
	header http.Header
	body   []byte
	size   int64 // bytes that came, picked or not
	picked bool  // body is the part of valid JSON that was asked for
	rows   int   // of the longest list in a picked object, -1 without one
	// release lets the body's memory serve another answer; nil: the memory is not shared.
	release func()
}

// exchange sends req, once more when that is safe and may help, and fills in the facts.
// Errors are [*proxy.Error]; an answer of any status is none. One repetition at most: a
// Gitea that is down must not get twice the load of one that is up, and again twice by
// clients that repeat.
func (c *Client) exchange(ctx context.Context, req *request, facts *proxy.CallStats) (*answer, error) {
	began := time.Now()
	defer func() { facts.Upstream += time.Since(began) }()
	for sent := 0; ; {
		n, ans, err := c.send(ctx, req)
		sent += n
		facts.Attempts = sent
		facts.BytesOut += int64(n * len(req.body))
		if ans != nil {
			facts.BytesIn += ans.size
		}
		// net/http may have sent it twice already.
		if sent > 1 || !req.repeatable || !passing(ans, err) || ctx.Err() != nil {
			return ans, err
		}
		if !c.pause(ctx, ans) {
			return ans, err
		}
	}
}

// passing reports whether a failure may be gone in a moment: Gitea was not reached, or
// something before it says that it is not there. A time-out is none: what took too long
// once does so again.
func passing(ans *answer, err error) bool {
	if err != nil {
		var e *proxy.Error
		return errors.As(err, &e) && e.Kind == proxy.KindUpstreamUnavailable
	}
	return unavailable(ans.status)
}

// unavailable reports the statuses with which a proxy says that Gitea is not there.
func unavailable(status int) bool { return status >= 502 && status <= 504 }

// pause waits before the second attempt. It reports false when there shall be
// none: the server asks for more patience than a call has, or the call ends.
func (c *Client) pause(ctx context.Context, ans *answer) bool {
	wait := backoff + rand.N(backoff)
	if ans != nil {
		if asked := proxy.RetryAfter(ans.header, time.Now(), maxAsked); asked > maxRetryAfter {
			return false
		} else if asked > 0 {
			wait = asked
		}
	}
	// The first answer is better than a timeout.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	return c.sleep(ctx, wait)
}

// sleep waits, and reports false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send makes one attempt. It uses the transport itself, not an http.Client:
// that one would follow redirects and put the address, and with it arguments,
// into its errors. It also returns how often the request went out, which is
// twice when net/http itself sent a GET again on a fresh connection, and 1 at
// least, so that the caller's loop ends.
func (c *Client) send(ctx context.Context, req *request) (int, *answer, error) {
	var sent atomic.Int32
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Add(1) }}
	var upgraded *atomic.Bool
	if c.scheme == "https" { // it may be HTTP/2
		upgraded = new(atomic.Bool)
		trace.Got1xxResponse = refuseUpgrade(upgraded)
	}
	ans, err := c.sendOnce(httptrace.WithClientTrace(ctx, trace), req)
	if err != nil && upgraded != nil && upgraded.Load() {
		err = transportError(ctx, req, http1.ErrUpgrade)
	}
	return max(1, int(sent.Load())), ans, err
}

// refuseUpgrade ends a request whose server says in HTTP/2 that it changes the protocol: to
// net/http that is an interim answer, and it would wait for the final one. What net/http
// makes of the error does not tell, so seen does.
func refuseUpgrade(seen *atomic.Bool) func(int, textproto.MIMEHeader) error {
	return func(status int, _ textproto.MIMEHeader) error {
		if status == http.StatusSwitchingProtocols {
			seen.Store(true)
			return http1.ErrUpgrade
		}
		return nil
	}
}

// sendOnce makes one exchange and reads its answer.
func (c *Client) sendOnce(ctx context.Context, req *request) (*answer, error) {
	out, err := c.httpRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	// On a reused connection that turns out closed, net/http itself sends a GET
	// again. A request that may change something gets a connection of its own,
	// where it never does.
	transport := http.RoundTripper(c.pooled)
	if !req.repeatable && req.body == nil && (req.method == http.MethodGet || req.method == http.MethodHead) {
		transport = c.single
	}
	resp, err := c.around(transport).RoundTrip(out)
	if err != nil {
		return nil, transportError(ctx, req, err)
	}
	defer func() { _ = resp.Body.Close() }()
	ans := &answer{status: resp.StatusCode, header: resp.Header, rows: -1}
	if err := c.readBody(resp, req, ans); err != nil {
		var public *proxy.Error
		if errors.As(err, &public) {
			return nil, err
		}
		return nil, transportError(ctx, req, err)
	}
	return ans, nil
}

// httpRequest renders req. Its headers are Aegis's own, every one of them. A header of the
// client's, such as X-Forwarded-User, could be a login to Gitea.
func (c *Client) httpRequest(ctx context.Context, req *request) (*http.Request, error) {
	u, err := c.url(req)
	if err != nil {
		return nil, proxy.NewError(proxy.KindInternal, "the request's path cannot be built", err)
	}
	// Not http.NewRequest: it would parse the address again, and escape the path in its
	// own way.
	out := (&http.Request{
		Method: req.method, URL: u, Host: c.host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {c.agent}, "Accept": {req.accept}},
	}).WithContext(ctx)
	if auth := req.cred.Authorization(); auth != "" {
		out.Header["Authorization"] = []string{auth}
	}
	if req.sudo != "" {
		out.Header["Sudo"] = []string{req.sudo}
	}
	if req.body != nil {
		out.Header["Content-Type"] = []string{req.contentType}
		out.ContentLength = int64(len(req.body))
		// Without GetBody, so that net/http cannot send it again by itself.
		out.Body = io.NopCloser(bytes.NewReader(req.body))
		if len(req.body) == 0 {
			out.Body = http.NoBody
		}
	}
	return out, nil
}

// readBody reads the body within the bound for its status, or picks from it
// what the request wants. What an error has beyond its bound is left unread; a
// good answer beyond it is refused.
func (c *Client) readBody(resp *http.Response, req *request, ans *answer) error {
	media := mediaType(resp.Header)
	switch enc := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return ans.readError(resp.Body)
	// Its bytes would be taken for those of a file, and its size bounds nothing.
	case enc != "" && !strings.EqualFold(enc, "identity"):
		return &proxy.Error{Kind: proxy.KindUpstreamError, Status: resp.StatusCode,
			Public: "the answer is compressed although nobody asked for that; " +
				"switch compression off in the proxy before Gitea"}
	case resp.Request != nil && resp.Request.Method == http.MethodHead:
		return nil // the length is that of the body a GET would get
	case req.picks(resp.StatusCode, media):
		return c.readPicked(resp, req, ans)
	}
	size := resp.ContentLength
	switch {
	case size > c.maxResponse:
		return c.overResponse(resp.StatusCode, size)
	// Refused by its head, before megabytes are read for nothing.
	case size > c.maxBinary && kindOf(media) == proxy.BodyBinary:
		return c.overBinary(resp.StatusCode, size, media)
	}
	err := ans.read(io.LimitReader(resp.Body, c.maxResponse+1), size, &c.bodies)
	if err == nil && ans.size > c.maxResponse {
		return c.overResponse(resp.StatusCode, -1)
	}
	return err
}

// readError takes the beginning of r, which is enough of an error.
func (a *answer) readError(r io.Reader) (err error) {
	a.body, err = io.ReadAll(io.LimitReader(r, maxErrorBody))
	a.size = int64(len(a.body))
	return err
}

// transportError is the error of a request that got no answer. The cause is for the log; it
// names addresses, but nothing of the request. Whether Gitea acted cannot be known once a
// request has left, and a model must not be led to think that it did not.
func transportError(ctx context.Context, req *request, cause error) *proxy.Error {
	var untrusted *tls.CertificateVerificationError
	unsure := ""
	if !req.repeatable {
		unsure = "; it is unknown whether Gitea carried it out: check before you repeat it"
	}
	switch {
	// The context first: transports report its end as errors of many kinds.
	case errors.Is(ctx.Err(), context.Canceled):
		return proxy.NewError(proxy.KindCancelled, "the call was cancelled"+unsure, cause)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return proxy.NewError(proxy.KindTimeout, "Gitea did not answer in time (gitea.timeout)"+unsure, cause)
	case errors.Is(cause, http1.ErrUpgrade):
		return proxy.NewError(proxy.KindUpstreamError, "the server at gitea.url changed the protocol (101) "+
			"without being asked to; check that it is Gitea, and the proxy before it"+unsure, cause)
	case errors.As(cause, &untrusted):
		return proxy.NewError(proxy.KindUpstreamUnavailable,
			"Gitea's TLS certificate is not trusted; the operator can name its authority in gitea.ca_file", cause)
	}
	return proxy.NewError(proxy.KindUpstreamUnavailable,
		"Gitea cannot be reached, or broke off its answer; try again later"+unsure, cause)
}
