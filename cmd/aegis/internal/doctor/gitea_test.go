package doctor_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"aegis/cmd/aegis/internal/doctor"
	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
)

// behind is a Gitea double, with something in between.
func behind(t *testing.T, between func(http.Handler) http.Handler) (*fakegitea.Server, doctor.Gitea) {
	t.Helper()
	double := fakegitea.New(fakegitea.Options{})
	var h http.Handler = double
	if between != nil {
		h = between(double)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return double, doctor.Gitea{URL: u, HTTP: &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func TestGitea(t *testing.T) {
	t.Parallel()
	double, g := behind(t, nil)
	token := double.Token("alice")
	facts, err := g.Ask(t.Context(), "")
	if err != nil || facts.Version == "" {
		t.Fatal(facts, err)
	}
	u, err := g.Token(t.Context(), token)
	if err != nil || u.Login != "alice" || u.Scopes != nil {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := g.Token(t.Context(), "nonsense"); !errors.Is(err, doctor.ErrToken) {
		t.Error(err)
	}
	if ok, err := g.Slash(t.Context(), token); !ok || err != nil {
		t.Error("%2F does not survive where nothing is in between", err)
	}
	app, err := g.MakeApp(t.Context(), token,
		doctor.App{Name: "Aegis", RedirectURIs: []string{"http://127.0.0.1/oauth/callback"}})
	if err != nil || app.Secret == "" || !app.Confidential {
		t.Fatal(err)
	}
	list, err := g.Apps(t.Context(), token)
	if err != nil || len(list) == 0 || list[0].ClientID != app.ClientID || list[0].Secret != "" {
		t.Error(len(list), err)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	double, g := behind(t, nil)
	few := double.NewToken("alice", "read:user", "write:issue")
	u, err := g.Token(t.Context(), few)
	slices.Sort(u.Scopes)
	if err != nil || strings.Join(u.Scopes, " ") != "read:user write:issue" {
		t.Errorf("%v, %v", u.Scopes, err)
	}
	needed := []string{"read:issue", "write:issue", "write:repository", "read:user"}
	if got := doctor.Missing(u.Scopes, needed); strings.Join(got, " ") != "write:repository" {
		t.Error(got)
	}
	if _, err := g.Apps(t.Context(), few); err != nil {
		t.Error(err) // read:user lists
	}
	if _, err := g.MakeApp(t.Context(), few,
		doctor.App{Name: "x", RedirectURIs: []string{"http://127.0.0.1/x"}}); !errors.Is(err, doctor.ErrScope) {
		t.Error(err)
	}
	f := &findings{}
	doctor.ExamineGitea(t.Context(), doctor.GiteaOptions{
		Gitea: g, Needed: map[string]int{"write:repository": 12, "read:issue": 3},
		Auth: config.Auth{Tokens: []config.Token{{Name: "a", GiteaToken: config.NewSecret(few)}, {Name: "b", GiteaToken: config.NewSecret("nonsense")},
			{Name: "c", GiteaToken: config.NewSecret(double.Token("alice")), AllowSudo: true}}},
	}, f.add)
	for _, want := range []string{"lacks write:repository: at least 12", "does not accept the token",
		"no administrator", "%2F reaches Gitea"} {
		if !strings.Contains(f.text(), want) {
			t.Errorf("no %q in\n%s", want, f.text())
		}
	}
	if strings.Contains(f.text(), "nonsense") || strings.Contains(f.text(), few) {
		t.Error("a token is reported")
	}
}

func TestSlashInBetween(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(http.Handler) http.Handler{
		"decodes": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.URL.RawPath = ""
				next.ServeHTTP(w, r)
			})
		},
		"refuses": only(func(r *http.Request) bool { return strings.Contains(r.URL.RawPath, "%2F") }, 404, "Not Found"),
	} {
		t.Run(name, func(t *testing.T) {
			double, g := behind(t, between)
			if ok, err := g.Slash(t.Context(), double.Token("alice")); ok || err != nil {
				t.Error(ok, err)
			}
		})
	}
}

func TestNotGitea(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"page": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://git.test/x\x1b[31m", http.StatusFound)
		},
		"null": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("null")) },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, g := behind(t, func(http.Handler) http.Handler { return h })
			f := &findings{}
			doctor.ExamineGitea(t.Context(), doctor.GiteaOptions{Gitea: g}, f.add)
			if len(f.list) != 1 || f.list[0].Status != doctor.Failure || strings.Contains(f.text(), "\x1b") {
				t.Error(f.text())
			}
		})
	}
}

func TestOlder(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"1.22.6": true, "1.23.0": false, "28.1.0": false, "1.26.4+dev": false,
		"0.9": true, "x": false, "": false} {
		if got := doctor.Older(version, 1, 23); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestSignInFindings(t *testing.T) {
	t.Parallel()
	_, g := behind(t, nil)
	f := &findings{}
	doctor.ExamineGitea(t.Context(), doctor.GiteaOptions{
		Gitea: g, Auth: config.Auth{OAuth: config.OAuth{Enabled: true}},
		CheckSignIn: func(context.Context) ([]error, []error) {
			return []error{errors.New("it is a public client")}, []error{errors.New("browser_url")}
		},
	}, f.add)
	if got := strings.Join(f.bad(), ", "); got != "failure sign-in, warning sign-in" {
		t.Error(got)
	}
}

// FuzzAnswers: whatever a server says, findings are fit for a terminal.
func FuzzAnswers(f *testing.F) {
	f.Add(403, []byte(`{"message":"token scope=read:user,write:issue"}`))
	f.Add(200, []byte(`{"version":"1.\u001b[31m","login":"a\nb","is_admin":null}`))
	f.Add(302, []byte("null"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		g := doctor.Gitea{URL: &url.URL{Scheme: "http", Host: "gitea.test"},
			HTTP: &http.Client{Transport: says{status, body}}}
		got := &findings{}
		doctor.ExamineGitea(t.Context(), doctor.GiteaOptions{
			Gitea: g, Needed: map[string]int{"read:user": 1},
			Auth: config.Auth{Tokens: []config.Token{{Name: "a", GiteaToken: config.NewSecret("t")}}},
		}, got.add)
		if len(got.list) == 0 {
			t.Fatal("nothing was found")
		}
		for _, x := range got.list {
			for _, r := range x.Message {
				if r < ' ' || r == 0x7f || r == 0x9b {
					t.Fatalf("%q", x.Message)
				}
			}
		}
	})
}

// says answers every request alike.
type says struct {
	status int
	body   []byte
}

func (s says) RoundTrip(*http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	rec.Header().Set("Location", "x\x1b")
	rec.WriteHeader(s.status)
	_, _ = rec.Write(s.body)
	return rec.Result(), nil
}
