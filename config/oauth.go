package config

import "time"

// OAuth lets each person use Aegis with their own rights: Aegis is an OAuth 2.1
// authorization server for MCP clients and a confidential OAuth client of Gitea.
// docs/oauth.md says how to set it up in Gitea.
type OAuth struct {
	// Enabled switches it on. Needs client_id and client_secret, and public_url
	// unless Aegis listens on loopback. Default false.
	Enabled bool `yaml:"enabled"`
	// ClientID and ClientSecret are those of the OAuth application in Gitea
	// (Settings, Applications; confidential), whose redirect URI is
	// <public_url>/oauth/callback.
	ClientID string `yaml:"client_id" length:"0 200" example:"0f8c6d5e-1c2b-4a3d-9e8f-7a6b5c4d3e2f"`
	// ClientSecret is the secret that Gitea showed once when the application was
	// made.
	ClientSecret Secret `yaml:"client_secret" length:"1 4096" header:"true" example:"${GITEA_OAUTH_SECRET}"`
	// BrowserURL is Gitea's address as people's browsers reach it. Empty:
	// gitea.url. Policies about repositories use it without OAuth too: when it is
	// set, links in texts to other servers are nobody's repositories.
	BrowserURL *URL `yaml:"browser_url" example:"https://git.example.org"`
	// Scopes are the Gitea scopes that Aegis asks Gitea for, and so the most
	// that any client can get: read: or write: and a category (activitypub,
	// admin, issue, misc, notification, organization, package, repository, user).
	// write includes read. The default has everything but admin and activitypub.
	Scopes []string `yaml:"scopes" pattern:"^(read|write):(activitypub|admin|issue|misc|notification|organization|package|repository|user)$" says:"read: or write: and a category of Gitea's, such as write:issue" example:"write:repository"`
	// DefaultScopes are offered to a client that asks for none, and named in
	// challenges. Each must be covered by scopes. Empty: all of scopes.
	DefaultScopes []string `yaml:"default_scopes" pattern:"^(read|write):(activitypub|admin|issue|misc|notification|organization|package|repository|user)$" says:"read: or write: and a category of Gitea's, such as read:issue" example:"read:repository"`
	// Allow says who may sign in. All lists empty: everyone who can sign in to
	// Gitea.
	Allow People `yaml:"allow"`
	// Admins are Gitea logins that see and revoke everybody's clients on
	// /account.
	Admins []string `yaml:"admins" length:"1 100" example:"root"`
	// Clients are MCP clients known beforehand.
	Clients []OAuthClient `yaml:"clients"`
	// Registration lets unknown clients register themselves (RFC 7591): "open"
	// or "off". Most clients need it. Default open.
	Registration string `yaml:"registration" enum:"open off"`
	// Documents accepts clients whose id is the https URL of a metadata
	// document.
	Documents ClientDocuments `yaml:"documents"`
	// PrivateRedirects are redirect URIs with a scheme of an application's own
	// that registered clients may use, compared exactly. Default Cursor's.
	PrivateRedirects []string `yaml:"private_redirects" pattern:"^[a-z][a-z0-9+.-]*://[!-~]+$" says:"a whole URI such as cursor://anysphere.cursor-mcp/oauth/callback" example:"cursor://anysphere.cursor-mcp/oauth/callback"`
	// AccessTTL is how long an access token is valid. 5m to 24h, default 1h.
	AccessTTL Duration `yaml:"access_ttl" range:"5m 24h"`
	// RefreshTTL is how long a refresh token is valid; each use starts it anew.
	// 1h to 8760h, default 720h.
	RefreshTTL Duration `yaml:"refresh_ttl" range:"1h 8760h"`
	// MaxTTL ends a grant however often it was refreshed; the person then signs
	// in again. 0s to 87600h, default 2160h; 0s: never.
	MaxTTL Duration `yaml:"max_ttl" range:"0s 87600h"`
	// RefreshGrace is how long a refresh token that was used may be used again by
	// the same client, with the same successor: parallel processes of one client
	// race. 0s to 10m, default 1m.
	RefreshGrace Duration `yaml:"refresh_grace" range:"0s 10m"`
	// AdvertiseIssuer sends iss with authorization answers (RFC 9207) and says
	// so in the metadata. Switch it off for clients that fail on it. Default
	// true.
	AdvertiseIssuer bool `yaml:"advertise_issuer"`
}

// People names Gitea users in several ways, which add up.
type People struct {
	// Logins are user names.
	Logins []string `yaml:"logins" length:"1 100" example:"alice"`
	// Organizations stand for their members.
	Organizations []string `yaml:"organizations" length:"1 100" example:"acme"`
	// Teams of organizations, written org/team, stand for their members.
	Teams []string `yaml:"teams" pattern:"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_. -]{1,255}$" says:"an organization and a team of it, such as acme/developers" example:"acme/developers"`
}

// Empty reports whether no list names anyone.
func (p People) Empty() bool { return len(p.Logins)+len(p.Organizations)+len(p.Teams) == 0 }

// OAuthClient is an MCP client known beforehand.
type OAuthClient struct {
	// ID is the client_id; unique, 1 to 200 characters of A-Z a-z 0-9 . _ ~ -.
	// Required.
	ID string `yaml:"id" required:"true" pattern:"^[A-Za-z0-9._~-]{1,200}$" says:"1 to 200 characters of A-Z a-z 0-9 . _ ~ -" example:"ci-runner"`
	// Name is what people read on the consent page. Required.
	Name string `yaml:"name" required:"true" length:"1 60" example:"CI runner"`
	// Secret makes it a confidential client. Empty: a public one, which proves
	// itself by PKCE alone.
	Secret Secret `yaml:"secret" length:"16 4096" header:"true" example:"${CI_CLIENT_SECRET}"`
	// RedirectURIs are where it may be sent back to: https, http on a loopback
	// host (any port), or a scheme of its own. Required.
	RedirectURIs []string `yaml:"redirect_uris" length:"1 2048" example:"http://127.0.0.1/callback"`
}

// ClientDocuments are clients that are described by a document at the https URL
// that is their id (OAuth Client ID Metadata Document).
type ClientDocuments struct {
	// Enabled accepts them. Aegis then fetches the document from the internet,
	// never from private addresses. Default true.
	Enabled bool `yaml:"enabled"`
	// AllowDomains are the only hosts to fetch from, with all below them. Empty:
	// every public one.
	AllowDomains []string `yaml:"allow_domains" pattern:"^[A-Za-z0-9.-]{1,253}$" says:"a domain such as claude.ai" example:"claude.ai"`
	// DenyDomains are hosts, with all below them, never to fetch from.
	DenyDomains []string `yaml:"deny_domains" pattern:"^[A-Za-z0-9.-]{1,253}$" says:"a domain such as example.com" example:"example.com"`
}

func defaultOAuth() OAuth {
	return OAuth{
		Scopes: []string{
			"write:repository", "write:issue", "write:notification", "write:package",
			"write:organization", "write:user", "write:misc",
		},
		Registration:     "open",
		Documents:        ClientDocuments{Enabled: true},
		PrivateRedirects: []string{"cursor://anysphere.cursor-mcp/oauth/callback"},
		AccessTTL:        Duration(time.Hour),
		RefreshTTL:       Duration(720 * time.Hour),
		MaxTTL:           Duration(2160 * time.Hour),
		RefreshGrace:     Duration(time.Minute),
		AdvertiseIssuer:  true,
	}
}
