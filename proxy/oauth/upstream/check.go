package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// probeCode is a code that Gitea never gave out. Gitea looks at the application,
// its secret, the redirect URI and the code in this order, and its refusal says
// how far the request got.
const probeCode = "aegis-start-up-check"

// Check asks Gitea, at the start, whether the set-up can work. problems must be
// solved before people can sign in; warnings are what could not be found out (a
// Gitea that is down is no reason not to start) or looks odd.
func (g *Gitea) Check(ctx context.Context) (problems, warnings []error) {
	ctx, cancel := context.WithTimeout(ctx, g.pace.lease)
	defer cancel()
	sort := func(err error) {
		if e, ok := errors.AsType[*Error](err); ok && e.Kind == Config {
			problems = append(problems, errors.New(e.Public))
		} else if err != nil {
			warnings = append(warnings, err)
		}
	}
	sort(g.checkVersion(ctx))
	sort(g.checkDiscovery(ctx))
	err := g.checkClient(ctx)
	sort(err)
	if err == nil { // else the answer would be about the same trouble
		sort(g.checkConfidential(ctx))
	}
	return problems, warnings
}

// checkVersion looks whether Gitea is one that holds OAuth tokens to their scopes.
func (g *Gitea) checkVersion(ctx context.Context) error {
	version, _, err := g.askVersion(ctx, "")
	switch {
	case errors.Is(err, errHidden):
		return errors.New("gitea.url: Gitea does not tell its version without a sign-in; " +
			"it must be 1.23 or newer, which is checked at the first sign-in")
	case err != nil:
		return fmt.Errorf("gitea.url: Gitea's version cannot be read: %w", err)
	case tooOld(version):
		return problem("gitea.url: this is Gitea %s, which gives an application full access whatever is asked for; "+
			"auth.oauth needs 1.23 or newer", version)
	}
	return nil
}

// checkDiscovery compares where Gitea says its sign-in page is with where
// browsers will be sent.
func (g *Gitea) checkDiscovery(ctx context.Context) error {
	status, body, err := g.get(ctx, "/.well-known/openid-configuration", "")
	if err != nil {
		return fmt.Errorf("auth.oauth: Gitea's openid-configuration cannot be read: %w", err)
	}
	if status == http.StatusNotFound {
		return problem("auth.oauth: Gitea has no OAuth provider at gitea.url; " +
			"switch it on ([oauth2] ENABLED in app.ini) or correct gitea.url")
	}
	var answer struct {
		Authorize string `json:"authorization_endpoint"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.Authorize == "" {
		return fmt.Errorf("auth.oauth: gitea.url/.well-known/openid-configuration is not Gitea's (status %d); "+
			"correct gitea.url", status)
	}
	if !strings.EqualFold(answer.Authorize, g.conf.Endpoint.AuthURL) {
		return fmt.Errorf("auth.oauth.browser_url: browsers are sent to %s, Gitea itself says %s; "+
			"set browser_url to Gitea's ROOT_URL", g.conf.Endpoint.AuthURL, printable(answer.Authorize, 300))
	}
	return nil
}

// checkClient offers a false code: Gitea must come as far as refusing that.
func (g *Gitea) checkClient(ctx context.Context) error {
	_, err := g.trade(ctx, g.oauth(), probeCode, probeCode)
	e := refusedCode(err)
	switch {
	case err == nil:
		return problem("auth.oauth: gitea.url accepts a code that it never gave out; it is not Gitea")
	case e.Kind == Config && strings.HasPrefix(e.Public, textRedirect):
		return problem("auth.oauth.client_id: the application in Gitea lacks the redirect URI %s; add it there",
			g.conf.RedirectURL)
	case e.Kind == Config:
		return problem("auth.oauth.client_id, auth.oauth.client_secret: Gitea knows no such application, " +
			"or its secret is another; copy both from the application's page in Gitea (a new secret can be made there)")
	case e.Kind == Unavailable:
		return fmt.Errorf("auth.oauth: Gitea's token endpoint gives no answer to judge by: %w", e.Err)
	}
	return nil
}

// checkConfidential offers the false code without the secret: an application
// that comes as far again needs none, and everybody could be it.
func (g *Gitea) checkConfidential(ctx context.Context) error {
	_, err := g.trade(ctx, &g.conf, probeCode, probeCode) // g.conf has no secret
	if err == nil || refusedCode(err).Kind != Denied {
		return nil
	}
	return problem("auth.oauth.client_id: the application in Gitea is a public client; " +
		`tick "Confidential Client" on its page, or anybody can take Aegis' place`)
}

// problem is what the operator must solve before people can sign in.
func problem(format string, args ...any) *Error {
	return misconfigured(fmt.Sprintf(format, args...), nil)
}
