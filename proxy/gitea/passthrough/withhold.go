package passthrough

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// withhold removes Aegis's own tokens from where Gitea takes tokens: the
// Authorization header in every scheme, Basic's user and password included, and
// the query parameters token and access_token. It reports whether there was one.
// A client that sends such a token to the wrong path must not put it into Gitea's
// log, where other people read it.
func (p *pass) withhold(out *http.Request) bool {
	if p.o.Ours == nil {
		return false
	}
	found := slices.ContainsFunc(out.Header["Authorization"], p.ours)
	if found {
		out.Header.Del("Authorization")
	}
	// A percent sign may hide the word.
	if strings.Contains(out.URL.RawQuery, "token") || strings.Contains(out.URL.RawQuery, "%") {
		query, cut := p.cutQuery(out.URL.RawQuery)
		out.URL.RawQuery = query
		found = found || cut
	}
	return found
}

// withholdCookies removes the cookies of Aegis's own pages, which share the host
// with Gitea: neither Gitea, nor what reads the traffic between the two, needs to know
// who is signed in there. All others stay as they were sent.
func withholdCookies(h http.Header) {
	var kept []string
	for _, line := range h["Cookie"] {
		pairs := slices.DeleteFunc(strings.Split(line, ";"), func(pair string) bool {
			name, _, _ := strings.Cut(strings.TrimSpace(pair), "=")
			return ourCookie(name)
		})
		if rest := strings.TrimSpace(strings.Join(pairs, ";")); rest != "" {
			kept = append(kept, rest)
		}
	}
	if len(kept) == 0 {
		h.Del("Cookie")
		return
	}
	h["Cookie"] = kept
}

// ourCookie reports whether a cookie is one of Aegis's.
func ourCookie(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "__Host-"), "aegis-")
}

// ours reports whether the value of an Authorization header holds a token of
// Aegis (RFC 9110 section 11.4, RFC 7617 section 2).
func (p *pass) ours(value string) bool {
	value = strings.TrimSpace(value)
	_, credentials, found := strings.Cut(value, " ")
	if !found {
		return p.o.Ours(value)
	}
	credentials = strings.TrimSpace(credentials)
	if p.o.Ours(credentials) {
		return true
	}
	// Git sends a token as the user or as the password.
	plain, err := base64.StdEncoding.DecodeString(credentials)
	if err != nil {
		return false
	}
	user, password, _ := strings.Cut(string(plain), ":")
	return p.o.Ours(user) || p.o.Ours(password)
}

// cutQuery returns a query without the pairs that hold a token of Aegis; all
// others stay as they were written.
func (p *pass) cutQuery(query string) (rest string, cut bool) {
	pairs := strings.Split(query, "&")
	kept := slices.DeleteFunc(pairs, func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		return p.tokenPair(name, value)
	})
	return strings.Join(kept, "&"), len(kept) < len(pairs)
}

// tokenPair reports whether a pair of a query gives Gitea a token of Aegis, whatever
// way it is encoded.
func (p *pass) tokenPair(name, value string) bool {
	name, err := url.QueryUnescape(name)
	if err != nil || name != "token" && name != "access_token" {
		return false
	}
	value, err = url.QueryUnescape(value)
	return err == nil && p.o.Ours(value)
}
