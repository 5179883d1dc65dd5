package oauth

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/lru"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/scope"
	"aegis/proxy/oauth/upstream"
)

// Grants keeps what people allowed clients. [*grant.Grants] is one.
type Grants interface {
	IssueCode(ctx context.Context, c grant.Code) (string, error)
	Redeem(ctx context.Context, code string, r grant.Redeem) (*grant.Tokens, error)
	Refresh(ctx context.Context, token string, r grant.Refresh) (*grant.Tokens, error)
	Verify(ctx context.Context, access string) (*grant.Grant, error)
	Revoke(ctx context.Context, token, clientID string) (revoked bool, err error)
	Get(ctx context.Context, id string) (grant.Grant, error)
	List(ctx context.Context, userID int64) ([]grant.Grant, error)
	All(ctx context.Context) iter.Seq2[grant.Grant, error]
	End(ctx context.Context, id string) error
	EndUser(ctx context.Context, userID int64) (n int, err error)
}

// Clients knows the OAuth clients. [*client.Resolver] is one.
type Clients interface {
	// Client finds a client for a person to approve; Returning finds one that was
	// approved, for its token requests; Keep remembers that it was.
	Client(ctx context.Context, id string) (*client.Client, error)
	Returning(ctx context.Context, id string) (*client.Client, error)
	Keep(ctx context.Context, c *client.Client) error
	Register(ctx context.Context, body []byte) (status int, answer []byte)
}

// Gitea signs people in and keeps their credentials. [*upstream.Gitea] is one.
type Gitea interface {
	LoginURL(state, verifier string) string
	Exchange(ctx context.Context, code, verifier string) (*upstream.User, error)
	Credential(ctx context.Context, userID int64) (upstream.Credential, error)
	State(ctx context.Context, userID int64) (ok bool, err error)
	Forget(ctx context.Context, userID int64) error
	Member(ctx context.Context, userID int64, p config.People) (bool, error)
	// Rejected renews a credential that Gitea refused.
	Rejected(ctx context.Context, userID int64, used proxy.Credential) error
	RevokeURL() string
}

// Codes knows the calls that wait for a person's confirmation.
type Codes interface {
	// Pending returns the codes of a user's waiting calls, oldest first.
	Pending(ctx context.Context, userID int64) ([]PendingCode, error)
}

// PendingCode confirms one call that waits.
type PendingCode struct {
	// Code is what the person gives to the agent.
	Code string
	// Tool is the tool's name, Summary says in words what it would do.
	Tool, Summary string
	// Expires is when the code stops working.
	Expires time.Time
}

// Event is something that an auditor wants to know. It holds no secret.
type Event struct {
	// Name is "login" or "consent", as the audit log calls them.
	Name string
	// Reason says in words what happened.
	Reason string
	// UserID and Login are whose event it is; 0 and "" before anybody signed in.
	UserID int64
	Login  string
	// ClientID and ClientName are the client's; "" when there is none.
	ClientID, ClientName string
	// Scopes are what was allowed.
	Scopes []string
}

// Options make a [Server]. Codes, Event and Now may be nil; all else is needed.
type Options struct {
	Config config.OAuth
	// Base is the public address, without query and fragment. It is the issuer.
	Base     *url.URL
	Grants   Grants
	Clients  Clients
	Upstream Gitea
	// Store keeps flows and sessions; it must seal what it keeps.
	Store kv.Store
	// Keys derives the keys of a purpose from the key ring, the current one first.
	Keys func(label string) [][]byte
	// Resources are the URLs of the MCP endpoints, the default one first. All are
	// below Base.
	Resources []string
	Codes     Codes
	// Admit says, at the end of a sign-in, whether a person may use one of Resources;
	// its errors are [*proxy.Error]s, of kind forbidden when not. Each call is decided
	// anew, so all else lets the sign-in go on. nil: everybody may.
	Admit func(ctx context.Context, resource string, id *proxy.Identity) error
	// Event hears of sign-ins and consents. It must not block.
	Event func(*proxy.RequestInfo, Event)
	Log   zerolog.Logger
	Now   func() time.Time
	// Outage is how long a person's last known Gitea credential is used while the
	// store cannot be reached; 0: not at all.
	Outage time.Duration
}

// Server is the HTTP side of the authorization server. It is safe for concurrent
// use. Requests must carry a [proxy.RequestInfo].
type Server struct {
	o        Options
	issuer   string    // Base without a trailing slash
	origin   string    // scheme://host[:port] of Base
	prefix   string    // path of Base, "" or "/…" without a trailing slash
	baseline []string  // scopes of a client that asks for none
	allowed  scope.Set // most that a client can get
	secure   bool      // Base is https
	keys     keys
	routes   map[string]http.Handler
	policy   string // Content-Security-Policy of the pages
	rates    *rates
	// unused are the times since when people with a stored credential have had no grant,
	// by their number. A sign-in stores the credential a moment before its code becomes a
	// grant, so one look is not enough to call a credential unused.
	unused sync.Map
	// recent are the credentials of a moment ago, by the person's number.
	recent *lru.Cache[int64, recentCredential]
}

// New returns the authorization server that o describes.
func New(o Options) (*Server, error) {
	if err := complete(o); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Event == nil {
		o.Event = func(*proxy.RequestInfo, Event) {}
	}
	s := &Server{o: o, secure: o.Base.Scheme == "https"}
	s.prefix = strings.TrimRight(o.Base.Path, "/")
	s.origin = o.Base.Scheme + "://" + o.Base.Host
	s.issuer = s.origin + strings.TrimRight(o.Base.EscapedPath(), "/")
	s.allowed = scope.Of(o.Config.Scopes)
	if s.baseline = scope.Within(o.Config.DefaultScopes, s.allowed); len(s.baseline) == 0 {
		s.baseline = scope.Within(o.Config.Scopes, s.allowed)
	}
	if len(s.baseline) == 0 {
		return nil, errors.New("auth.oauth.scopes names no scope; name at least one, such as read:repository")
	}
	for _, r := range s.o.Resources {
		if !strings.HasPrefix(r, s.issuer+"/") {
			return nil, fmt.Errorf("the endpoint %s is not below the public address %s", r, s.issuer)
		}
	}
	s.keys = newKeys(o.Keys)
	s.rates = newRates(o.Now)
	s.recent = lru.New[int64, recentCredential](maxRecent)
	s.policy = pagePolicy()
	s.routes = s.handlers()
	return s, nil
}

// complete reports what o lacks. A ring without keys would fail at the first form only.
func complete(o Options) error {
	var problems []error
	lack := func(missing bool, what string) {
		if missing {
			problems = append(problems, errors.New("oauth: no "+what))
		}
	}
	lack(o.Base == nil || o.Base.Host == "" || o.Base.Scheme != "https" && o.Base.Scheme != "http", "public address")
	lack(o.Grants == nil, "grants")
	lack(o.Clients == nil, "clients")
	lack(o.Upstream == nil, "upstream")
	lack(o.Store == nil, "store")
	lack(o.Keys == nil || len(o.Keys(labelFlow)) == 0, "keys")
	lack(len(o.Resources) == 0, "endpoints")
	return errors.Join(problems...)
}

// The paths below the public address. /authorize, /token and /register are the defaults of
// MCP's revision 2025-03-26, which clients guess when discovery fails.
const (
	pathAuthorize = "/authorize"
	pathConsent   = "/consent"
	pathCallback  = "/oauth/callback"
	pathToken     = "/token"
	pathRegister  = "/register"
	pathRevoke    = "/revoke"
	pathAccount   = "/account"
	wellKnown     = "/.well-known/"
)

// handlers returns the handlers by path, as [http.ServeMux] patterns. Those below
// /.well-known/ are at the host's root (RFC 8615), all others below the public
// address.
func (s *Server) handlers() map[string]http.Handler {
	return map[string]http.Handler{
		wellKnown:                s.wellKnown(),
		s.prefix + pathAuthorize: s.page(s.authorize, http.MethodGet),
		s.prefix + pathConsent:   s.page(s.consent, http.MethodPost),
		s.prefix + pathCallback:  s.page(s.callback, http.MethodGet),
		s.prefix + pathAccount:   s.page(s.account, http.MethodGet, http.MethodPost),
		s.prefix + pathToken:     s.endpoint(s.token),
		s.prefix + pathRegister:  s.endpoint(s.register),
		s.prefix + pathRevoke:    s.endpoint(s.revoke),
	}
}

// Register adds the routes to mux.
func (s *Server) Register(mux *http.ServeMux) {
	for pattern, h := range s.routes {
		mux.Handle(pattern, h)
	}
}

// ChecksOrigin reports whether a request is for one of the routes, which answer
// for cross-origin requests themselves: some are meant for every origin (metadata
// and tokens), others must be reached by navigation from other sites (authorize
// and the callback) or from nowhere else (the forms). No check of the Origin
// before them fits them all.
func (s *Server) ChecksOrigin(r *http.Request) bool {
	return s.routes[r.URL.Path] != nil || strings.HasPrefix(r.URL.Path, wellKnown)
}

// Scopes returns the scopes that challenges name: those of a client that asks
// for none.
func (s *Server) Scopes() []string { return s.baseline }

// event reports something that happened to a person.
func (s *Server) event(r *http.Request, e Event) {
	x := *requestInfo(r)
	if e.Login != "" {
		x.Identity = &proxy.Identity{Login: e.Login, Mode: proxy.ModeOAuth, UserID: e.UserID}
	}
	s.o.Event(&x, e)
}

// requestInfo returns what the edge noted of the request, nothing when it noted none.
func requestInfo(r *http.Request) *proxy.RequestInfo {
	if x := proxy.RequestInfoFrom(r.Context()); x != nil {
		return x
	}
	return &proxy.RequestInfo{}
}
