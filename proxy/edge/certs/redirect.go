package certs

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"

	"aegis/proxy"
)

// challengePath is where ACME HTTP challenges are (RFC 8555 section 8.3).
const challengePath = "/.well-known/acme-challenge/"

// Plain returns the handler of the plain listener. It answers challenges, sends
// pages to the https address, and refuses what could carry a secret: a client
// that is sent on with its token would send it in plain text every time.
func (t *TLS) Plain() http.Handler {
	base := "https://" + t.opts.Base.Host
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Connection", "close") // the client is to come back on the other port
		switch {
		case strings.HasPrefix(r.URL.Path, challengePath):
			if !t.source.challenge(w, r) {
				plainError(w, http.StatusNotFound, proxy.KindNotFound, "no such challenge is pending")
			}
		case r.Header.Get("Authorization") != "" || r.Method != http.MethodGet && r.Method != http.MethodHead:
			plainError(w, http.StatusForbidden, proxy.KindForbidden,
				"this port is not encrypted; use "+base+" and consider the token sent here as seen by others")
		default:
			h.Set("Location", base+target(r.URL))
			w.WriteHeader(http.StatusPermanentRedirect)
		}
	})
}

// target returns the path and query of a URL, and nothing that could lead to
// another host.
func target(u *url.URL) string {
	path := "/" + strings.TrimLeft(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		path += "?" + strings.ReplaceAll(u.RawQuery, "#", "%23") // no fragment in a request
	}
	return path
}

// plainError writes an error in the form of the other listener. The edge is not before this
// one, so the request gets its id here.
func plainError(w http.ResponseWriter, status int, kind proxy.Kind, message string) {
	x := &proxy.RequestInfo{RequestID: rand.Text()}
	w.Header().Set("X-Request-Id", x.RequestID)
	proxy.WriteError(w, x, status, proxy.NewError(kind, message, nil))
}
