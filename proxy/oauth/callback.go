package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"aegis/proxy"
	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/scope"
	"aegis/proxy/oauth/upstream"
)

// callback answers /oauth/callback, where Gitea sends the browser back to.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) error {
	q, ok := parseFields(r.URL.RawQuery)
	if len(r.URL.RawQuery) > maxQuery || !ok || q.twice("state", "code", "error") {
		return badRequest("Gitea's answer cannot be read.")
	}
	// The flow ends here, whatever comes of it: an address with a state must not work
	// twice, nor after Gitea said no.
	f, err := s.finish(w, r, q.get("state"))
	switch {
	case err != nil:
		return err
	case q.get("error") != "":
		return s.refusedByGitea(w, r, f, q.get("error"))
	case q.get("code") == "":
		return s.stopped(f, codeServer,
			newNotice(http.StatusBadRequest, "Gitea sent no answer", "Start again in your MCP client."))
	}
	// It goes on when the browser leaves: Gitea takes its code once, and its answer may
	// end the refresh token that the person's other clients live on.
	user, err := s.o.Upstream.Exchange(r.Context(), q.get("code"), f.Verifier)
	if err != nil {
		return s.noExchange(f, err)
	}
	// The sweep must not take the credential for a leftover before the code has become a
	// grant, and calls must not go on with the token of before.
	s.unused.Delete(user.ID)
	s.recent.Take(user.ID)
	if f.Purpose == forAccount {
		return s.signedIn(w, r, user)
	}
	return s.grantCode(w, r, f, user)
}

// refusedByGitea: the person said no there, or Gitea did. The client learns of a no by
// itself; everything else is for the person to read, as clients show little of an error.
func (s *Server) refusedByGitea(w http.ResponseWriter, r *http.Request, f flow, code string) error {
	if code == codeDenied && f.Purpose == forClient {
		s.event(r, Event{Name: "consent", Reason: "denied at Gitea", ClientID: f.Asked.ClientID})
		s.redirect(w, s.back(f.Asked,
			"error", codeDenied, "error_description", "the person denied the request at Gitea"))
		return nil
	}
	if code != codeDenied {
		return s.stopped(f, codeServer, newNotice(http.StatusBadGateway, "Gitea refused this sign-in",
			"Gitea did not say that you denied it, so something is not set up right. "+
				"Tell whoever runs this server; Gitea's log says more."))
	}
	return s.stopped(f, codeServer, newNotice(http.StatusForbidden, "You did not sign in",
		"Gitea did not let Aegis act for you. Nothing was changed."))
}

// stopped ends a flow with a page for the person and, for a client, a link that
// gives it the error code. The page does not go on by itself: the person must read it.
func (s *Server) stopped(f flow, code string, n *notice) *notice {
	if f.Purpose != forClient {
		return n.leading(s.prefix+pathAccount, "Back to your connected clients", false)
	}
	to := s.back(f.Asked, "error", code, "error_description", "the sign-in did not succeed; the page said why")
	return n.leading(to, "Back to the client", false)
}

// noExchange explains why Gitea's code gave no credential.
func (s *Server) noExchange(f flow, err error) error {
	ue, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		n := newNotice(http.StatusServiceUnavailable, "Aegis cannot finish this sign-in now",
			"Wait a moment and start again in your MCP client.")
		n.cause = err
		return s.stopped(f, codeUnavailable, n)
	}
	// The codes of RFC 6749 section 4.1.2.1: denied where the person can act, server_error
	// where the operator must.
	n := &notice{Text: []string{sentence(ue.Public)}, cause: err}
	code := codeDenied
	switch ue.Kind {
	case upstream.Narrow, upstream.Wide:
		// Gitea keeps to the scopes that were granted first, so starting again is no use.
		n.status, n.Title = http.StatusForbidden, "Gitea has an older permission that does not fit"
		n.Help = &link{URL: address(s.o.Upstream.RevokeURL()), Text: "Open Gitea"}
	case upstream.Denied, upstream.Gone:
		n.status, n.Title = http.StatusForbidden, "Gitea did not accept this sign-in"
	case upstream.Config:
		n.status, n.Title, code = http.StatusBadGateway, "This server is not set up right", codeServer
	default:
		n.status, n.Title, code = http.StatusServiceUnavailable, "Gitea cannot be reached now", codeUnavailable
	}
	return s.stopped(f, code, n)
}

// member reports whether a person may use Aegis at all (auth.oauth.allow).
func (s *Server) member(ctx context.Context, userID int64) (bool, error) {
	if s.o.Config.Allow.Empty() {
		return true, nil
	}
	return s.o.Upstream.Member(ctx, userID, s.o.Config.Allow)
}

// grantCode gives the client its authorization code (RFC 6749 section 4.1.2). Whether the
// person may use Aegis is decided before there is one: the first refresh would end the
// grant otherwise, and the client could not say why.
func (s *Server) grantCode(w http.ResponseWriter, r *http.Request, f flow, user *upstream.User) error {
	ok, err := s.member(r.Context(), user.ID)
	if err != nil {
		return s.noExchange(f, err)
	}
	if !ok {
		n := s.turnedAway(r, f, user, "not in auth.oauth.allow",
			"You are not among the people who may use this server",
			"Whoever runs this server decides who may use it (auth.oauth.allow); "+
				"ask them, or sign in to Gitea as somebody else.")
		if err := s.forget(r.Context(), user.ID); err != nil { // the sweep tries again
			s.o.Log.Warn().Str("request_id", requestInfo(r).RequestID).Err(err).
				Msg("the credential of a person who may not use this server is still kept")
		}
		return n
	}
	if err := s.admitted(r, f, user); err != nil {
		return err
	}
	// The client may have been taken away while the person was at Gitea.
	c, err := s.o.Clients.Client(r.Context(), f.Asked.ClientID)
	if err != nil {
		return s.stopped(f, codeServer, unknownNotice(err))
	}
	scopes := scope.Within(f.Asked.Scopes, scope.Of(user.Scopes))
	if len(scopes) == 0 {
		return s.noExchange(f,
			&upstream.Error{Kind: upstream.Narrow, Public: "Gitea grants nothing of what you allowed"})
	}
	code, err := s.o.Grants.IssueCode(r.Context(), grant.Code{
		ClientID: c.ID, ClientName: displayName(c.Name), Verified: c.Verified,
		RedirectURI: f.Asked.RedirectURI, Challenge: f.Asked.Challenge,
		UserID: user.ID, Login: user.Login, Scopes: scopes, Resource: f.Asked.Resource,
	})
	if err != nil {
		return s.noExchange(f, fmt.Errorf("code: %w", err))
	}
	if err := s.o.Clients.Keep(r.Context(), c); err != nil { // the grant is good without it
		s.o.Log.Warn().Str("request_id", requestInfo(r).RequestID).Err(err).Msg("the client's document is not kept")
	}
	who := Event{UserID: user.ID, Login: user.Login, ClientID: c.ID, ClientName: displayName(c.Name)}
	who.Name, who.Reason = "login", "signed in through Gitea"
	s.event(r, who)
	who.Name, who.Reason, who.Scopes = "consent", "allowed", scopes
	s.event(r, who)
	s.handOver(w, r, f.Asked, c, code)
	return nil
}

// admitted returns the page for a person who is not among the members of the endpoint
// that the client is for: better now than as an error of the first call.
func (s *Server) admitted(r *http.Request, f flow, user *upstream.User) error {
	if s.o.Admit == nil {
		return nil
	}
	id := &proxy.Identity{Login: user.Login, Mode: proxy.ModeOAuth, UserID: user.ID, Credential: user.Token}
	err := s.o.Admit(r.Context(), f.Asked.Resource, id)
	if err == nil || proxy.AsError(err).Kind != proxy.KindForbidden {
		return nil
	}
	return s.turnedAway(r, f, user, "not among the members of the endpoint",
		"You are not among the members of this endpoint",
		f.Asked.Resource+" is for others; whoever runs this server decides for whom (members in its configuration). "+
			"Ask them, sign in to Gitea as somebody else, or give your client the address of your own team.")
}

// turnedAway ends the flow of a person who may not go on: why is for the audit log.
func (s *Server) turnedAway(r *http.Request, f flow, user *upstream.User, why, title, says string) error {
	s.event(r, Event{
		Name: "login", Reason: "refused: " + why, UserID: user.ID, Login: user.Login, ClientID: f.Asked.ClientID,
	})
	return s.stopped(f, codeDenied, newNotice(http.StatusForbidden, title,
		"You are signed in to Gitea as "+user.Login+". "+says))
}

// unknownNotice is [unknownClient] as a notice, which can lead back to the client.
func unknownNotice(err error) *notice {
	if n, ok := errors.AsType[*notice](unknownClient(err)); ok {
		return n
	}
	n := newNotice(http.StatusServiceUnavailable, "Aegis cannot do this at the moment",
		"Wait a moment and start again in your MCP client.")
	n.cause = err
	return n
}

// handOver sends the browser to the client with its code. A program with a scheme
// of its own opens beside the tab, which then shows a page and not nothing.
func (s *Server) handOver(w http.ResponseWriter, r *http.Request, a asked, c *client.Client, code string) {
	to := s.back(a, "code", code)
	if !opensApp(a.RedirectURI) {
		s.redirect(w, to)
		return
	}
	name := displayName(c.Name)
	n := newNotice(http.StatusOK, "Back to "+name, "You have allowed "+name+". "+
		"Your browser may ask whether it may open it. You can close this page afterwards.")
	s.show(w, r, n.leading(to, "Open "+name, true))
}
