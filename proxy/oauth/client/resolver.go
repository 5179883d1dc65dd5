package client

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy/kv"
)

// Options are what [NewResolver] needs.
type Options struct {
	// Config is auth.oauth.
	Config config.OAuth
	// Store keeps the documents of approved clients, below cimd/.
	Store kv.Store
	// Keys derives 32-byte keys from the key ring, the current one first. Ids made
	// by any of them stay valid.
	Keys func(label string) [][]byte
	// Lookup resolves a host for a document; nil: the system's resolver. Every
	// address that it returns must be public, or the document is refused.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that was found public; nil: a dialer that looks
	// at it once more. Tests lead it to a server of their own.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots are the authorities for a document's host; nil: the system's.
	Roots *x509.CertPool
	// Limit bounds the fetch of a document; 0: 5 s.
	Limit time.Duration
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}

// Resolver finds clients. Safe for concurrent use.
type Resolver struct {
	o      Options
	static map[string]*Client
	ids    *issuer
	docs   *documents // nil: switched off
}

// NewResolver returns the resolver for o. The error names the key of the
// configuration that is wrong.
func NewResolver(o Options) (*Resolver, error) {
	if o.Store == nil || o.Keys == nil {
		return nil, errors.New("client: a store and keys are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := checkConfig(o.Config); err != nil {
		return nil, err
	}
	ids, err := newIssuer(o.Keys)
	if err != nil {
		return nil, err
	}
	r := &Resolver{o: o, ids: ids, static: make(map[string]*Client)}
	for i, c := range o.Config.Clients {
		known, err := staticClient(c)
		if err != nil {
			return nil, fmt.Errorf("auth.oauth.clients[%d].%w", i, err)
		}
		if r.static[c.ID] != nil {
			return nil, fmt.Errorf("auth.oauth.clients[%d].id: another client has it; give each its own", i)
		}
		r.static[c.ID] = known
	}
	if o.Config.Documents.Enabled {
		r.docs = newDocuments(o)
	}
	return r, nil
}

// checkConfig refuses rules that say something else than they seem to.
func checkConfig(c config.OAuth) error {
	for i, uri := range c.PrivateRedirects {
		r, err := parseRedirect(uri)
		if err == nil && r.host != "" {
			err = errors.New("is not of a scheme of an application's own; https and loopback URIs need no entry")
		}
		if err != nil {
			return fmt.Errorf("auth.oauth.private_redirects[%d]: the URI %w", i, err)
		}
	}
	if err := checkDomains("allow_domains", c.Documents.AllowDomains); err != nil {
		return err
	}
	return checkDomains("deny_domains", c.Documents.DenyDomains)
}

// checkDomains refuses entries that could match no host, such as a wild card.
func checkDomains(key string, list []string) error {
	bad := func(d string) bool { return !isDomain(strings.Trim(strings.ToLower(d), ".")) }
	if i := slices.IndexFunc(list, bad); i >= 0 {
		return fmt.Errorf("auth.oauth.documents.%s[%d]: is no domain; write one such as claude.ai", key, i)
	}
	return nil
}

// staticClient returns a client of the configuration, which may use any scheme of an
// application.
func staticClient(c config.OAuthClient) (*Client, error) {
	if c.ID == "" {
		return nil, errors.New("id: is empty; give the client an id")
	}
	if len(c.RedirectURIs) == 0 {
		return nil, errors.New("redirect_uris: is empty; list where the client may be sent back to")
	}
	for i, uri := range c.RedirectURIs {
		if _, err := parseRedirect(uri); err != nil {
			return nil, fmt.Errorf("redirect_uris[%d]: the URI %w", i, err)
		}
	}
	known := &Client{
		ID: c.ID, Name: nameOf(c.Name, c.RedirectURIs), Kind: Static, Verified: true,
		RedirectURIs: c.RedirectURIs, AuthMethod: AuthNone, secret: c.Secret,
	}
	if !c.Secret.IsZero() {
		known.AuthMethod = AuthBasic
	}
	return known.finish(), nil
}

// Client returns the client with this id, for a person to approve: what is said
// of it is fresh. The error is an [*Error].
func (r *Resolver) Client(ctx context.Context, id string) (*Client, error) {
	return r.find(ctx, id, false)
}

// Returning returns a client that a person has approved before, for its token
// requests: while the host of its document is in trouble, what [Resolver.Keep]
// kept is good enough. The error is an [*Error].
func (r *Resolver) Returning(ctx context.Context, id string) (*Client, error) {
	return r.find(ctx, id, true)
}

const notKnown = "this server does not know the client; remove the server in the client and add it again"

// find decides by the form of an id which kind of client it can be.
func (r *Resolver) find(ctx context.Context, id string, stale bool) (*Client, error) {
	if c := r.static[id]; c != nil {
		return c, nil
	}
	switch {
	case strings.HasPrefix(id, idPrefix):
		return r.registered(id)
	case !strings.HasPrefix(id, documentScheme):
		return nil, unknown(notKnown)
	case r.docs == nil:
		return nil, unknown("this server takes no clients with metadata documents; " +
			"register the client, or ask the operator for a client_id")
	}
	return r.docs.find(ctx, id, stale)
}

// registered returns the client that id describes, as far as the rules of today
// allow it.
func (r *Resolver) registered(id string) (*Client, error) {
	reg, secret, err := r.ids.open(id)
	if err != nil {
		e := unknown(notKnown)
		e.Err = err
		return nil, e
	}
	uris := redirectable(reg.uris, r.o.Config.PrivateRedirects)
	if len(uris) == 0 {
		return nil, refused("this server no longer allows any redirect URI of the client; ask its operator", nil)
	}
	c := &Client{
		ID: id, Name: nameOf(reg.name, uris), Kind: Registered, RedirectURIs: uris,
		AuthMethod: reg.method, secret: secret,
	}
	return c.finish(), nil
}

// Keep remembers that a person approved the client, so that an outage of its
// document's host does not end what was granted. It does nothing for clients of
// other kinds. An error is trouble of the store; the grant is good without it.
func (r *Resolver) Keep(ctx context.Context, c *Client) error {
	if c.Kind != Document || r.docs == nil {
		return nil
	}
	fresh := r.o.Now()
	if have, found := r.docs.cache.Get(c.ID); found && have.client != nil {
		fresh = have.until
	}
	return r.docs.write(ctx, c, fresh)
}
