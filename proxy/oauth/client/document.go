package client

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	documentScheme = "https://"
	// maxURL bounds the bytes of a document's URL.
	maxURL = 2048
	badURL = "the client_id is no URL of a metadata document; it must be https, with a domain name and a path, " +
		"without port, user, query, fragment or dot segments"
)

var errURL = errors.New("the URL of the document breaks a rule")

// documentHost returns the host of a document's URL. It accepts what the draft
// on client id metadata documents allows (section 3), less what only an attacker
// needs: a query, a port, an address or a single word for a host, and anything
// but lower-case ASCII in the host, so that a name in another script is seen as
// xn--….
func documentHost(url string) (string, error) {
	after, found := strings.CutPrefix(url, documentScheme)
	if !found || len(url) > maxURL || !isURIText(url) || strings.ContainsAny(url, "?#@[]") {
		return "", errURL
	}
	host, path, _ := strings.Cut(after, "/")
	if !isDomain(host) || !strings.Contains(host, ".") || path == "" || hasDots(path) {
		return "", errURL
	}
	return host, nil
}

// readDocument makes the client of the document at url. Its error is an [*Error].
func readDocument(url string, body []byte, private []string) (*Client, error) {
	host, err := documentHost(url)
	if err != nil {
		return nil, refused(badURL, err)
	}
	fields, ok := object(body)
	switch {
	case !ok || !utf8.Valid(body):
		return nil, badDocument("is not a JSON object")
	case text(fields["client_id"]) != url:
		return nil, badDocument("has another client_id than its URL")
	case fields["client_secret"] != nil:
		return nil, badDocument("holds a client_secret, which everyone can read")
	}
	m, p := readMetadata(fields, []string{AuthNone}, private)
	if p != nil {
		return nil, badDocument("cannot be used: " + p.text)
	}
	name := CleanName(m.name)
	if name == "" {
		name = host[:min(len(host), maxName)]
	}
	return described(url, host, name, m.usable), nil
}

// described returns the client of the document at url.
func described(url, host, name string, uris []string) *Client {
	c := &Client{
		ID: url, Name: name, Kind: Document, Verified: true, RedirectURIs: uris, AuthMethod: AuthNone, Host: host,
	}
	return c.finish()
}

// permit reports whether documents may come from host. Each domain of the rules means itself
// and all below it.
func (d *documents) permit(host string) bool {
	rules := d.o.Config.Documents
	return !below(host, rules.DenyDomains) && (len(rules.AllowDomains) == 0 || below(host, rules.AllowDomains))
}

func below(host string, list []string) bool {
	return slices.ContainsFunc(list, func(d string) bool {
		d = strings.Trim(strings.ToLower(d), ".")
		return host == d || strings.HasSuffix(host, "."+d)
	})
}
