package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// maxAnswer bounds what is read of one answer. The largest of Aegis's own that is asked
// for has some kilobytes; another program may send any amount.
const maxAnswer = 1 << 20

// examination is one run.
type examination struct {
	o      Options
	origin string // scheme://host of Base
	pool   *http.Transport
	report func(Finding)
	// proxy is the program before Aegis, as answers name it; "" when unknown.
	proxy string
	// http2 is set when the last answer came over HTTP/2.
	http2 bool
	// server is the authorization server's metadata, with an Issuer unless there is none or
	// it could not be read.
	server serverDocument
	// resource is the metadata of the default endpoint; empty as above.
	resource resourceDocument
}

// newExamination fills in what the options leave out.
func newExamination(o Options, report func(Finding)) *examination {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	o.Resolver = cmp.Or[Resolver](o.Resolver, net.DefaultResolver)
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	// The events of the stream are a StreamGap apart; a quarter of it is far more than
	// a network delays, and far less than a buffer that waits for the end.
	o.held, o.quiet = cmp.Or(o.held, o.Patience/4), cmp.Or(o.quiet, StreamGap/4)
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	if len(o.Endpoints) == 0 {
		o.Endpoints = []string{strings.TrimRight(o.Base.Path, "/") + "/mcp"}
	}
	x := &examination{o: o, report: report, origin: o.Base.Scheme + "://" + o.Base.Host}
	// One for all requests, as clients have: some faults of proxies show on the second
	// request of a connection alone. It has no proxy, since the way of a client from
	// elsewhere is meant.
	x.pool = &http.Transport{
		DialContext: o.Dial,
		// The certificate has a check of its own, and no secret is ever sent.
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
		// A refusal comes before a large body is sent.
		ExpectContinueTimeout: 2 * time.Second,
		DisableCompression:    true, // what comes is compared byte for byte
	}
	return x
}

// add reports a finding. All texts go through here, so that none of them reaches a
// terminal unclean.
func (x *examination) add(status Status, check, message, fix string) {
	x.report(Finding{Check: check, Status: status, Message: printable(message), Fix: printable(fix)})
}

// printable makes a text safe for a terminal. Parts of it come from the network, and
// escape sequences could rewrite what the terminal shows.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	// In characters, so that none is cut in two.
	if runes := []rune(s); len(runes) > maxText {
		s = string(runes[:maxText]) + "…"
	}
	return s
}

// maxText bounds a text of a finding, in characters.
const maxText = 1500

// ok reports that a check passed.
func (x *examination) ok(check, format string, args ...any) {
	x.add(OK, check, fmt.Sprintf(format, args...), "")
}

// ask is one request.
type ask struct {
	method string
	path   string // escaped, from the host's root
	host   string // Host; "" is the right one
	header http.Header
	body   io.Reader
	size   int64 // of body; -1: unknown
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get is an ask without anything special.
func get(path string) ask { return ask{method: http.MethodGet, path: path} }

// request makes a request. Host and length are set as asked even where a client would
// not, since the checks are about what proxies do with them.
func (x *examination) request(ctx context.Context, a ask) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, a.method, x.origin+a.path, a.body)
	if err != nil {
		return nil, err
	}
	for name, values := range a.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "aegis-doctor")
	if a.host != "" {
		req.Host = a.host
	}
	// The length makes HTTP/1.1 send the body as it is; without it the body would come
	// in chunks, which proxies treat otherwise.
	if a.body != nil && a.size != 0 {
		req.ContentLength = a.size
	}
	return req, nil
}

// do sends a request and reads the answer, up to a bound. Redirects are not followed.
// Where a redirect leads is what another server wants, and a redirect is itself the
// fault.
func (x *examination) do(ctx context.Context, a ask) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, x.o.Patience)
	defer cancel()
	req, err := x.request(ctx, a)
	if err != nil {
		return nil, err
	}
	res, err := x.pool.RoundTrip(req)
	if err != nil {
		return nil, errors.New(reason(err))
	}
	defer res.Body.Close()
	x.http2 = res.ProtoMajor == 2
	if res.StatusCode == http.StatusSwitchingProtocols { // its body ends when the server likes
		return nil, errors.New("the server changed the protocol (101) without being asked to")
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	return &answer{res.StatusCode, res.Header, body}, nil
}

// expected returns what the configuration says that Aegis answers; nil when that is not
// known. The request is made anew, as its body may have been read.
func (x *examination) expected(ctx context.Context, a ask) *answer {
	if x.o.Reference == nil {
		return nil
	}
	req, err := x.request(ctx, a)
	if err != nil {
		return nil
	}
	req.Host = x.o.Base.Host
	return serve(x.o.Reference, req)
}

// serve has a handler answer a request without a network. It is also what the watchdog
// of systemd uses: a connection might find no place under a flood.
func serve(h http.Handler, req *http.Request) *answer {
	req.RemoteAddr, req.RequestURI = "127.0.0.1:1", req.URL.RequestURI()
	if req.Body == nil {
		req.Body = http.NoBody // handlers are promised one
	}
	rec := &recorder{header: http.Header{}}
	h.ServeHTTP(rec, req)
	return &answer{cmp.Or(rec.status, http.StatusOK), rec.header, rec.body.Bytes()}
}

// Healthy has a handler answer GET /healthz without a network, and returns an error
// when its status is not 200.
func Healthy(ctx context.Context, h http.Handler) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/healthz", nil)
	if err != nil {
		return err
	}
	if a := serve(h, req); a.status != http.StatusOK {
		return fmt.Errorf("/healthz answers %d", a.status)
	}
	return nil
}

// recorder is the smallest [http.ResponseWriter]. That of net/http/httptest is for
// tests: importing it adds a flag to the program.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first status, as a connection does.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// Flush and the deadlines exist so that handlers behave as on a connection.
func (r *recorder) Flush() {}

// SetReadDeadline implements what [http.ResponseController] asks for.
func (r *recorder) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements what [http.ResponseController] asks for.
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

// requestID is the form of the X-Request-Id that Aegis gives every answer. 130 random
// bits in base32. A proxy's own ids look otherwise (hexadecimal, UUID).
var requestID = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// byAegis reports whether Aegis made an answer, and not a proxy before it.
func (a *answer) byAegis() bool { return requestID.MatchString(a.header.Get("X-Request-Id")) }

// message returns the text of an error in Aegis's form, "" when it is none.
func (a *answer) message() string {
	var e struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(a.body, &e) != nil {
		return ""
	}
	return e.Error.Message
}

// what describes an answer for people. The body is left out: it may be a whole page of
// somebody else's.
func (a *answer) what() string {
	from := "not from Aegis"
	if a.byAegis() {
		from = "from Aegis"
	}
	return fmt.Sprintf("%d %s, %s", a.status, http.StatusText(a.status), from)
}

// note remembers which proxy an answer names.
func (x *examination) note(a *answer) {
	if x.proxy != "" {
		return
	}
	// Only what names itself is known. A fix for the wrong proxy would be worse than
	// the list of all.
	server := strings.ToLower(a.header.Get("Server") + " " + a.header.Get("Via"))
	for _, known := range []struct{ sign, name string }{
		{"cloudflare", "Cloudflare"}, {"nginx", "nginx"}, {"openresty", "nginx"}, {"caddy", "Caddy"},
		{"traefik", "Traefik"}, {"apache", "Apache"},
	} {
		if strings.Contains(server, known.sign) {
			x.proxy = known.name
			return
		}
	}
}
