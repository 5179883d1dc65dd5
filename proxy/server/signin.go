package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/audit"
	"aegis/proxy/internal/http1"
	"aegis/proxy/kv"
	"aegis/proxy/kv/open"
	"aegis/proxy/oauth"
	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/upstream"
	"aegis/proxy/policy/confirm"
	"aegis/proxy/policy/members"
)

// signIn is per-user OAuth: the authorization server for MCP clients and the
// client of Gitea.
type signIn struct {
	server *oauth.Server
	gitea  *upstream.Gitea
	grants *grant.Grants
}

// upstreamTimeout bounds one request of the sign-in to Gitea. gitea.timeout may be set for
// long calls of tools; a person waits in front of a browser here.
const upstreamTimeout = 30 * time.Second

// newSignIn makes per-user OAuth; nil when it is off.
func (b *basis) newSignIn(store *open.Store, teams []*team) (*signIn, error) {
	cfg, now, outage := b.cfg.Auth.OAuth, b.process.now, b.cfg.Store.Grace.Std()
	if !cfg.Enabled {
		return nil, nil
	}
	b.process.building("sign-in")
	credentials, err := upstream.New(upstream.Options{
		Config: cfg, Gitea: &b.cfg.Gitea.URL.URL, RedirectURL: b.base.String() + "/oauth/callback",
		HTTP:  &http.Client{Transport: http1.NoUpgrade{Next: b.gitea.signIn}, Timeout: upstreamTimeout},
		Store: store, Event: b.giteaEvent, Now: now,
	})
	if err != nil {
		return nil, err
	}
	// Everything below keeps its records in one store and derives its keys from it, so that
	// replicas and a restart accept what was handed out before.
	known := client.Options{Config: cfg, Store: store, Keys: store.Derive, Now: now}
	if b.process.documents != nil {
		b.process.documents(&known)
	}
	clients, err := client.NewResolver(known)
	if err != nil {
		return nil, err
	}
	grants, err := grant.New(grant.Options{
		Store: store, Keys: store.Derive, Config: cfg, Event: b.grantEvent, Outage: outage, Now: now,
	})
	if err != nil {
		return nil, err
	}
	resources, admit := b.resources(teams)
	server, err := oauth.New(oauth.Options{
		Config: cfg, Base: b.base, Grants: grants, Clients: clients, Upstream: credentials,
		Store: store, Keys: store.Derive, Resources: resources, Admit: admit, Codes: codes{store},
		Event: b.oauthEvent, Log: b.log, Outage: outage, Now: now,
	})
	if err != nil {
		return nil, err
	}
	// Nothing was asked of Gitea: whether the application is right is checked at the start.
	return &signIn{server: server, gitea: credentials, grants: grants}, nil
}

// resources returns the URLs of all endpoints, the default one first, and what decides who
// may sign in for one, by the rule for its calls.
func (b *basis) resources(teams []*team) (urls []string, admit func(context.Context, string, *proxy.Identity) error) {
	gates := map[string]*members.Gate{}
	for _, t := range teams {
		at := b.base.String() + t.path()
		urls, gates[at] = append(urls, at), t.gate
	}
	return urls, func(ctx context.Context, resource string, id *proxy.Identity) error {
		gate, ok := gates[resource]
		if !ok {
			return proxy.NewError(proxy.KindForbidden, "there is no such endpoint", nil)
		}
		return gate.Enter(ctx, id)
	}
}

// codes shows the confirmations that wait on /account. The page knows nothing of teams: it
// shows those of every endpoint, whose codes are all in one store.
type codes struct{ store kv.Store }

// Pending implements [oauth.Codes].
func (c codes) Pending(ctx context.Context, userID int64) ([]oauth.PendingCode, error) {
	list, err := confirm.Waiting(ctx, c.store, userID, time.Now())
	out := make([]oauth.PendingCode, len(list))
	for i, p := range list {
		out[i] = oauth.PendingCode{Code: p.Code, Tool: p.Tool, Summary: p.Summary, Expires: p.Expires}
	}
	return out, err
}

// guardOf returns what checks bearer tokens before a team's endpoint. The scopes that a call
// needs are those of the operation that it resolves to; a tool without one, such as the raw
// one, may reach anything, so it needs all that are offered.
func (s *core) guardOf(t *team) *oauth.Guard {
	g := &oauth.Guard{
		Team: t.name, Verifier: s.tokens, MetadataURL: s.base.Scheme + "://" + s.base.Host + s.metadataPath(t),
		Log: s.log, Refused: s.bearerRefused,
	}
	if !t.rules.Members.Everyone {
		g.Admit = s.admit(t)
	}
	if in := s.signIn; in != nil {
		g.Verifier = in.server.Verifier(s.base.String()+t.path(), s.tokens)
		g.Scopes, g.Offered = in.server.Scopes(), s.cfg.Auth.OAuth.Scopes
		g.Needs = func(name string, args json.RawMessage) []string {
			tool := s.tools(t).Target(name, args)
			switch {
			case tool == nil:
				return nil
			case tool.OperationID == "":
				return s.cfg.Auth.OAuth.Scopes
			}
			return tool.Scopes
		}
	}
	return g
}

// checkSignIn asks Gitea whether its OAuth application is as it must be, and logs
// what an operator must correct.
func (s *core) checkSignIn(ctx context.Context) {
	if s.signIn == nil {
		return
	}
	problems, warnings := s.signIn.gitea.Check(ctx)
	for _, err := range problems {
		s.log.Error().Err(err).Msg("people cannot sign in")
	}
	for _, err := range warnings {
		s.log.Warn().Err(err).Msg("sign-in to Gitea")
	}
}

// access returns the stage that knows what callers may still do: the scopes of their
// grants, and, when Gitea refuses a call, that a permission or membership may be gone.
func (s *core) access() proxy.Stage {
	people := s.gitea.people.Stage() // below the scopes: a call that they refuse never asks Gitea
	if s.signIn == nil {
		return people
	}
	scopes := s.signIn.server.Stage()
	return func(next proxy.Handler) proxy.Handler { return scopes(people(next)) }
}

// oauthEvent records sign-ins and consents.
func (b *basis) oauthEvent(x *proxy.RequestInfo, e oauth.Event) {
	detail := e.Reason
	if e.ClientName != "" {
		detail += "; client " + e.ClientName
	}
	if len(e.Scopes) > 0 {
		detail += "; scopes " + strings.Join(e.Scopes, " ")
	}
	name := audit.Login // refused ones, too: the reason says which
	if e.Name == "consent" {
		name = audit.Consent
	}
	b.process.audit.log.Event(name, x, audit.Detail{Reason: detail})
}

// grantEvents are what the audit log calls what becomes of grants. A denial is a revocation
// as well: the person has ended what the client had.
var grantEvents = map[grant.Kind]audit.Event{
	grant.Issued: audit.TokenIssued, grant.Refreshed: audit.TokenRefreshed,
	grant.Revoked: audit.TokenRevoked, grant.Denied: audit.TokenRevoked,
	grant.CodeRefused: audit.CodeRefused, grant.CodeReplayed: audit.CodeRefused, grant.Reused: audit.RefreshReused,
}

// grantEvent records what becomes of tokens. A code or refresh token that comes twice may have
// been stolen, which an operator should see without reading the audit log.
func (b *basis) grantEvent(e grant.Event) {
	name := grantEvents[e.Kind]
	if name == audit.CodeRefused || name == audit.RefreshReused {
		b.log.Warn().Str("grant", e.Grant).Str("client", proxy.Clip(e.ClientName, 100)).Str("login", e.Login).
			Str("kind", string(e.Kind)).
			Msg("a code or refresh token came again, or was not its client's")
	}
	x := &proxy.RequestInfo{}
	if e.Login != "" {
		x.Identity = &proxy.Identity{Login: e.Login, Mode: proxy.ModeOAuth, UserID: e.UserID}
	}
	b.process.audit.log.Event(name, x, audit.Detail{
		Reason: string(e.Kind) + "; grant " + e.Grant + "; client " + e.ClientName,
	})
}

// giteaEvent tells operators what happens to credentials. An application that Gitea refuses
// stops every sign-in and needs an operator; the other events concern one person, who signs
// in again.
func (b *basis) giteaEvent(e upstream.Event) {
	ev := b.log.Info()
	switch e.Kind {
	case upstream.EventClient:
		ev = b.log.Error()
	case upstream.EventReauth, upstream.EventRefused, upstream.EventRevoked:
		ev = b.log.Warn()
	}
	ev.Str("event", string(e.Kind)).Int64("user_id", e.UserID).Str("login", e.Login).Msg(e.Detail)
}

// sweepEvery is the time between two looks for unused credentials. Each reads the grants of
// everybody who has a credential.
const sweepEvery = 5 * time.Minute

// sweep forgets credentials of people without grants, until ctx ends.
func (l *Live) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := l.Server() // at each tick: a reload may have switched sign-in on or off
		if s.signIn == nil {
			continue
		}
		if n, err := s.signIn.server.Sweep(ctx); err != nil {
			s.log.Error().Err(err).Msg("unused Gitea credentials could not be looked for")
		} else if n > 0 {
			s.log.Info().Int("credentials", n).Msg("forgot the Gitea credentials of people without clients")
		}
	}
}

// closeSignIn waits for refreshes under way: Gitea has already taken back the old refresh
// token, so one whose answer is not stored signs its person out.
func (s *core) closeSignIn() {
	if s.signIn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), upstreamTimeout)
	defer cancel()
	if err := s.signIn.gitea.Close(ctx); err != nil {
		s.log.Error().Err(err).Msg("a refresh of a Gitea credential may be lost")
	}
}

// ours reports whether a bearer token is for Aegis. Passthrough drops such tokens, so that
// they never reach Gitea.
func (s *core) ours(token string) bool {
	return strings.HasPrefix(token, "aegis_") || s.tokens.Knows(token)
}

// EndpointOf returns the address of the default team's endpoint under a
// configuration; that of a team has its name behind it.
func EndpointOf(cfg *config.Config) string { return cfg.Base().String() + MCPPath }
