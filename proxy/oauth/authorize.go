package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/scope"
)

// authorize answers /authorize (RFC 6749 section 4.1.1): it checks what the client
// asks for and shows the consent page. It stores nothing, makes no session and asks
// Gitea nothing.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) error {
	if len(r.URL.RawQuery) > maxQuery {
		return badRequest("The address that your client opened is too long.")
	}
	q, ok := parseFields(r.URL.RawQuery)
	if !ok {
		return badRequest("The address that your client opened cannot be read.")
	}
	c, a, err := s.whoAsks(r, q)
	if err != nil {
		return err
	}
	if f := s.whatAsks(q, &a); f != nil {
		return s.sendBack(w, c, a, f)
	}
	return s.askPerson(w, r, consent{client: c, asked: a})
}

// sendBack says to a client what is wrong with its request. No person has agreed to
// anything yet, and anybody can make a client known that leads to a web site of
// theirs: such an address is shown and not followed, so that links to Aegis cannot
// be made to lead elsewhere (RFC 9700 section 4.11.2).
func (s *Server) sendBack(w http.ResponseWriter, c *client.Client, a asked, f *failure) error {
	to := s.back(a, "error", f.code, "error_description", f.says)
	if c.Kind == client.Static || !strings.HasPrefix(a.RedirectURI, "https:") {
		s.redirect(w, to)
		return nil
	}
	n := badRequest(sentence(f.says))
	host, _ := redirectHost(a.RedirectURI)
	n.Link = &link{URL: address(to), Text: "Back to " + host}
	return n
}

func badRequest(says string) *notice {
	return newNotice(http.StatusBadRequest, "This sign-in request is not right", says,
		"Start again in your MCP client. If that does not help, remove this server there and add it again.")
}

// whoAsks finds the client and checks where it may be sent back to. What is wrong
// here is shown to the person: there is no address yet that it could be sent to.
func (s *Server) whoAsks(r *http.Request, q fields) (*client.Client, asked, error) {
	id, uri := q.get("client_id"), q.get("redirect_uri")
	switch {
	case q.twice("client_id", "redirect_uri"):
		return nil, asked{}, badRequest("It names its client or its address more than once.")
	case id == "":
		return nil, asked{}, badRequest("It does not say which client it comes from (client_id).")
	case uri == "":
		return nil, asked{}, badRequest("It does not say where to go afterwards (redirect_uri).")
	}
	c, err := s.o.Clients.Client(r.Context(), id)
	if err != nil {
		return nil, asked{}, unknownClient(err)
	}
	if !c.Redirect(uri) || !safeRedirect(uri) {
		return nil, asked{}, badRequest("It wants to go to an address that is not one of this client's.")
	}
	a := asked{ClientID: c.ID, RedirectURI: uri}
	if state := q["state"]; len(state) == 1 {
		a.State = []byte(state[0]) // also when it is empty: it goes back as it came
	}
	return c, a, nil
}

// safeRedirect is a second look at an address before a browser is sent there, after
// the client's own rules.
func safeRedirect(uri string) bool {
	unclean := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' || r == '#' }
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" || u.User != nil || u.Opaque != "" || strings.ContainsFunc(uri, unclean) {
		return false
	}
	switch u.Scheme {
	case "javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source":
		return false
	}
	return u.Host != ""
}

// unknownClient explains why there is no client. It is a page and never a redirect: no
// address of an unknown client can be trusted (RFC 6749 section 4.1.2.1).
func unknownClient(err error) error {
	ce, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	var n *notice
	switch ce.Kind {
	case client.Refused:
		n = newNotice(http.StatusBadRequest, "Aegis does not accept this client",
			sentence(ce.Public), "Tell whoever runs this server if it should.")
	case client.Unavailable:
		n = newNotice(http.StatusServiceUnavailable, "Aegis cannot learn about this client now",
			sentence(ce.Public), "Wait a moment and load this page again.")
	default:
		says, _, _ := strings.Cut(ce.Public, "; remove ") // which the second sentence says to people
		n = newNotice(http.StatusBadRequest, "Aegis does not know this client", sentence(says),
			"In your MCP client, remove this server and add it again; it then makes itself known anew.")
	}
	n.cause = ce.Err
	return n
}

// sentence makes a sentence of a text that is written as a part of one.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// whatAsks checks the rest of a request, whose failures go to the client. Unknown
// parameters are ignored, and so are prompt, login_hint and the like, which ask
// for what the consent page does anyway.
func (s *Server) whatAsks(q fields, a *asked) *failure {
	if q.twice("state", "response_type", "response_mode", "code_challenge", "code_challenge_method", "scope",
		"request", "request_uri") {
		return invalid("a parameter comes more than once")
	}
	challenge := q.get("code_challenge")
	switch {
	case q.get("response_type") == "":
		return invalid("response_type is missing; use code")
	case q.get("response_type") != "code":
		return bad(codeResponseType, "the only response_type is code")
	case q.get("response_mode") != "" && q.get("response_mode") != "query":
		return invalid("the only response_mode is query")
	case q.get("request") != "":
		return bad("request_not_supported", "send the parameters by themselves")
	case q.get("request_uri") != "":
		return bad("request_uri_not_supported", "send the parameters by themselves")
	case challenge == "":
		return invalid("code_challenge is missing; PKCE with S256 is needed")
	case q.get("code_challenge_method") != "S256":
		return invalid("code_challenge_method must be S256")
	case !isChallenge(challenge):
		return invalid("code_challenge must be the base64url of a SHA-256, 43 characters")
	}
	resource, f := s.oneResource(q)
	if f != nil {
		return f
	}
	if resource == "" {
		resource = s.o.Resources[0]
	}
	a.Challenge, a.Resource = challenge, resource
	if a.Scopes = scope.Within(strings.Fields(q.get("scope")), s.allowed); len(a.Scopes) == 0 {
		a.Scopes = s.baseline
	}
	return nil
}

// isChallenge reports whether s is an S256 challenge (RFC 7636 section 4.2).
func isChallenge(s string) bool {
	return len(s) == 43 &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
