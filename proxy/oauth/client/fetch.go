package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// fetchTimeout bounds a fetch from the name look-up to the last byte, unless the
	// options say otherwise.
	fetchTimeout = 5 * time.Second
	// dialTimeout bounds one connection, so that a second address gets its turn.
	dialTimeout = 2 * time.Second
	// maxDocument bounds the bytes of a document.
	maxDocument = 5 << 10
	// maxAnswers bounds the addresses of a name; all are checked.
	maxAnswers = 64
	// maxDials bounds the addresses that are tried.
	maxDials = 3
)

// How long a document is good for.
const (
	minFresh     = 5 * time.Minute
	maxFresh     = 24 * time.Hour
	defaultFresh = time.Hour // when the host says nothing
)

var (
	errNotPublic = errors.New("the host has an address that is not public")
	errNoAddress = errors.New("the host has no address")
	errAddresses = errors.New("the host has more than 64 addresses")
	errOtherPort = errors.New("only port 443 is dialled")
)

// fetcher gets documents from public addresses, and from nowhere else.
type fetcher struct {
	o    Options // with the hooks that were left out
	http *http.Client
}

// newFetcher returns the fetcher with the hooks of o.
func newFetcher(o Options) *fetcher {
	o.Limit = cmp.Or(o.Limit, fetchTimeout)
	if o.Lookup == nil {
		o.Lookup = lookupPublic
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: dialTimeout, ControlContext: controlPublic}).DialContext
	}
	f := &fetcher{o: o}
	f.http = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would resolve names without our checks
			DialContext:            f.dialPublic,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
			TLSHandshakeTimeout:    f.o.Limit,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// lookupPublic asks for the name as it is: the final dot keeps the search
// domains of this machine out.
func lookupPublic(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
}

// controlPublic is the last look at an address, after everything that could have
// changed it.
func controlPublic(_ context.Context, _, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(a.Addr()) {
		return errNotPublic
	}
	return nil
}

// dialPublic resolves once, checks every answer, and dials what it checked, so
// that a name cannot change its mind in between.
func (f *fetcher) dialPublic(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if port != "443" {
		return nil, errOtherPort
	}
	answers, err := f.o.Lookup(ctx, host)
	switch {
	case err != nil:
		return nil, err
	case len(answers) == 0:
		return nil, errNoAddress
	case len(answers) > maxAnswers:
		return nil, errAddresses
	}
	for i, a := range answers {
		if !isPublic(a) {
			return nil, errNotPublic
		}
		answers[i] = a.Unmap()
	}
	// IPv4 first: where IPv6 does not work, it costs the time of a fetch to see.
	slices.SortStableFunc(answers, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	var failures []error
	for _, a := range answers[:min(len(answers), maxDials)] {
		conn, err := f.o.Dial(ctx, network, netip.AddrPortFrom(a, 443).String())
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// get fetches the document at url, which [documentHost] accepted, and says how
// long it is good for. It takes no longer than the limit. The error is an [*Error].
func (f *fetcher) get(ctx context.Context, url string) (body []byte, fresh time.Duration, _ error) {
	ctx, cancel := context.WithTimeout(ctx, f.o.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, refused(badURL, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Aegis")
	resp, err := f.http.Do(req)
	if err != nil {
		if errors.Is(err, errNotPublic) || errors.Is(err, errOtherPort) || errors.Is(err, errAddresses) {
			e := badDocument("is not on a public address; this server fetches from the internet alone")
			e.Err = err
			return nil, 0, e
		}
		return nil, 0, notFetched(err)
	}
	defer resp.Body.Close()
	if err := acceptable(resp); err != nil {
		return nil, 0, err
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil {
		// A host that sees us hang up may end its answer in good order, in the
		// middle of the document; that is a slow host, not a bad document.
		err = ctx.Err()
	}
	switch {
	case err != nil:
		return nil, 0, unavailable("the metadata document of the client cannot be read; try again in a minute", err)
	case len(body) > maxDocument:
		return nil, 0, badDocument("is larger than 5 KB")
	}
	return body, freshness(resp.Header, f.o.Now()), nil
}

// acceptable looks at status and headers.
func acceptable(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400:
		return badDocument("answers with a redirect, which is not followed; use the URL that it stands at")
	case code == http.StatusNotFound || code == http.StatusGone:
		return refused("there is no metadata document at the client_id", nil)
	case code != http.StatusOK:
		return notFetched(fmt.Errorf("its host answers with status %d", code))
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return badDocument("is compressed, which was not asked for")
	}
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || !jsonType.MatchString(kind) {
		return badDocument("is not served as application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return badDocument("is not in UTF-8")
	}
	return nil
}

// jsonType is application/json, or a type with that structure (RFC 6839).
var jsonType = regexp.MustCompile(`^application/(json|.*\+json)$`)

// freshness returns how long a response is good for (RFC 9111 sections 4.2 and
// 5.2.2), 5 minutes to 24 hours.
func freshness(h http.Header, now time.Time) time.Duration {
	age, stated, forbidden := time.Duration(0), false, false
	for directive := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			forbidden = true
		case "max-age":
			if s := seconds(value); !stated || s < age { // of two, the shorter one
				age, stated = s, true
			}
		}
	}
	if !stated {
		if line := h.Get("Expires"); line != "" {
			stated = true
			if at, err := http.ParseTime(line); err == nil { // what is no date has expired
				from := now
				if date, err := http.ParseTime(h.Get("Date")); err == nil {
					from = date
				}
				age = at.Sub(from)
			}
		}
	}
	switch {
	case forbidden:
		return minFresh
	case !stated:
		age = defaultFresh
	}
	return min(max(age-seconds(h.Get("Age")), minFresh), maxFresh)
}

// seconds reads delta-seconds, at most a year; what is no number is 0.
func seconds(s string) time.Duration {
	const year = 365 * 24 * 3600
	n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(s), `"`), 10, 64)
	if errors.Is(err, strconv.ErrRange) || err == nil && n > year {
		n = year
	} else if err != nil {
		n = 0
	}
	return time.Duration(n) * time.Second
}
