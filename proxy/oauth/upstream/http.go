package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"aegis/proxy"
)

const (
	// maxAnswer bounds a body of Gitea; a page of 50 organisations is a tenth of it.
	maxAnswer = 1 << 20
	// maxToken bounds a token; Gitea's have under 1,000 characters.
	maxToken = 8 << 10
	// maxScope bounds a grant's scope; all words of Gitea make 300 characters.
	maxScope = 4 << 10
	// maxLogin bounds a login; Gitea's have at most 40 characters.
	maxLogin = 255
	// maxRetryAfter bounds what a proxy before Gitea may ask for.
	maxRetryAfter = 10 * time.Minute
)

// harden returns a client over c's transport that follows no redirect, keeps no
// cookie, and hands nothing but JSON to the reader.
func harden(c *http.Client) *http.Client {
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	return &http.Client{
		Transport:     jsonOnly{next},
		Timeout:       c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// failure is what came back instead of Gitea's word: no answer, or one of
// a server in between. It says nothing about a credential.
type failure struct {
	status     int
	retryAfter time.Duration
	what       string
}

func (f *failure) Error() string {
	if f.status == 0 {
		return f.what
	}
	return fmt.Sprintf("status %d: %s", f.status, f.what)
}

// refusal is Gitea's own word: an error of RFC 6749 5.2, or a 401.
type refusal struct {
	status int
	code   string
	// reason is the phrase of reasons that error_description has, "" when it has
	// none: the rest could say anything.
	reason string
	// basic: the challenge is for the client's id and secret.
	basic bool
}

// Error returns the status, the code and the reason.
func (r *refusal) Error() string {
	s := fmt.Sprintf("status %d: %s", r.status, r.code)
	if r.reason != "" {
		s += ": " + r.reason
	}
	return s
}

// jsonOnly turns answers that are not JSON into a failure. Without it x/oauth2
// would read a text/plain page as a form, and a token out of it.
type jsonOnly struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (j jsonOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := j.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "application/json" {
		return resp, nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can serve again
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		challenge := resp.Header.Get("WWW-Authenticate")
		return nil, &refusal{
			status: resp.StatusCode, code: "not authorized",
			basic: strings.HasPrefix(challenge, "Basic") && strings.Contains(challenge, "Gitea"),
		}
	}
	return nil, failed(resp, "the answer is not JSON")
}

// failed is a failure that says itself when to come back.
func failed(resp *http.Response, what string) *failure {
	wait := proxy.RetryAfter(resp.Header, time.Now(), maxRetryAfter)
	return &failure{status: resp.StatusCode, what: what, retryAfter: wait}
}

// trouble cuts an error of net/http or x/oauth2 down to a [failure] or
// [refusal]: the original may hold the answer's body, and with it a token.
func trouble(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return answered(answer)
	}
	_, lost := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{what: "no answer in time"}
	case errors.Is(err, context.Canceled):
		return &failure{what: "given up"}
	case lost:
		return &failure{what: "no connection or no answer"}
	}
	return &failure{what: "the answer makes no sense"}
}

// answered reads an error answer in JSON. Gitea's token endpoint always answers
// 400; anything else is of a server in between or of a Gitea in trouble.
func answered(e *oauth2.RetrieveError) error {
	const foreign = "not an answer of Gitea's token endpoint"
	if e.Response == nil {
		return &failure{what: foreign}
	}
	status := e.Response.StatusCode
	said := status == http.StatusBadRequest || status == http.StatusUnauthorized && e.ErrorCode == codeClient
	if said && slices.Contains(codes, e.ErrorCode) {
		return &refusal{status: status, code: e.ErrorCode, reason: reasonIn(e.ErrorDescription)}
	}
	return failed(e.Response, foreign)
}

// The error codes of RFC 6749 section 5.2 that decide something.
const (
	codeClient       = "invalid_client"
	codeGrant        = "invalid_grant"
	codeUnauthorized = "unauthorized_client"
)

// codes are the error codes of Gitea's token endpoint.
var codes = []string{
	codeClient, codeGrant, codeUnauthorized, "invalid_request", "unsupported_grant_type", "invalid_scope",
}

// oauthContext makes x/oauth2 use g's client.
func (g *Gitea) oauthContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, g.o.HTTP)
}

// introspection is the answer of RFC 7662 as far as it is needed.
type introspection struct {
	id    int64
	login string
	scope string
}

// errInactive: Gitea does not take the token for a live one.
var errInactive = errors.New("gitea says that the token is not active")

// introspect asks Gitea whose token it is and what it may do. The error is
// errInactive, a [failure] or a [refusal].
func (g *Gitea) introspect(ctx context.Context, token string) (*introspection, error) {
	ctx, cancel := context.WithTimeout(ctx, g.pace.ask)
	defer cancel()
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := g.request(ctx, http.MethodPost, "/login/oauth/introspect", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// RFC 7662 section 2.1: the endpoint is for the application alone.
	req.SetBasicAuth(g.conf.ClientID, g.o.Config.ClientSecret.Reveal())
	status, body, err := g.do(req)
	r, refused := errors.AsType[*refusal](err)
	switch {
	case refused && r.status == http.StatusUnauthorized && !r.basic:
		// Up to 1.26 the form's token is taken for an API token before the
		// endpoint sees it; a dead one is refused there.
		return nil, errInactive
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, &failure{status: status, what: "not an answer of Gitea's introspection endpoint"}
	}
	return readIntrospection(body, g.conf.ClientID)
}

// readIntrospection reads the answer of the introspection endpoint.
func readIntrospection(body []byte, clientID string) (*introspection, error) {
	var a struct {
		Active   *bool    `json:"active"`
		Scope    string   `json:"scope"`
		Username string   `json:"username"`
		Subject  string   `json:"sub"`
		Audience audience `json:"aud"`
	}
	if json.Unmarshal(body, &a) != nil || a.Active == nil || len(a.Scope) > maxScope {
		return nil, &failure{status: http.StatusOK, what: "the introspection answer makes no sense"}
	}
	if !*a.Active {
		return nil, errInactive
	}
	id, err := strconv.ParseInt(a.Subject, 10, 64)
	switch {
	case err != nil || id <= 0:
		return nil, &failure{status: http.StatusOK, what: "the introspection answer names no user"}
	case !validLogin(a.Username):
		return nil, &failure{status: http.StatusOK, what: "the introspection answer has no usable login"}
	case !a.Audience.has(clientID):
		return nil, &failure{status: http.StatusOK, what: "the introspection answer is about another application"}
	}
	return &introspection{id: id, login: a.Username, scope: a.Scope}, nil
}

// audience is aud of RFC 7519: one string or a list of them.
type audience []string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

func (a audience) has(id string) bool {
	return id != "" && slices.Contains(a, id)
}

// validLogin reports whether s can be a Gitea user name; it ends up in logs and
// on pages.
func validLogin(s string) bool {
	return s != "" && len(s) <= maxLogin && isVisible(s) && !strings.Contains(s, "/")
}

// isVisible reports whether s is of visible ASCII characters alone.
func isVisible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// request makes a request for JSON below Gitea's address.
func (g *Gitea) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.api.String()+path, body)
	if err != nil {
		return nil, &failure{what: "no request can be made for gitea.url"}
	}
	req.Header.Set("Accept", "application/json")
	return req, nil
}

// do sends a request and reads a JSON answer of at most maxAnswer bytes.
func (g *Gitea) do(req *http.Request) (status int, body []byte, err error) {
	resp, err := g.o.HTTP.Do(req)
	if err != nil {
		return 0, nil, trouble(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, &failure{status: resp.StatusCode, what: "the answer broke off"}
	case len(body) > maxAnswer:
		return 0, nil, &failure{status: resp.StatusCode, what: "the answer is too long"}
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return 0, nil, failed(resp, "an error of the server")
	}
	return resp.StatusCode, body, nil
}
