package oauth

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/scope"
)

// consent is a request that waits for a person's answer.
type consent struct {
	client *client.Client
	asked  asked
	// form is the request in its form when there is one already.
	form string
	// problem is what is wrong with the answer that was given; "" at first.
	problem string
	choice  choice
}

// choice is how far a person narrows a request.
type choice struct {
	// How is "all", "read" or "pick".
	How string
	// Picked are the levels of "pick", by area.
	Picked scope.Set
}

// The values of the form's choices.
const (
	chooseAll  = "all"
	chooseRead = "read"
	choosePick = "pick"
	sayAllow   = "allow"
	sayDeny    = "deny"
)

// narrow returns the scopes that the choice leaves: never more than was asked for,
// whatever the form says.
func (c choice) narrow(scopes []string) []string {
	allowed := scope.Of(scopes)
	for i := range allowed {
		switch c.How {
		case chooseRead:
			allowed[i] = min(allowed[i], scope.Read)
		case choosePick:
			allowed[i] = min(allowed[i], c.Picked[i])
		}
	}
	return scope.Within(scopes, allowed)
}

// consentView is what the consent page shows.
type consentView struct {
	consent
	Token, Action, Account string
	Gitea                  string // host of the page that follows
}

// askPerson shows the consent page.
func (s *Server) askPerson(w http.ResponseWriter, r *http.Request, c consent) error {
	browser := s.browser(w, r)
	if c.form == "" {
		c.form = s.seal(c.asked)
	}
	status := http.StatusOK
	if c.problem != "" {
		status = http.StatusUnprocessableEntity
	}
	v := consentView{
		consent: c, Token: s.keys.formToken(browser, c.asked.id(browser)), Action: s.prefix + pathConsent,
		Account: s.prefix + pathAccount, Gitea: hostOf(s.o.Upstream.RevokeURL()),
	}
	s.render(w, r, status, view{Title: "Allow " + displayName(c.client.Name) + "?", Body: v.markup()})
	return nil
}

// loopback reports whether the answer goes to a program on the person's computer, of
// which any could listen there. Further redirect URIs must not hide it; only the
// clients that the operator has named are exempt.
func (c consent) loopback() bool {
	return c.client.LoopbackOnly || c.client.Kind != client.Static && strings.HasPrefix(c.asked.RedirectURI, "http:")
}

// displayName makes a name of the client's own harmless once more: one of the store may be
// from a version of Aegis that knew fewer tricks.
func displayName(name string) string {
	return cmp.Or(client.CleanName(name), "A client without a name")
}

// redirectHost says where an address leads, in a word and in a sentence.
func redirectHost(uri string) (host, where string) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "unknown", ""
	case opensApp(uri):
		return u.Scheme + "://", "a program on this computer that opens such addresses"
	case u.Scheme == "http":
		return "this computer", "a program that listens on " + u.Host
	}
	return u.Host, "a web site"
}

// hostOf returns the host of an address of the configuration or of a document.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "Gitea"
	}
	return u.Host
}

// consent answers the form of the consent page.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) error {
	form, f := readForm(w, r, maxPage, "request", "token", "say", "access")
	if f != nil {
		return f
	}
	c, err := s.readConsent(r, form)
	if err != nil {
		return err
	}
	// A form that was sent by the Enter key may name no button; that is not a yes.
	say := form.get("say")
	left := c.choice.narrow(c.asked.Scopes)
	switch {
	case say != sayAllow && say != sayDeny:
		c.problem = "Press Allow or Deny."
	case say == sayAllow && len(left) == 0:
		c.problem = "Nothing is left to allow. Choose something, or press Deny."
	}
	if c.problem != "" {
		return s.askPerson(w, r, c)
	}
	if say == sayAllow { // it puts a flow into the store, and a no puts nothing there
		if err := tooMany(s.rates.begin.take(everyone)); err != nil {
			return err
		}
	}
	// Last, so that a form that was refused above can be sent again.
	if err := s.answerOnce(r.Context(), c.asked.id(s.cookie(r, browserCookie))); err != nil {
		return err
	}
	if say == sayDeny {
		return s.denied(w, r, c)
	}
	c.asked.Scopes = left
	return s.toGitea(w, r, flow{Purpose: forClient, Asked: c.asked},
		"Gitea now asks you to sign in, if you have not yet, and to let Aegis act for you.")
}

// readConsent checks that a form is ours, in time and from the browser that it was
// made for, and reads it. Without cookies no form can be from the right browser, and the
// person can do something about that, so it is said first.
func (s *Server) readConsent(r *http.Request, form fields) (consent, error) {
	a, late, ok := s.unseal(form.get("request"))
	browser := s.cookie(r, browserCookie)
	switch {
	case ok && browser == "":
		return consent{}, newNotice(http.StatusForbidden, "Your browser sent no cookie",
			"Signing in needs a cookie from this server, to know that it is still you. "+
				"Allow cookies for this address and start again in your MCP client.")
	case !ok || !s.keys.checkForm(browser, a.id(browser), form.get("token")):
		return consent{}, notOurs("Start again in your MCP client.")
	case late:
		return consent{}, newNotice(http.StatusBadRequest, "This page was open for too long",
			"A request can be answered for ten minutes. Start again in your MCP client.")
	}
	// The client may have been taken away meanwhile, or have lost this address.
	c, err := s.o.Clients.Client(r.Context(), a.ClientID)
	if err != nil {
		return consent{}, unknownClient(err)
	}
	if !c.Redirect(a.RedirectURI) {
		return consent{}, badRequest("It wants to go to an address that is not one of this client's.")
	}
	return consent{client: c, asked: a, form: form.get("request"), choice: readChoice(form)}, nil
}

// readChoice reads how far the person narrows. What is not well-formed narrows to
// nothing.
func readChoice(form fields) choice {
	c := choice{How: form.get("access")}
	if c.How == chooseAll || c.How == chooseRead {
		return c
	}
	c.How = choosePick
	for i := range scope.Areas {
		switch form.get("area." + scope.Area(i)) {
		case "read":
			c.Picked[i] = scope.Read
		case "write":
			c.Picked[i] = scope.Write
		}
	}
	return c
}

// denied sends the person back with a no (RFC 6749 section 4.1.2.1), by a page: the answer
// to a form must not be a redirect to another host.
func (s *Server) denied(w http.ResponseWriter, r *http.Request, c consent) error {
	s.event(r, Event{Name: "consent", Reason: "denied", ClientID: c.client.ID, ClientName: c.client.Name})
	name := displayName(c.client.Name)
	to := s.back(c.asked, "error", codeDenied, "error_description", "the person denied the request")
	s.show(w, r, newNotice(http.StatusOK, "Denied", name+" got no access. You are taken back to it, to hear so.").
		leading(to, "Back to "+name, true))
	return nil
}
