package oauth

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
)

//go:embed pages/style.css
var style string

// pagePolicy is the Content-Security-Policy of every page: no script, no image, no
// frame, nothing from anywhere else. Forms go to this host; what follows them is a
// page of its own, as browsers apply form-action to the redirects of a form too.
func pagePolicy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// day and moment are in UTC and say so where it matters: the zone of the person is not
// known without a script.
func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// view is one page.
type view struct {
	Title string
	// Refresh is where the page goes on by itself; "": it stays.
	Refresh address
	// Wide pages hold lists.
	Wide bool
	// Body is its content.
	Body g.Node
}

// notice is a page that says what happened and what to do. As an error it is a
// failure of which people read.
type notice struct {
	status int
	Title  string
	Text   []string
	// Hint is said apart, smaller.
	Hint string
	// Link leads on; Help leads to where the person can do something about it.
	Link, Help *link
	// Refresh follows Link without a click.
	Refresh bool
	// cause is for the log; may be nil.
	cause error
}

// link is where a page leads.
type link struct {
	URL  address
	Text string
}

// newNotice returns a notice with one paragraph for each text.
func newNotice(status int, title string, text ...string) *notice {
	return &notice{status: status, Title: title, Text: text}
}

// leading is the notice with where it leads on: at once, if it says refresh.
func (n *notice) leading(to, text string, refresh bool) *notice {
	n.Link, n.Refresh = &link{URL: address(to), Text: text}, refresh
	return n
}

func (n *notice) Error() string { return n.Title }

func (n *notice) Unwrap() error { return n.cause }

// page makes a page for people of h. It is never framed or kept, no other site's
// script reads it, and its forms work from itself alone.
func (s *Server) page(h func(http.ResponseWriter, *http.Request) error, methods ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		closeOrigins(w.Header())
		err := s.admitPage(r, methods)
		if err == nil {
			err = h(w, r)
		} else if !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
		}
		if err != nil {
			s.problem(w, r, err)
		}
	})
}

// admitPage refuses requests that no page of ours leads to, before anything is done for
// them.
func (s *Server) admitPage(r *http.Request, methods []string) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if !slices.Contains(methods, method) {
		return newNotice(http.StatusMethodNotAllowed, "This address is part of signing in",
			"It does not work by itself. Start in your MCP client; it opens the right page.")
	}
	if method == http.MethodPost && !s.sameOrigin(r) {
		return newNotice(http.StatusForbidden, "This form came from somewhere else",
			"Aegis takes only forms from its own pages. Nothing was changed. Start again in your MCP client.")
	}
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "iframe", "frame", "fencedframe", "object", "embed":
		return newNotice(http.StatusForbidden, "This page does not work inside another",
			"Open it in a window of its own.")
	}
	return tooMany(s.rates.browse.take(addrKey(r)))
}

// sameOrigin reports whether a form comes from our own pages. Browsers say so in
// Sec-Fetch-Site (the Fetch Metadata standard); those that do not send an Origin,
// which is "null" from our pages as they send no referrer. A form that passes still
// needs the form's token and the cookie that it belongs to.
func (s *Server) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if len(r.Header.Values("Origin")) > 1 || origin != "" && origin != "null" && !strings.EqualFold(origin, s.origin) {
		return false
	}
	site := r.Header.Values("Sec-Fetch-Site")
	return len(site) == 0 || len(site) == 1 && site[0] == "same-origin"
}

// problem shows an error as a page: the one writer of failures that people read. What is
// ours is 503, and its request id is shown, so that the person can name it to the operator.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	x := requestInfo(r)
	n, ok := errors.AsType[*notice](err)
	f, failed := errors.AsType[*failure](err)
	switch {
	case ok:
	case failed && f.status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", seconds(f.retry))
		n = newNotice(f.status, "Too many requests",
			"Many requests came from your network. Wait a moment and load this page again.")
	case failed && f.status < http.StatusInternalServerError:
		n = newNotice(f.status, "This request cannot be read", "Start again in your MCP client.")
		n.cause = f.cause
	default:
		w.Header().Set("Retry-After", seconds(retryStore))
		n = newNotice(http.StatusServiceUnavailable, "Aegis cannot do this at the moment",
			"Nothing was changed. Wait a moment and try again; if it stays so, tell whoever runs this server.")
		n.cause = err
	}
	if n.cause != nil {
		s.o.Log.Warn().Str("request_id", x.RequestID).Str("addr", x.Addr).Int("status", n.status).
			Err(n.cause).Msg("oauth page failed")
	}
	if x.RequestID != "" && n.status >= http.StatusInternalServerError {
		n.Hint = "Request " + x.RequestID
	}
	s.show(w, r, n)
}

// show renders a notice.
func (s *Server) show(w http.ResponseWriter, r *http.Request, n *notice) {
	v := view{Title: n.Title, Body: n.markup()}
	if n.Refresh && n.Link != nil {
		v.Refresh = n.Link.URL
	}
	s.render(w, r, n.status, v)
}

// render writes a page. It is made whole before a byte is sent.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, v view) {
	var buf bytes.Buffer
	_ = document(style, v).Render(&buf) // writing to memory does not fail
	s.pageHeaders(w.Header())
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // it fails when the client has gone
}

// pageHeaders are those of every page and redirect. Cross-Origin-Opener-Policy is
// left out on purpose: clients that open this page in a window of theirs wait for
// it to come back.
func (s *Server) pageHeaders(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", s.policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
}

// redirect sends the browser to an address that was checked. It must not answer a
// form.
func (s *Server) redirect(w http.ResponseWriter, to string) { s.send(w, http.StatusFound, to) }

func (s *Server) send(w http.ResponseWriter, status int, to string) {
	s.pageHeaders(w.Header())
	w.Header().Set("Location", to)
	w.WriteHeader(status)
}

// back returns the address that a client gets its answer at: its redirect URI
// with the parameters, its state as it was sent, and the issuer (RFC 9207) when
// that is advertised. The URI's own query stays as it is.
func (s *Server) back(a asked, params ...string) string {
	b, sep := a.RedirectURI, "?"
	if strings.Contains(a.RedirectURI, "?") {
		sep = "&"
	}
	if a.State != nil {
		params = append(params, "state", string(a.State))
	}
	if s.o.Config.AdvertiseIssuer {
		params = append(params, "iss", s.issuer)
	}
	for i := 0; i+1 < len(params); i += 2 {
		b += sep + params[i] + "=" + escape(params[i+1])
		sep = "&"
	}
	return b
}

// escape percent-encodes a value, blanks too: some clients do not read "+" as one.
func escape(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// opensApp reports whether a redirect URI opens a program by a scheme of its own,
// which leaves the browser's tab as it is.
func opensApp(uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	return !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http")
}
