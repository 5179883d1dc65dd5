package doctor

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// encodedSlash requests a path that exists only when a proxy decodes %2F: Aegis
// answers 404, and its metadata when the slash was decoded. Names of branches and
// files need %2F when Gitea is served through Aegis too.
func (x *examination) encodedSlash(ctx context.Context) {
	// A well-known name, since Aegis has something to answer there in any
	// configuration.
	path := strings.Replace(nameResource, "/.well-known/", "/.well-known%2F", 1)
	got := x.reply(ctx, "encoded slash", "no answer: ", x.fix("slash"), get(path))
	if got == nil {
		return
	}
	x.judge("encoded slash", "%2F in a path survives", []outcome{
		{got.status == http.StatusOK || got.status >= 300 && got.status < 400, Failure,
			"%2F in a path arrives as /: the proxy decodes paths", x.fix("slash")},
		{!got.byAegis(), Failure, "a path with %2F is refused on the way: " + got.what(), x.fix("slash")},
	})
}

// compression asks for a compressed answer, which must unpack to the same bytes.
func (x *examination) compression(ctx context.Context) {
	path := nameResource + x.o.Endpoints[0]
	plain, err := x.do(ctx, get(path))
	if err != nil || plain.status != http.StatusOK {
		x.add(Skipped, "compression", "there is no document to compare", "")
		return
	}
	a := get(path)
	a.header = http.Header{"Accept-Encoding": {"gzip"}}
	packed := x.reply(ctx, "compression", "no answer to a client that accepts gzip: ", x.fix("compression"), a)
	if packed == nil {
		return
	}
	// Proxies may compress, when they do it right.
	body, coding := packed.body, strings.ToLower(packed.header.Get("Content-Encoding"))
	if coding == "gzip" {
		body, err = gunzip(body)
	}
	x.judge("compression", "compressed answers are the plain ones", []outcome{
		{err != nil, Failure, "a compressed answer does not unpack", x.fix("compression")},
		{!slices.Contains([]string{"", "identity", "gzip"}, coding), Failure,
			"the answer comes in a coding that was not asked for: " + clean(coding), x.fix("compression")},
		{!bytes.Equal(body, plain.body), Failure, "compressed and plain answers differ", x.fix("compression")},
	})
}

// gunzip unpacks no more than a bound: what comes may be made to grow.
func gunzip(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxAnswer))
}

// StreamPath is an event stream of two events, [StreamGap] apart.
const StreamPath = "/healthz/stream"

// StreamGap is the time between the two events.
const StreamGap = time.Second

// streaming checks that the first event of a stream arrives before the second. A
// stall of this machine looks like a buffer, so it tries several times.
func (x *examination) streaming(ctx context.Context) {
	for range 3 {
		first, alone, err := x.stream(ctx)
		if err != nil {
			x.add(Failure, "streaming", err.Error(), x.fix("buffering"))
			return
		}
		if !x.passes("streaming", []outcome{
			{first == nil, Skipped, "there is no event stream to look at", ""},
			{first != nil && first.header.Get("Content-Encoding") != "", Failure,
				"event streams are compressed on the way, which holds events back", x.fix("compression")},
		}) {
			return
		}
		if alone {
			x.ok("streaming", "events arrive as they are sent")
			return
		}
	}
	x.add(Failure, "streaming", "events of a stream arrive all at once: the proxy buffers answers", x.fix("buffering"))
}

// stream reads the event stream: its head, and whether its beginning comes alone,
// the rest not within a while. A nil answer means that it is not Aegis's stream.
func (x *examination) stream(ctx context.Context) (head *answer, alone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.o.Patience)
	defer cancel()
	a := get(x.prefix() + StreamPath)
	a.header = http.Header{"Accept": {"text/event-stream"}, "Accept-Encoding": {"gzip"}}
	req, err := x.request(ctx, a)
	if err != nil {
		return nil, false, err
	}
	res, err := x.pool.RoundTrip(req)
	if err != nil {
		return nil, false, fmt.Errorf("no answer to a request for an event stream: %s", reason(err))
	}
	defer res.Body.Close()
	head = &answer{res.StatusCode, res.Header, nil}
	if res.StatusCode != http.StatusOK || !head.byAegis() {
		return nil, false, nil
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
		return nil, false, fmt.Errorf("an event stream breaks off: %s", reason(err))
	}
	// The time runs from the first byte, so that the way to the server does not count.
	late := time.AfterFunc(x.o.quiet, cancel) // the rest has no use then
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	if fired := !late.Stop(); err != nil && !fired {
		return nil, false, fmt.Errorf("an event stream breaks off: %s", reason(err))
	}
	return head, err != nil, nil
}

// upload sends the beginning of a large body.
func (x *examination) upload(ctx context.Context) (*answer, error) {
	body, sent := io.Pipe()
	defer sent.Close()
	// Some proxies hold back as much as a first read brings, whatever they do later.
	go func() { _, _ = io.CopyN(sent, spaces{}, firstPart) }() // fails when the request has ended
	ctx, cancel := context.WithTimeout(ctx, x.o.held)
	defer cancel()
	// A transport that gives up waits until the body has ended.
	defer context.AfterFunc(ctx, func() { _ = sent.CloseWithError(context.DeadlineExceeded) })()
	return x.do(ctx, ask{
		method: http.MethodPost, path: x.o.Endpoints[0], body: body, size: min(x.o.MaxBody, maxProbe),
		header: http.Header{"Content-Type": {"application/json"}},
	})
}

// uploads asks while a body is not whole. Aegis answers 401 at once, as it needs
// no body for that; a proxy that collects bodies first says nothing. So does a
// machine that stalls, which is why it is asked again.
func (x *examination) uploads(ctx context.Context) {
	got, err := x.upload(ctx)
	if err != nil && ctx.Err() == nil {
		got, err = x.upload(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	x.judge("uploads", "requests reach Aegis while they are sent", []outcome{
		// Apache and proxies made with Go's net/http answer late on such a connection,
		// whatever they do with bodies.
		{err != nil && !x.http2 && x.proxy != "nginx", Skipped,
			"whether bodies are collected cannot be told without HTTP/2", ""},
		{err != nil, Warning, "the proxy collects a request's body before it passes it on: large files take longer",
			x.fix("request buffering")},
		{err == nil && !got.byAegis(), Skipped, "a large request does not reach Aegis", ""},
	})
}

// firstPart is how much of the body is sent, in bytes: less than the first window
// of HTTP/2.
const firstPart = 32 << 10

// maxProbe bounds the body of bodySize, in bytes. More would take long on a slow line,
// and bounds of proxies are at 1 to 10 MB.
const maxProbe = 16 << 20

// bodySize sends a request as large as Aegis takes. It has no token, so Aegis
// answers 401 and reads no more of it than it must.
func (x *examination) bodySize(ctx context.Context) {
	size := min(x.o.MaxBody, maxProbe)
	got, err := x.do(ctx, ask{
		method: http.MethodPost, path: x.o.Endpoints[0], body: io.LimitReader(spaces{}, size), size: size,
		header: http.Header{"Content-Type": {"application/json"}, "Expect": {"100-continue"}},
	})
	amount := bytesText(size)
	if err != nil {
		x.add(Warning, "body size", fmt.Sprintf("a request of %s was cut off: %s", amount, err), x.fix("body"))
		return
	}
	if got.status == http.StatusBadGateway {
		// A proxy that passes bodies on as they come meets a connection that Aegis,
		// which needs no body to say 401, has closed. Its own bound comes before.
		x.ok("body size", "the proxy lets requests of %s through", amount)
		return
	}
	large := got.status == http.StatusRequestEntityTooLarge
	x.judge("body size", "requests of "+amount+" pass", []outcome{
		{large && got.byAegis(), Warning, "Aegis takes no request of " + amount,
			"the running Aegis has a smaller server.max_body_bytes than this file: reload it"},
		{large, Failure, "the proxy refuses a request of " + amount + ", which Aegis takes: uploads fail with 413",
			x.fix("body")},
		{!got.byAegis(), Failure, "a request of " + amount + " is refused on the way: " + got.what(), x.fix("body")},
	})
}

// spaces is white space without end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func bytesText(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
