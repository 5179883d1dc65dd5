package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"aegis/proxy"
)

// Since 1.23 Gitea honours scopes of OAuth tokens; before, every token was good
// for everything.
const oldestMajor, oldestMinor = 1, 23

// keepVersion is how long an answer about the version is believed.
const keepVersion = 10 * time.Minute

// errHidden: Gitea hides its version from this caller.
var errHidden = errors.New("gitea hides its version")

// granular returns an error when Gitea is too old for scopes. Without a token, a
// Gitea that shows its version to no one passes: granular is then asked again
// with the token of the sign-in, before that is kept.
func (g *Gitea) granular(ctx context.Context, token string) error {
	if until := g.newEnough.Load(); until != nil && g.o.Now().Before(*until) {
		return nil
	}
	version, scoped, err := g.askVersion(ctx, token)
	switch {
	case errors.Is(err, errHidden) && token == "":
		return nil
	case err != nil:
		return unavailable(textDown, err)
	case !scoped && tooOld(version):
		return misconfigured(textOld, fmt.Errorf("gitea %s", version))
	}
	// For all users: it is the same Gitea.
	until := g.o.Now().Add(keepVersion)
	g.newEnough.Store(&until)
	return nil
}

// askVersion asks for Gitea's version. scoped: Gitea refuses to say it for want
// of a scope, and so knows scopes.
func (g *Gitea) askVersion(ctx context.Context, token string) (version string, scoped bool, err error) {
	status, body, err := g.get(ctx, "/api/v1/version", token)
	if err != nil {
		return "", false, err
	}
	if status == http.StatusForbidden && token != "" && lacksScope(body) {
		return "", true, nil
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return "", false, errHidden
	}
	var answer struct {
		Version string `json:"version"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.Version == "" {
		return "", false, &failure{status: status, what: "not an answer of Gitea's version endpoint"}
	}
	return printable(answer.Version, 60), false, nil
}

// tooOld reports whether a version is known to be one without scopes. A version
// that cannot be read is a development build's.
func tooOld(version string) bool {
	if _, of, ok := strings.Cut(version, "+gitea-"); ok {
		version = of // Forgejo says which Gitea it is like
	}
	var major, minor int
	n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor)
	return n > 0 && major < oldestMajor || n > 1 && major == oldestMajor && minor < oldestMinor
}

// printable returns what a log can hold of a text of Gitea's, cut to most bytes. Letters of
// other scripts stay, as host names have them; characters that cannot be seen go.
func printable(s string, most int) string {
	return proxy.Clip(strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s), most)
}

// get asks Gitea's side that programs use, with a token when there is one.
func (g *Gitea) get(ctx context.Context, path, token string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.pace.ask)
	defer cancel()
	req, err := g.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	status, body, err = g.do(req)
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, nil, nil
	}
	return status, body, err
}

// lacksScope reports whether a 403 of Gitea's is for want of a scope.
func lacksScope(body []byte) bool {
	var answer struct {
		Message string `json:"message"`
	}
	return json.Unmarshal(body, &answer) == nil && strings.Contains(answer.Message, "required scope")
}
