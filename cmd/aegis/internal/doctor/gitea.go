package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Gitea is the server behind Aegis, without Aegis in between.
type Gitea struct {
	// URL is its base address, without /api/v1.
	URL *url.URL
	// HTTP sends the requests; it must not follow redirects. Required.
	HTTP *http.Client
}

// Facts are what Gitea says of itself.
type Facts struct {
	Version string
	// Date is the Date header of its answer.
	Date string
	// Hidden is set when it tells its version to signed-in users only.
	Hidden bool
}

// ErrNotGitea is returned when another program answers.
var ErrNotGitea = errors.New("the server there is not Gitea; " +
	"give its base address with its sub-path and without /api/v1")

// Ask returns what Gitea says of itself. token may be "". It is asked without a token:
// an answer shows that the address is right before a person makes one.
func (g Gitea) Ask(ctx context.Context, token string) (Facts, error) {
	res, body, err := g.get(ctx, "/version", token)
	if err != nil {
		return Facts{}, fmt.Errorf("Gitea does not answer: %s", reason(err))
	}
	f := Facts{Date: res.Header.Get("Date")}
	var v struct{ Version string }
	switch {
	// With REQUIRE_SIGNIN_VIEW Gitea answers nothing to strangers.
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		f.Hidden = true
		return f, nil
	// Following it would send the token of a later request to wherever it leads.
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return f, fmt.Errorf("Gitea redirects to another address; use that one: %s", clean(res.Header.Get("Location")))
	case res.StatusCode != http.StatusOK || json.Unmarshal(body, &v) != nil || v.Version == "":
		return f, ErrNotGitea
	}
	f.Version = clean(v.Version)
	return f, nil
}

// Older reports whether a version of Gitea is below major.minor. What cannot be read is
// not. Forks have versions of their own form, and a check that cannot tell must not
// fail.
func Older(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a < major || a == major && b < minor)
}

// User is whose a token is and what it may do.
type User struct {
	Login string
	Admin bool
	// Scopes are the token's; nil: all, or all that is known is that it has
	// read:admin.
	Scopes []string
}

// ErrToken is returned for a token that Gitea does not know.
var ErrToken = errors.New("Gitea does not accept the token; make one in Gitea under Settings, Applications")

// Token asks whose a token is. Its scopes come from the refusal of a route that
// hardly any token may use: Gitea lists them there.
func (g Gitea) Token(ctx context.Context, token string) (User, error) {
	res, body, err := g.get(ctx, "/admin/cron?page=1&limit=1", token)
	if err != nil {
		return User{}, fmt.Errorf("Gitea does not answer: %s", reason(err))
	}
	if res.StatusCode == http.StatusUnauthorized {
		return User{}, ErrToken
	}
	// No route tells a token its own scopes.
	u := User{Scopes: scopesIn(body)}
	if u.Scopes != nil && !covers(u.Scopes, "read:user") {
		return u, nil // the API does not say whose it is without read:user
	}
	res, body, err = g.get(ctx, "/user", token)
	if err != nil {
		return u, fmt.Errorf("Gitea does not answer: %s", reason(err))
	}
	var who struct {
		Login string
		Admin bool `json:"is_admin"`
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return u, ErrToken
	case res.StatusCode != http.StatusOK || json.Unmarshal(body, &who) != nil || who.Login == "":
		return u, ErrNotGitea
	}
	u.Login, u.Admin = clean(who.Login), who.Admin
	return u, nil
}

// scopesIn reads the scopes that a refusal names, nil when it names none.
func scopesIn(body []byte) []string {
	var e struct{ Message string }
	if json.Unmarshal(body, &e) != nil {
		return nil
	}
	// The text is not part of the API. When it changes, scopes are unknown, and nothing
	// is reported of them.
	_, list, ok := strings.Cut(e.Message, "token scope=")
	if !ok {
		return nil
	}
	scopes := []string{}
	for s := range strings.SplitSeq(list, ",") {
		if s = clean(strings.TrimSpace(s)); s != `""` {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// covers reports whether scopes include one; write includes read.
func covers(scopes []string, scope string) bool {
	if slices.Contains(scopes, scope) || slices.Contains(scopes, "all") {
		return true
	}
	category, ok := strings.CutPrefix(scope, "read:")
	return ok && slices.Contains(scopes, "write:"+category)
}

// Missing returns which of the needed scopes a token's lack; nil scopes lack none.
func Missing(scopes, needed []string) (missing []string) {
	if scopes == nil {
		return nil
	}
	for _, n := range needed {
		if !covers(scopes, n) && !slices.Contains(missing, n) {
			missing = append(missing, n)
		}
	}
	slices.Sort(missing)
	return missing
}

// Slash reports whether %2F survives on the way to Gitea. A user name with a slash
// is unknown to Gitea itself, which says so in JSON; a decoded slash makes
// another route, which answers otherwise.
func (g Gitea) Slash(ctx context.Context, token string) (survives bool, err error) {
	encoded, one, err := g.get(ctx, "/users/aegis%2Fdoctor", token)
	if err != nil {
		return false, err
	}
	plain, two, err := g.get(ctx, "/users/aegis/doctor", token)
	if err != nil {
		return false, err
	}
	isJSON := strings.HasPrefix(encoded.Header.Get("Content-Type"), "application/json") && json.Valid(one)
	// A server that wants a sign-in answers the same to both, and says nothing of
	// slashes.
	same := encoded.StatusCode == plain.StatusCode && string(one) == string(two)
	return isJSON && (!same || encoded.StatusCode == http.StatusUnauthorized ||
		encoded.StatusCode == http.StatusForbidden), nil
}

// giteaTimeout bounds one request to Gitea.
const giteaTimeout = 10 * time.Second

func (g Gitea) get(ctx context.Context, path, token string) (*http.Response, []byte, error) {
	return g.send(ctx, http.MethodGet, path, token, nil)
}

// send sends one request. Errors lose the address that the standard library puts before
// them: it may hold credentials.
func (g Gitea) send(ctx context.Context, method, path, token string, body io.Reader) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, giteaTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(g.URL.String(), "/")+"/api/v1"+path, body)
	if err != nil {
		return nil, nil, errors.New("the address is not a URL")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "aegis-doctor")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	res, err := g.HTTP.Do(req)
	if err != nil {
		return nil, nil, errors.New(reason(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, nil, errors.New(reason(err))
	}
	return res, text, nil
}
