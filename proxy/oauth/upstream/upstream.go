package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/lru"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/scope"
)

// Options make a [Gitea].
type Options struct {
	// Config names the application in Gitea, the scopes and the browsers' address.
	Config config.OAuth
	// Gitea is the server's base address as Aegis reaches it, with its sub-path
	// and without /api/v1.
	Gitea *url.URL
	// RedirectURL is where Gitea sends browsers back to, <public_url>/oauth/callback.
	RedirectURL string
	// HTTP reaches Gitea. Its redirect rule and its cookie jar are not used: no
	// redirect is followed and no cookie kept.
	HTTP *http.Client
	// Store keeps the credentials; it must seal what it keeps.
	Store kv.Store
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Event hears what operators should know; nil hears nothing. It is called
	// on the path of requests and must not block.
	Event func(Event)
}

// Gitea signs people in through Gitea and keeps their Gitea credentials fresh.
// It is safe for concurrent use, and several may share one store.
type Gitea struct {
	o        Options       // with a client that [harden] has made
	conf     oauth2.Config // without the secret; see oauth
	scopes   []string
	scopeSet scope.Set
	api      *url.URL
	browser  string
	app      string
	pace     pace
	flights  singleflight.Group
	// running is held for reading by work that must be finished before the store closes. stop
	// takes it for writing and keeps it: it waits for that work, and no other can begin.
	running sync.RWMutex
	stop    func()
	hold    *hold
	// unsaved are answers of Gitea that the store did not take.
	unsaved *lru.Cache[int64, *record]
	members *members
	// newEnough is until when Gitea is believed to be one that knows scopes; nil: not yet asked.
	newEnough atomic.Pointer[time.Time]
}

// pace are the waits of a [Gitea].
type pace struct {
	// lease bounds a whole refresh or sign-in, and is how long the lease of a
	// replica that died keeps the others waiting.
	lease time.Duration
	// work bounds a request of the token endpoint, ask every other.
	work, ask time.Duration
	// save bounds the storing of an answer, whatever time is left of lease.
	save time.Duration
	// poll is between looks at another replica's lease, again before a second try.
	poll, again time.Duration
}

// defaultPace: lease is longer than a token request and the storing of its answer together,
// so that a replica at work does not lose it.
func defaultPace() pace {
	return pace{
		lease: 40 * time.Second,
		work:  15 * time.Second,
		save:  5 * time.Second,
		ask:   10 * time.Second,
		poll:  50 * time.Millisecond,
		again: 250 * time.Millisecond,
	}
}

// New returns the Gitea leg that o describes. It sends nothing; see [Gitea.Check].
func New(o Options) (*Gitea, error) {
	set, err := configuredScopes(o.Config.Scopes)
	if err != nil {
		return nil, err
	}
	if err := complete(o); err != nil {
		return nil, err
	}
	browser := strings.TrimRight(o.Gitea.String(), "/")
	if o.Config.BrowserURL != nil {
		browser = strings.TrimRight(o.Config.BrowserURL.String(), "/")
	}
	api := *o.Gitea
	api.Path, api.RawPath = strings.TrimRight(api.Path, "/"), ""
	o.HTTP = harden(o.HTTP)
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Gitea{
		o:        o,
		scopes:   set.Words(),
		scopeSet: set,
		api:      &api,
		browser:  browser,
		app:      binding(&api, o.Config.ClientID),
		pace:     defaultPace(),
		hold:     newHold(),
		unsaved:  lru.New[int64, *record](maxHeld),
		members:  newMembers(),
	}
	g.stop = sync.OnceFunc(g.running.Lock)
	g.conf = oauth2.Config{
		ClientID:    o.Config.ClientID,
		RedirectURL: o.RedirectURL,
		Scopes:      g.scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL:   browser + "/login/oauth/authorize",
			TokenURL:  api.String() + "/login/oauth/access_token",
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}
	return g, nil
}

// oauth returns the configuration with the secret, for one use: kept, it would
// show in a print of whatever holds g.
func (g *Gitea) oauth() *oauth2.Config {
	conf := g.conf
	conf.ClientSecret = g.o.Config.ClientSecret.Reveal()
	return &conf
}

// complete reports what o lacks.
func complete(o Options) error {
	var problems []error
	lack := func(missing bool, what string) {
		if missing {
			problems = append(problems, errors.New(what))
		}
	}
	lack(o.Config.ClientID == "", "auth.oauth.client_id is missing; take it from the application's page in Gitea")
	lack(o.Config.ClientSecret.IsZero(),
		"auth.oauth.client_secret is missing; make a new one on the application's page in Gitea")
	lack(o.Gitea == nil || o.Gitea.Host == "", "gitea.url is missing")
	lack(o.HTTP == nil, "upstream: no HTTP client")
	lack(o.Store == nil, "upstream: no store")
	u, err := url.Parse(o.RedirectURL)
	lack(err != nil || u.Host == "", "the redirect URL is not absolute; set public_url")
	return errors.Join(problems...)
}

// LoginURL returns the address at Gitea to send a browser to. state comes back
// with the browser; verifier is the PKCE verifier (RFC 7636) that
// [Gitea.Exchange] needs: 43 to 128 characters, fresh for each sign-in. The
// scopes are always those of the configuration.
func (g *Gitea) LoginURL(state, verifier string) string {
	return g.conf.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier))
}

// RevokeURL returns the page at Gitea where people revoke applications.
func (g *Gitea) RevokeURL() string { return g.browser + "/user/settings/applications" }

// User is a person who signed in.
type User struct {
	// ID is Gitea's number of the user, which a renaming does not change.
	ID int64
	// Credential has the token that was just issued. Calls use [Gitea.Credential].
	Credential
}

// Credential is what a call of a person is made with. It prints no secret.
type Credential struct {
	// Token is good for a moment at least.
	Token proxy.Credential
	// Login is the user name as last heard from Gitea.
	Login string
	// Scopes are what the token may do, as far as they are configured.
	Scopes []string
}

// Event is something that an operator should know. It carries no secret.
type Event struct {
	// Kind is one of the Event constants.
	Kind EventKind
	// UserID and Login name the person; 0 and "" when it is about the application.
	UserID int64
	Login  string
	// Detail says more, in fixed words.
	Detail string
}

// EventKind names a kind of [Event].
type EventKind string

// The kinds of event.
const (
	EventSignedIn  EventKind = "gitea_signed_in"      // a credential was stored
	EventRefreshed EventKind = "gitea_refreshed"      // a credential was renewed
	EventRenamed   EventKind = "gitea_user_renamed"   // the user has another login now
	EventReauth    EventKind = "gitea_reauth_needed"  // the person must sign in again
	EventRevoked   EventKind = "gitea_grant_revoked"  // the person or an admin revoked the grant in Gitea
	EventRefused   EventKind = "gitea_grant_refused"  // a grant had too few or too many scopes
	EventForgotten EventKind = "gitea_forgotten"      // the credential was deleted
	EventClient    EventKind = "gitea_client_refused" // alarm: Gitea refuses client_id or client_secret
)

// report calls the options' Event, if there is one.
func (g *Gitea) report(kind EventKind, userID int64, login, detail string) {
	if g.o.Event != nil {
		g.o.Event(Event{Kind: kind, UserID: userID, Login: login, Detail: detail})
	}
}

// Close starts no further refresh or sign-in and waits for those under way, so
// that no answer of Gitea is lost between its arrival and the store. Close the
// store afterwards.
func (g *Gitea) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { g.stop(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("refreshes of Gitea credentials are still under way: %w", ctx.Err())
	}
}
