package gitea

import (
	"html"
	"net/netip"
	"regexp"
	"strings"
	"unicode"

	"aegis/proxy"
)

const (
	// maxMessage bounds Gitea's message in an error, in characters. It is cut to
	// its final length after masking; see [proxy.Error.Shorten].
	maxMessage = 4000
	// maxScrub bounds what is searched for things to remove, in bytes.
	maxScrub = 8 << 10
)

// What takes the place of what is removed.
const (
	goneSecret = "[REDACTED]"
	goneHost   = "[host]"
	gonePath   = "[path]"
)

// The shapes that must not leave in an error message.
var (
	urlShape = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]{1,15})://([^\s/?#"'<>)\]]*)`)
	hostPort = regexp.MustCompile(`(?i)(?:\[[0-9a-f:.%]+\]|` +
		`\b(?:[a-z][a-z0-9_.-]*|(?:[0-9]{1,3}\.){3}[0-9]{1,3})):[0-9]{2,5}\b`)
	ipv4       = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`)
	ipv6       = regexp.MustCompile(`(?i)[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:%[a-z0-9]+)?`)
	dottedName = regexp.MustCompile(`(?i)\b(?:localhost|(?:[a-z0-9-]+\.)+[a-z][a-z-]*)\b`)
	localName  = regexp.MustCompile(`(?i)^localhost$|` +
		`\.(?:local|localdomain|internal|intranet|lan|corp|home|svc|localhost)$`)
	unixPath = regexp.MustCompile(`(^|[\s"'(=:,\[])/(?:app|bin|data|dev|etc|go|home|lib|lib64|media|mnt|opt|` +
		`private|proc|root|run|sbin|source|src|srv|sys|tmp|usr|var|workspace|Users|Volumes)(?:/[^\s"'():,\]]*)+`)
	windowsPath = regexp.MustCompile(`\b[A-Za-z]:\\[^\s"'(),]*`)
	sourceLine  = regexp.MustCompile(`[A-Za-z0-9_./@-]*\.go:[0-9]+`)
	internals   = regexp.MustCompile(`(?i)goroutine \d|\.go:\d|runtime error|\bpanic\b|stack ?trace|` +
		`\b(?:select|insert|update|delete|alter|create|drop)\b.{0,200}\b(?:from|into|set|where|table|values|index)\b|` +
		`\bsqlite|\bpq: |\bmysql\b|\bxorm\b|\berror 1\d{3}\b|\bno such table\b|dial (?:tcp|udp|unix)|0x[0-9a-f]{8}`)
	markupBlock = regexp.MustCompile(`(?is)<(?:script|style)\b.*?(?:</(?:script|style)\s*>|$)|<!--.*?(?:-->|$)`)
	markupTag   = regexp.MustCompile(`(?s)<[^>]*(?:>|$)`)
	titleTag    = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title`)
)

// showsInternals reports whether a server's message is about its own insides: a stack
// trace, a statement of SQL, an address that it could not reach. Such a text is of use to an
// attacker alone, and Gitea's log has it.
func showsInternals(text string) bool {
	return internals.MatchString(text[:min(len(text), maxErrorBody)])
}

// scrubber makes the text of a stranger fit to leave: one line of visible characters,
// without markup, without anything that looks like a credential, an address inside
// somebody's network or a path on somebody's disk. Gitea quotes in its errors what git, its
// database or a remote server said, and a model may show that to anybody.
type scrubber struct {
	host   string // Gitea's own host, with port
	secret string // the credential that was shown
	// credentials is Limits.Scrub.
	credentials func([]byte) []byte
}

// scrub returns at most maxMessage characters of text.
func (s scrubber) scrub(text string) string {
	if s.secret != "" {
		text = strings.ReplaceAll(text, s.secret, goneSecret)
	}
	// One line first: an expression must not be got around by a line end or an
	// invisible character.
	text = clean(wholeWords(text))
	if strings.ContainsRune(text, '<') {
		text = clean(stripMarkup(text))
	}
	text = string(s.credentials([]byte(text)))
	// Paths before hosts, as file names look like names of hosts.
	text = windowsPath.ReplaceAllString(text, gonePath)
	text = sourceLine.ReplaceAllString(text, gonePath)
	text = unixPath.ReplaceAllString(text, "${1}"+gonePath)
	return proxy.Shorten(s.scrubHosts(text), maxMessage)
}

// wholeWords bounds text to maxScrub bytes. The word that the bound cuts goes
// with it, or its last part when it is longer than any secret: masking would not
// know half of one.
func wholeWords(text string) string {
	const longest = 1 << 10
	if len(text) <= maxScrub {
		return text
	}
	kept := text[:maxScrub-longest]
	if i := strings.LastIndexAny(text[len(kept):maxScrub], " \t\r\n"); i >= 0 {
		kept = text[:len(kept)+i]
	}
	return kept
}

// scrubHosts removes addresses: every private one, every name with a port, and Gitea's own.
// A public name without a port stays: it is what a caller asked a migration or a mirror
// for. To hide too much does no harm here: an error without a host still says what went
// wrong.
func (s scrubber) scrubHosts(text string) string {
	text = urlShape.ReplaceAllStringFunc(text, func(m string) string {
		scheme, authority, _ := strings.Cut(m, "://")
		// User and password of a URL, whatever is in them.
		if _, host, found := strings.Cut(authority, "@"); found {
			authority = host
		}
		if s.isInternal(authority) {
			authority = goneHost
		}
		return scheme + "://" + authority
	})
	text = hostPort.ReplaceAllString(text, goneHost)
	// A shorter name would be found inside of words.
	name, _, _ := strings.Cut(s.host, ":")
	if name = strings.ToValidUTF8(name, ""); len(name) >= 4 {
		// Made anew for each message, as errors are rare.
		own := regexp.MustCompile("(?i)" + regexp.QuoteMeta(name))
		text = own.ReplaceAllLiteralString(text, goneHost)
	}
	text = ipv4.ReplaceAllStringFunc(text, hidePrivate)
	text = ipv6.ReplaceAllStringFunc(text, hidePrivate)
	return dottedName.ReplaceAllStringFunc(text, func(name string) string {
		if localName.MatchString(name) {
			return goneHost
		}
		return name
	})
}

// isInternal reports whether the authority of a URL only means something inside a network.
func (s scrubber) isInternal(authority string) bool {
	if strings.EqualFold(authority, s.host) || strings.ContainsAny(authority, ":[") ||
		localName.MatchString(authority) {
		return true
	}
	if _, err := netip.ParseAddr(authority); err == nil {
		return hidePrivate(authority) == goneHost
	}
	return !strings.Contains(authority, ".")
}

// hidePrivate returns addr, or goneHost when it is an address that only means something
// inside a network. Public ones stay, as they are what a caller named in a migration or a
// hook.
func hidePrivate(addr string) string {
	ip, err := netip.ParseAddr(strings.TrimSpace(addr))
	if err != nil {
		return addr
	}
	// ::ffff:10.0.0.1 is as private as 10.0.0.1.
	ip = ip.Unmap()
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10) // RFC 6598
	if ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() ||
		ip.Is4() && shared.Contains(ip) {
		return goneHost
	}
	return addr
}

// pageTitle returns the title of an HTML page, without markup.
func pageTitle(page string) string {
	m := titleTag.FindStringSubmatch(page[:min(len(page), maxErrorBody)])
	if m == nil {
		return ""
	}
	return html.UnescapeString(stripMarkup(m[1]))
}

// stripMarkup removes tags, scripts and comments. Scripts and comments go with what is in
// them: no reader of the page would have seen that.
func stripMarkup(text string) string {
	return markupTag.ReplaceAllString(markupBlock.ReplaceAllString(text, " "), " ")
}

// clean makes text one line of valid UTF-8 without control and format characters, runs of
// white space folded to one space. Format characters could turn the direction of what
// follows, or hide words from people but not from models.
func clean(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			space = true
			continue
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r):
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}
