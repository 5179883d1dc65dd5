package client

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxRedirect bounds the bytes of a redirect URI.
const maxRedirect = 2048

// redirect is a redirect URI, taken apart. It is read by rules narrower than
// those of any URL parser, so that whatever passes means the same to all of
// them, browsers included.
type redirect struct {
	scheme   string
	host     string // as written; with brackets for IPv6; "" for schemes of applications
	port     string // "" when there is none
	rest     string // path and query, as written
	loopback bool   // http to the person's own machine
}

// What is wrong with a redirect URI. The texts follow "the URI" and do not quote
// it.
var (
	errLong      = errors.New("is longer than 2048 characters")
	errChars     = errors.New("has characters that a URI cannot hold; percent-encode them")
	errFragment  = errors.New("has a fragment; end it before the #")
	errScheme    = errors.New("does not begin with a scheme in lower case and ://, such as https://")
	errDangerous = errors.New("has a scheme that browsers run or open themselves; " +
		"use https, or http on a loopback host")
	errPrivate = errors.New("has a scheme of its own that this server does not allow; " +
		"use https, http on a loopback host, or ask the operator to add it to auth.oauth.private_redirects")
	errUser  = errors.New("holds a user name; remove the part before @")
	errHost  = errors.New("has no valid host in lower case; write a domain name, 127.0.0.1 or [::1]")
	errPort  = errors.New("has no valid port after the colon; 1 to 65535")
	errPath  = errors.New("has dot segments in its path, or no / before it")
	errPlain = errors.New("is plain http to a host that is not loopback; use https")
)

// Redirectable reports why uri can never be registered, nil when it can: https
// to any host; http to localhost, 127.0.0.0/8 or [::1], with any port or none;
// or one of private, byte for byte. A fragment, a user name, a dot segment, an
// upper-case scheme or host, and an address in any but its usual spelling are
// refused. The error does not quote uri.
func Redirectable(uri string, private []string) error {
	r, err := parseRedirect(uri)
	if err != nil {
		return err
	}
	if r.host == "" && !slices.Contains(private, uri) {
		return errPrivate
	}
	return nil
}

// redirectable returns the URIs that can be registered under the rules of today.
func redirectable(uris, private []string) []string {
	return slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return Redirectable(uri, private) != nil })
}

// sameRedirect reports whether got may be used where have is registered.
func sameRedirect(have, got string) bool {
	r, err := parseRedirect(have)
	if err != nil || have == got {
		return err == nil
	}
	g, err := parseRedirect(got)
	return err == nil && r.loopback && g.loopback && r.host == g.host && r.rest == g.rest
}

// RedirectHost returns what a person should see of a redirect URI that passed
// [Client.Redirect]: the host without port, or the scheme of an application,
// such as "cursor:". It is ASCII.
func RedirectHost(uri string) string {
	r, err := parseRedirect(uri)
	switch {
	case err != nil:
		return ""
	case r.host == "":
		return r.scheme + ":"
	}
	return r.host
}

// parseRedirect takes a redirect URI apart. What it refuses is refused of the configuration too.
func parseRedirect(uri string) (redirect, error) {
	switch {
	case len(uri) > maxRedirect:
		return redirect{}, errLong
	case strings.Contains(uri, "#"):
		return redirect{}, errFragment
	case !isURIText(uri):
		return redirect{}, errChars
	}
	scheme, after, found := strings.Cut(uri, ":")
	if !found || !isScheme(scheme) {
		return redirect{}, errScheme
	}
	if slices.Contains(dangerous, scheme) {
		return redirect{}, errDangerous
	}
	if scheme != "http" && scheme != "https" {
		if !strings.HasPrefix(after, "/") { // scheme:opaque is how mailto: and its like look
			return redirect{}, errScheme
		}
		return redirect{scheme: scheme, rest: after}, nil
	}
	authority, found := strings.CutPrefix(after, "//")
	if !found {
		return redirect{}, errScheme
	}
	return parseWeb(scheme, authority)
}

// dangerous are schemes that a browser handles itself, or that can carry script
// or name local files.
var dangerous = []string{
	"about", "blob", "chrome", "chrome-extension", "content", "data", "file", "filesystem", "ftp", "ftps",
	"intent", "jar", "javascript", "livescript", "mailto", "moz-extension", "ms-appx", "resource", "sms", "tel",
	"urn", "vbscript", "view-source", "ws", "wss",
}

// parseWeb reads what follows http:// or https://.
func parseWeb(scheme, s string) (redirect, error) {
	end := strings.IndexAny(s, "/?")
	if end < 0 {
		end = len(s)
	}
	authority, rest := s[:end], s[end:]
	if strings.Contains(authority, "@") {
		return redirect{}, errUser
	}
	host, port, err := splitHost(authority)
	if err != nil {
		return redirect{}, err
	}
	if path, _, _ := strings.Cut(rest, "?"); path == "" && rest != "" || hasDots(path) {
		return redirect{}, errPath
	}
	r := redirect{scheme: scheme, host: host, port: port, rest: rest}
	r.loopback = scheme == "http" && isLoopback(host)
	if scheme == "http" && !r.loopback {
		return redirect{}, errPlain
	}
	return r, nil
}

// splitHost takes host and port apart and checks both.
func splitHost(authority string) (host, port string, err error) {
	host, colon := authority, false
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port, colon = authority[:i], authority[i+1:], true
	}
	switch {
	case !isHost(host):
		return "", "", errHost
	case colon && !isPort(port):
		return "", "", errPort
	}
	return host, port, nil
}

// isHost accepts a domain name in lower case, and an address in the one spelling
// that all parsers read alike.
func isHost(host string) bool {
	if inner, found := strings.CutPrefix(host, "["); found {
		inner, found = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return found && err == nil && a.Is6() && !a.Is4In6() && a.Zone() == "" && a.String() == inner
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Is4() // netip reads dotted quads without leading zeros, and nothing else
	}
	return isDomain(host)
}

// isDomain accepts labels of a-z, 0-9, - and _, the last of which is no number:
// browsers read names that end in a number as an IPv4 address, and 127.1 or
// 0x7f.1 as 127.0.0.1.
func isDomain(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.Trim(label, alphanumeric+"-_") != "" {
			return false
		}
		last = label
	}
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// isLoopback reports whether a host is the person's own machine (RFC 8252 section 7.3).
func isLoopback(host string) bool {
	if host == "localhost" || host == "[::1]" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4() && a.IsLoopback()
}

// isPort accepts 1 to 65535 without leading zeros.
func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil && s[0] != '0'
}

// isScheme accepts a scheme of RFC 3986 in lower case.
func isScheme(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, alphanumeric+"+.-") == ""
}

// alphanumeric are the letters and digits of hosts and schemes, which come in lower
// case.
const alphanumeric = "abcdefghijklmnopqrstuvwxyz0123456789"

// isURIText reports whether s has only the characters of RFC 3986 section 2, and
// each % before two hex digits.
func isURIText(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) {
				return false
			}
			if _, err := hex.DecodeString(s[i+1 : i+3]); err != nil {
				return false
			}
			i += 2
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("-._~:/?#[]@!$&'()*+,;=", c) < 0:
			return false
		}
	}
	return true
}

// hasDots reports whether a path has a segment . or .., percent-encoded or not,
// which a browser would resolve.
func hasDots(path string) bool {
	segments := strings.Split(strings.ReplaceAll(strings.ToLower(path), "%2e", "."), "/")
	return slices.Contains(segments, ".") || slices.Contains(segments, "..")
}
