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
	state, _ := q.get("state")
	f, err := s.finish(w, r, state)
	switch {
	case errors.Is(err, errNoFlow):
		return &notice{status: http.StatusBadRequest, Title: "This sign-in is over",
			Text: []string{"It took too long, or it was finished before. Start again in your MCP client."}}
	case errors.Is(err, errBrowser):
		return &notice{status: http.StatusForbidden, Title: "This sign-in began in another browser",
			Text: []string{"It must end where it began, so nothing was allowed. If somebody sent you here, they tried to use your account: just close this page. Otherwise start again in your MCP client."}}
	case err != nil:
		return err
	}
	if code, _ := q.get("error"); code != "" {
		return s.refusedByGitea(w, r, f, code)
	}
	code, _ := q.get("code")
	if code == "" {
		return s.stopped(f, &notice{status: http.StatusBadRequest, Title: "Gitea sent no answer", Text: []string{"Start again in your MCP client."}}, codeServer)
	}
	user, err := s.o.Upstream.Exchange(r.Context(), code, f.Verifier)
	if err != nil {
		return s.noExchange(f, err)
	}
	s.unused.keep(user.ID)
	s.recent.drop(user.ID)
	if f.Purpose == forAccount {
		return s.signedIn(w, r, user)
	}
	return s.grantCode(w, r, f, user)
}

// refusedByGitea: the person said no there, or Gitea did.
func (s *Server) refusedByGitea(w http.ResponseWriter, r *http.Request, f flow, code string) error {
	if code == codeDenied && f.Purpose == forClient {
		s.event(r, Event{Name: "consent", Reason: "denied at Gitea", ClientID: f.Asked.ClientID})
		s.redirect(w, s.back(f.Asked, "error", codeDenied, "error_description", "the person denied the request at Gitea"))
		return nil
	}
	n := &notice{status: http.StatusForbidden, Title: "You did not sign in",
		Text: []string{"Gitea did not let Aegis act for you. Nothing was changed."}}
	if code != codeDenied {
		n.Title = "Gitea refused this sign-in"
		n.Text = []string{"Gitea did not say that you denied it, so something is not set up right. Tell whoever runs this server; Gitea's log says more."}
		n.status = http.StatusBadGateway
	}
	return s.stopped(f, n, codeServer)
}

// stopped ends a flow with a page for the person and, for a client, a link that
// tells it. The page does not go on by itself: the person must read it.
func (s *Server) stopped(f flow, n *notice, code string) *notice {
	if f.Purpose != forClient {
		n.Link = &link{URL: address(s.prefix + pathAccount), Text: "Back to your connected clients"}
		return n
	}
	n.Link = &link{URL: address(s.back(f.Asked, "error", code, "error_description", "the sign-in did not succeed; the page said why")), Text: "Back to the client"}
	return n
}

// noExchange explains why Gitea's code gave no credential.
func (s *Server) noExchange(f flow, err error) error {
	var ue *upstream.Error
	if !errors.As(err, &ue) {
		return s.stopped(f, &notice{status: http.StatusServiceUnavailable, Title: "Aegis cannot finish this sign-in now", cause: err,
			Text: []string{"Wait a moment and start again in your MCP client."}}, codeUnavailable)
	}
	n := &notice{Text: []string{sentence(ue.Public)}, cause: err}
	code := codeServer
	switch ue.Kind {
	case upstream.Narrow, upstream.Wide:
		n.status, n.Title, code = http.StatusForbidden, "Gitea has an older permission that does not fit", codeDenied
		n.Help = &link{URL: address(s.o.Upstream.RevokeURL()), Text: "Open Gitea"}
	case upstream.Denied, upstream.Gone:
		n.status, n.Title, code = http.StatusForbidden, "Gitea did not accept this sign-in", codeDenied
	case upstream.Config:
		n.status, n.Title = http.StatusBadGateway, "This server is not set up right"
	default:
		n.status, n.Title, code = http.StatusServiceUnavailable, "Gitea cannot be reached now", codeUnavailable
	}
	return s.stopped(f, n, code)
}

// member reports whether a person may use Aegis at all (auth.oauth.allow).
func (s *Server) member(ctx context.Context, userID int64) (bool, error) {
	if s.o.Config.Allow.Empty() {
		return true, nil
	}
	return s.o.Upstream.Member(ctx, userID, s.o.Config.Allow)
}

// grantCode gives the client its authorization code (RFC 6749 section 4.1.2).
func (s *Server) grantCode(w http.ResponseWriter, r *http.Request, f flow, user *upstream.User) error {
	ok, err := s.member(r.Context(), user.ID)
	if err != nil {
		return s.noExchange(f, err)
	}
	if !ok {
		s.event(r, Event{Name: "login", Reason: "refused: not in auth.oauth.allow", UserID: user.ID, Login: user.Login, ClientID: f.Asked.ClientID})
		if err := s.forget(r.Context(), user.ID); err != nil { // the sweep tries again
			s.o.Log.Warn().Str("request_id", exchange(r).RequestID).Err(err).Msg("the credential of a person who may not use this server is still kept")
		}
		return s.stopped(f, &notice{status: http.StatusForbidden, Title: "You are not among the people who may use this server",
			Text: []string{"You are signed in to Gitea as " + user.Login + ". Whoever runs this server decides who may use it (auth.oauth.allow); ask them, or sign in to Gitea as somebody else."}}, codeDenied)
	}
	if err := s.admitted(r, f, user); err != nil {
		return err
	}
	c, err := s.o.Clients.Client(r.Context(), f.Asked.ClientID)
	if err != nil {
		return s.stopped(f, unknownNotice(err), codeServer)
	}
	scopes := scope.Within(f.Asked.Scopes, scope.Of(user.Scopes))
	if len(scopes) == 0 {
		return s.noExchange(f, &upstream.Error{Kind: upstream.Narrow, Public: "Gitea grants nothing of what you allowed"})
	}
	code, err := s.o.Grants.IssueCode(r.Context(), grant.Code{
		ClientID: c.ID, ClientName: displayName(c.Name), Verified: c.Verified, RedirectURI: f.Asked.RedirectURI, Challenge: f.Asked.Challenge,
		UserID: user.ID, Login: user.Login, Scopes: scopes, Resource: f.Asked.Resource,
	})
	if err != nil {
		return s.noExchange(f, fmt.Errorf("code: %w", err))
	}
	if err := s.o.Clients.Keep(r.Context(), c); err != nil { // the grant is good without it
		s.o.Log.Warn().Str("request_id", exchange(r).RequestID).Err(err).Msg("the client's document is not kept")
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
	if err := s.o.Admit(r.Context(), f.Asked.Resource, id); err == nil || proxy.AsError(err).Kind != proxy.KindForbidden {
		return nil
	}
	s.event(r, Event{Name: "login", Reason: "refused: not among the members of the endpoint", UserID: user.ID, Login: user.Login, ClientID: f.Asked.ClientID})
	return s.stopped(f, &notice{status: http.StatusForbidden, Title: "You are not among the members of this endpoint",
		Text: []string{"You are signed in to Gitea as " + user.Login + ". " + f.Asked.Resource + " is for others; whoever runs this server decides for whom (members in its configuration). Ask them, sign in to Gitea as somebody else, or give your client the address of your own team."}}, codeDenied)
}

func unknownNotice(err error) *notice {
	var n *notice
	if errors.As(unknownClient(err), &n) {
		return n
	}
	return &notice{status: http.StatusServiceUnavailable, Title: "Aegis cannot do this at the moment", cause: err,
		Text: []string{"Wait a moment and start again in your MCP client."}}
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
	s.show(w, r, &notice{status: http.StatusOK, Title: "Back to " + name, Refresh: true,
		Text: []string{"You have allowed " + name + ". Your browser may ask whether it may open it. You can close this page afterwards."},
		Link: &link{URL: address(to), Text: "Open " + name}})
}
