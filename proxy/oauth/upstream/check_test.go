package upstream_test

import (
	"net/http"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/oauth/upstream"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	version := func(body string, status int) func(*lab, *upstream.Options) {
		return func(l *lab, _ *upstream.Options) {
			l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/api/v1/version" {
					writeJSON(w, status, body)
				}
				return r.URL.Path == "/api/v1/version"
			})
		}
	}
	for name, c := range map[string]struct {
		spoil             func(l *lab, o *upstream.Options)
		problems, warning string
	}{
		"all is well":    {func(*lab, *upstream.Options) {}, "", ""},
		"wrong secret":   {func(_ *lab, o *upstream.Options) { o.Config.ClientSecret = config.NewSecret("gto_wrong") }, "client_secret", ""},
		"wrong id":       {func(_ *lab, o *upstream.Options) { o.Config.ClientID = "nobody" }, "client_id", ""},
		"wrong redirect": {func(_ *lab, o *upstream.Options) { o.RedirectURL = "https://elsewhere/oauth/callback" }, "https://elsewhere/oauth/callback", ""},
		"public app": {func(l *lab, o *upstream.Options) {
			id, secret := l.RegisterOAuthApp("open", false, callback)
			o.Config.ClientID, o.Config.ClientSecret = id, config.NewSecret(secret)
		}, "Confidential Client", ""},
		"old":            {version(`{"version":"1.22.3"}`, 200), "1.23 or newer", ""},
		"version hidden": {version(`{"message":"no"}`, 403), "", "first sign-in"},
		"other browser URL": {func(_ *lab, o *upstream.Options) {
			o.Config.BrowserURL = &config.URL{}
			_ = o.Config.BrowserURL.UnmarshalText([]byte("https://elsewhere.example"))
		}, "", "browser_url"},
		"provider off": {func(l *lab, _ *upstream.Options) {
			l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/api/") {
					return false
				}
				writeJSON(w, 404, `{}`)
				return true
			})
		}, "no OAuth provider", "token endpoint"},
		"down": {func(l *lab, _ *upstream.Options) {
			l.FailOAuth(fakegitea.OAuthFault{Kind: fakegitea.FaultDown})
		}, "", "openid-configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, false)
			g := l.replica(func(o *upstream.Options) { c.spoil(l, o) })
			problems, warnings := g.Check(t.Context())
			said := func(what string, errs []error, want string) {
				t.Helper()
				var all strings.Builder
				for _, err := range errs {
					all.WriteString(err.Error() + "\n")
				}
				if (want == "") != (len(errs) == 0) || !strings.Contains(all.String(), want) {
					t.Errorf("%s: want %q, got %q", what, want, all.String())
				}
				if strings.Contains(all.String(), l.secret) || strings.Contains(all.String(), "gto_") {
					t.Errorf("the secret is told: %s", all.String())
				}
			}
			said("problems", problems, c.problems)
			said("warnings", warnings, c.warning)
		})
	}
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"1.22.6": true, "1.9.0": true, "0.9.99": true, "v1.21.0": true, "1.22.0+dev-12-gabc": true, "1.22": true,
		"1.23.0": false, "1.26.4": false, "28.1.0": false, "1.23.0-rc0": false, "1.23": false, "main-298d73cde6": false, "": false,
		"7.0.0+gitea-1.22.0": true, "11.0.1+gitea-1.22.0": true, "12.0.0+gitea-1.24.0": false,
	} {
		if upstream.TooOld(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}
