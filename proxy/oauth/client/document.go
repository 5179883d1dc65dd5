package client

import (
	"errors"
	"strings"
	"unicode/utf8"
)

const (
	documentScheme = "https://"
	// maxURL bounds the bytes of a document's URL.
	maxURL = 2048
	badURL = "the client_id is no URL of a metadata document; it must be https, with a domain name and a path, without port, user, query, fragment or dot segments"
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
	if !ok || !utf8.Valid(body) {
		return nil, refused("the metadata document of the client is not a JSON object", nil)
	}
	if text(fields["client_id"]) != url {
		return nil, refused("the metadata document of the client has another client_id than its URL", nil)
	}
	if fields["client_secret"] != nil {
		return nil, refused("the metadata document of the client holds a client_secret, which everyone can read", nil)
	}
	m, p := readMetadata(fields, []string{AuthNone}, private)
	if p != nil {
		return nil, refused("the metadata document of the client cannot be used: "+p.text, nil)
	}
	name := cleanName(m.name)
	if name == "" {
		name = host[:min(len(host), maxName)]
	}
	c := &Client{ID: url, Name: name, Kind: Document, Verified: true, RedirectURIs: m.usable, AuthMethod: AuthNone, Host: host}
	return c.finish(), nil
}

// domains are rules about hosts: each stands for itself and all below it.
type domains struct{ allow, deny []string }

// permit reports whether documents may come from host.
func (d domains) permit(host string) bool {
	return !below(host, d.deny) && (len(d.allow) == 0 || below(host, d.allow))
}

func below(host string, list []string) bool {
	for _, d := range list {
		d = strings.Trim(strings.ToLower(d), ".")
		if host == d || strings.HasSuffix(host, "."+d) {
			return true
		}
	}
	return false
}
