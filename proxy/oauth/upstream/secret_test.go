package upstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/oauth/upstream"
)

// TestNoSecretIsTold: servers in between repeat what they were sent in every way
// that x/oauth2 or net/http would quote, and the network fails; no error, event
// or print of a value holds a token, the code, the verifier or the secret.
func TestNoSecretIsTold(t *testing.T) {
	t.Parallel()
	echo := func(status int, contentType, format string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/login/oauth/") && !strings.HasPrefix(r.URL.Path, "/api/v1/user/") {
				return false
			}
			_ = r.ParseForm()
			said := strings.Join([]string{r.FormValue("refresh_token"), r.FormValue("code"), r.FormValue("code_verifier"), r.FormValue("token"),
				r.FormValue("client_secret"), r.Header.Get("Authorization")}, " ")
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Location", "/?leak="+said)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, format, said)
			return true
		}
	}
	for name, hook := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"page":            echo(200, "text/html", "<pre>%s</pre>"),
		"page with 502":   echo(502, "text/html", "<pre>%s</pre>"),
		"JSON string":     echo(200, "application/json", `"%s"`),
		"broken JSON":     echo(200, "application/json", `%s`),
		"expires_in":      echo(200, "application/json", `{"access_token":"a","expires_in":"%s"}`),
		"token type":      echo(200, "application/json", `{"access_token":"a","refresh_token":"b","token_type":"%s"}`),
		"description":     echo(400, "application/json", `{"error":"invalid_grant","error_description":"%s already used"}`),
		"error":           echo(400, "application/json", `{"error":"%s"}`),
		"unauthorized":    echo(401, "application/json", `{"error":"invalid_client","error_description":"%s"}`),
		"error 500":       echo(500, "application/json", `{"error":"%s"}`),
		"redirect":        echo(307, "text/html", "%s"),
		"redirect, JSON":  echo(302, "application/json", `{"message":"%s"}`),
		"forbidden, JSON": echo(403, "application/json", `{"message":"required scope %s"}`),
		"broken off": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/login/oauth/") {
				return false
			}
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, false)
			g := l.replica(nil)
			u := l.signIn(g, "alice")
			cred := l.must(g, u.ID)
			code, verifier := l.code(g, "bob")
			entry, err := l.store.Get(t.Context(), "cred/"+itoa(u.ID))
			if err != nil {
				t.Fatal(err)
			}
			var record struct{ Access, Refresh string }
			if err := json.Unmarshal(entry.Value, &record); err != nil || record.Access == "" || record.Refresh == "" {
				t.Fatal("no tokens in the record")
			}
			secrets := []string{record.Access, record.Refresh, cred.Token.Secret(), code, verifier, l.secret, "sentinel-access", "sentinel-refresh"}
			var told strings.Builder
			tell := func(v any) {
				_, _ = fmt.Fprintf(&told, "%v\n%+v\n%#v\n%s\n%q\n", v, v, v, v, v)
				if b, err := json.Marshal(v); err == nil {
					told.Write(b)
				}
			}
			tell(cred)
			tell(u)
			tell(g)
			tell(*g.Printable())
			l.Intercept(hook)
			l.clock.add(2 * time.Hour)
			_, err = g.Credential(t.Context(), u.ID)
			tellChain(tell, err)
			_, err = g.Exchange(t.Context(), code, verifier)
			tellChain(tell, err)
			_, err = g.Member(t.Context(), u.ID, config.People{Organizations: []string{"acme"}})
			tellChain(tell, err)
			problems, warnings := g.Check(t.Context())
			for _, err := range append(problems, warnings...) {
				tellChain(tell, err)
			}
			l.mu.Lock()
			tell(l.events)
			l.mu.Unlock()
			for _, s := range secrets {
				if before, _, ok := strings.Cut(told.String(), s); ok {
					t.Errorf("%s… is told after %q", s[:8], before[max(0, len(before)-200):])
				}
			}
		})
	}
}

// tellChain tells err and every cause of it.
func tellChain(tell func(any), err error) {
	for ; err != nil; err = errors.Unwrap(err) {
		tell(err)
	}
}

// TestNoCredentialElsewhere: the person's token goes to Gitea's address alone,
// and never into a URL.
func TestNoCredentialElsewhere(t *testing.T) {
	t.Parallel()
	l := newLab(t, true)
	g := l.replica(nil)
	u := l.signIn(g, "alice")
	for range 3 {
		l.clock.add(time.Hour)
		l.must(g, u.ID)
	}
	if _, err := g.Member(t.Context(), u.ID, config.People{Teams: []string{"acme/owners"}}); err != nil {
		t.Fatal(err)
	}
	c := l.must(g, u.ID)
	for _, s := range l.Sightings(c.Token.Secret()) {
		if s.Where == "query" || s.Where == "path" {
			t.Errorf("a token in the URL of %s %s", s.Method, s.Path)
		}
	}
	for _, s := range l.Sightings(l.secret) {
		if s.Where == "query" || s.Where == "path" || strings.HasPrefix(s.Path, "/api/") {
			t.Errorf("the secret at %s %s, %s", s.Method, s.Path, s.Where)
		}
	}
	if l.Dropped() != 0 {
		t.Error("not everything was looked at")
	}
	// A redirect, even one that keeps method and body, is not followed.
	var elsewhere atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		writeJSON(w, 200, `{}`)
	}))
	defer trap.Close()
	l.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Location", trap.URL+r.URL.Path)
		writeJSON(w, http.StatusTemporaryRedirect, `{}`)
		return true
	})
	l.clock.add(2 * time.Minute)
	if _, err := g.Member(t.Context(), u.ID, config.People{Organizations: []string{"acme"}}); err == nil {
		t.Error("a redirect was taken for a list")
	}
	l.clock.add(2 * time.Hour)
	if _, err := g.Credential(t.Context(), u.ID); err == nil || elsewhere.Load() != 0 {
		t.Errorf("%v; %d requests elsewhere", err, elsewhere.Load())
	}
}

// TestErrorText: what is shown names the way out and has no control characters.
func TestErrorText(t *testing.T) {
	t.Parallel()
	e := &upstream.Error{Kind: upstream.Gone, Public: "sign in again", Err: errors.New("cause")}
	if got := e.Error(); got != "gitea sign-in: gone: sign in again: cause" {
		t.Error(got)
	}
}
