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
// asks for and shows the consent page. It stores nothing, signs nobody in and asks
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

// sendBack tells a client what is wrong with its request. Nobody has agreed to
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
	return &notice{status: http.StatusBadRequest, Title: "This sign-in request is not right",
		Text: []string{says, "Start again in your MCP client. If that does not help, remove this server there and add it again."}}
}

// whoAsks finds the client and checks where it may be sent back to. Whatever is
// wrong here is shown to the person: there is no address yet that could be told.
func (s *Server) whoAsks(r *http.Request, q fields) (*client.Client, asked, error) {
	id, once := q.get("client_id")
	uri, onceURI := q.get("redirect_uri")
	switch {
	case !once || !onceURI:
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

// safeRedirect is a second look at an address before a browser is sent there; the
// client's own rules stand before it.
func safeRedirect(uri string) bool {
	for i := range len(uri) {
		if uri[i] <= ' ' || uri[i] >= 0x7f || uri[i] == '\\' || uri[i] == '#' {
			return false
		}
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" || u.User != nil || u.Opaque != "" {
		return false
	}
	switch u.Scheme {
	case "javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source":
		return false
	}
	return u.Host != ""
}

// unknownClient explains why there is no client.
func unknownClient(err error) error {
	var ce *client.Error
	if !errors.As(err, &ce) {
		return err
	}
	says, _, _ := strings.Cut(ce.Public, "; remove ") // which the second sentence says to people
	n := &notice{status: http.StatusBadRequest, Title: "Aegis does not know this client", cause: ce.Err,
		Text: []string{sentence(says), "In your MCP client, remove this server and add it again; it then makes itself known anew."}}
	switch ce.Kind {
	case client.Refused:
		n.Title, n.Text = "Aegis does not accept this client", []string{sentence(ce.Public), "Tell whoever runs this server if it should."}
	case client.Unavailable:
		n.status, n.Title = http.StatusServiceUnavailable, "Aegis cannot learn about this client now"
		n.Text = []string{sentence(ce.Public), "Wait a moment and load this page again."}
	}
	return n
}

// sentence makes a sentence of a text that is written as a part of one.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// whatAsks checks the rest of a request, whose failures go to the client. Unknown
// parameters are ignored, and so are prompt, login_hint and the like, which ask
// for what the consent page does anyway.
func (s *Server) whatAsks(q fields, a *asked) *failure {
	if q.twice("state", "response_type", "response_mode", "code_challenge", "code_challenge_method", "scope", "request", "request_uri") {
		return invalid("a parameter comes more than once")
	}
	value := func(name string) string { v, _ := q.get(name); return v }
	switch mode := value("response_type"); {
	case mode == "":
		return invalid("response_type is missing; use code")
	case mode != "code":
		return &failure{code: codeResponseType, says: "the only response_type is code"}
	}
	switch mode := value("response_mode"); {
	case mode != "" && mode != "query":
		return invalid("the only response_mode is query")
	case value("request") != "":
		return &failure{code: "request_not_supported", says: "send the parameters by themselves"}
	case value("request_uri") != "":
		return &failure{code: "request_uri_not_supported", says: "send the parameters by themselves"}
	case value("code_challenge") == "":
		return invalid("code_challenge is missing; PKCE with S256 is needed")
	case value("code_challenge_method") != "S256":
		return invalid("code_challenge_method must be S256")
	case !isChallenge(value("code_challenge")):
		return invalid("code_challenge must be the base64url of a SHA-256, 43 characters")
	}
	if len(q["resource"]) > 1 {
		return &failure{code: codeTarget, says: "ask for one resource"}
	}
	resource, ok := s.resource(value("resource"))
	if !ok {
		return &failure{code: codeTarget, says: "resource is no endpoint of this server"}
	}
	a.Challenge, a.Resource = value("code_challenge"), resource
	if a.Scopes = scope.Within(strings.Fields(value("scope")), s.allowed); len(a.Scopes) == 0 {
		a.Scopes = s.baseline
	}
	return nil
}

// isChallenge reports whether s is an S256 challenge (RFC 7636 section 4.2).
func isChallenge(s string) bool {
	if len(s) != 43 {
		return false
	}
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
