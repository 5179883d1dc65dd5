package upstream_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"aegis/config"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/upstream"
)

// answers is a transport that gives one answer to requests of an endpoint, and
// Gitea's to those of the others.
type answers struct {
	path              string
	status            int
	contentType, body string
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	good := map[string]string{
		"/api/v1/version": `{"version":"1.26.4"}`,
		pathToken:         `{"access_token":"a","token_type":"bearer","expires_in":3600,"refresh_token":"b"}`,
		pathIntrospect:    `{"active":true,"username":"alice","sub":"1","aud":["id"],"scope":"write:repository write:issue read:user read:organization"}`,
	}
	if r.URL.Path != a.path {
		a.status, a.contentType, a.body = 200, "application/json", good[r.URL.Path]
	}
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {a.contentType}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
	}, nil
}

func fuzzed(t *testing.T, a answers) *upstream.Gitea {
	g, err := upstream.New(upstream.Options{
		Config: config.OAuth{ClientID: "id", ClientSecret: config.NewSecret("hush-hush"), Scopes: someScopes},
		Gitea:  &url.URL{Scheme: "http", Host: "gitea.invalid"}, RedirectURL: callback,
		HTTP: &http.Client{Transport: a}, Store: kv.NewMemory(time.Now),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Hurry()
	g.Impatient(time.Second)
	return g
}

// FuzzSignIn: whatever the token, introspection or version endpoint answers, a
// sign-in ends in an [*upstream.Error] or with a user who can be named.
func FuzzSignIn(f *testing.F) {
	f.Add(uint8(0), 200, "application/json", `{"access_token":"a","token_type":"bearer","expires_in":3600,"refresh_token":"b"}`)
	f.Add(uint8(0), 200, "application/json", `{"access_token":null,"refresh_token":7,"expires_in":1e99}`)
	f.Add(uint8(0), 400, "application/json", `{"error":"invalid_grant","error_description":"grant does not exist"}`)
	f.Add(uint8(0), 400, "application/json", `{"error":"unauthorized_client","error_description":"invalid client secret"}`)
	f.Add(uint8(0), 200, "text/html", `<html>`)
	f.Add(uint8(0), 502, "text/plain", `access_token=a&refresh_token=b`)
	f.Add(uint8(1), 200, "application/json", `{"active":true,"username":"bob","sub":"7","aud":"id","scope":"write:repository,write:issue read:user read:organization"}`)
	f.Add(uint8(1), 200, "application/json", `{"active":null,"sub":1}`)
	f.Add(uint8(1), 401, "text/plain", `Failed to authenticate user`)
	f.Add(uint8(2), 200, "application/json", `{"version":"1.22.0"}`)
	f.Add(uint8(2), 403, "application/json", `{"message":"required scope"}`)
	f.Fuzz(func(t *testing.T, where uint8, status int, contentType, body string) {
		if status < 200 || status > 599 {
			return
		}
		path := []string{pathToken, pathIntrospect, "/api/v1/version"}[where%3]
		g := fuzzed(t, answers{path, status, contentType, body})
		u, err := g.Exchange(context.Background(), "the-code", "the-verifier")
		if err != nil {
			if e := wantAny(t, err); strings.ContainsAny(e.Error(), "\n\r\x1b") {
				t.Errorf("control characters in %q", e.Error())
			}
			return
		}
		if u.ID <= 0 || u.Login == "" || strings.ContainsAny(u.Login, " \n/") || len(u.Scopes) != 4 {
			t.Errorf("signed in as %+v", u)
		}
		if ok, err := g.State(context.Background(), u.ID); !ok || err != nil {
			t.Error("signed in without a record")
		}
	})
}

// FuzzPair: a token answer is refused or fit for headers and for the clock.
func FuzzPair(f *testing.F) {
	f.Add("a", "b", "bearer", int64(3600))
	f.Add("eyJh.eyJleHAiOjk5OTk5OTk5OTk5OTk5fQ.c", "b", "", int64(0))
	f.Add("a\r\nX: y", "b", "", int64(-1))
	f.Add("", "", "mac", int64(1<<40))
	g := fuzzedOnce()
	f.Fuzz(func(t *testing.T, access, refresh, kind string, expires int64) {
		a, r, life, err := g.ValidPair(&oauth2.Token{AccessToken: access, RefreshToken: refresh, TokenType: kind, ExpiresIn: expires}, nil)
		if err != nil {
			return
		}
		if a != access || r != refresh || a == "" || r == "" || strings.ContainsAny(a+r, " \r\n\x00") || len(a+r) > 20_000 {
			t.Errorf("%q, %q", a, r)
		}
		if life <= 0 || life > 366*24*time.Hour {
			t.Errorf("it lives %s", life)
		}
	})
}

func fuzzedOnce() *upstream.Gitea {
	g, _ := upstream.New(upstream.Options{
		Config: config.OAuth{ClientID: "id", ClientSecret: config.NewSecret("hush-hush"), Scopes: someScopes},
		Gitea:  &url.URL{Scheme: "http", Host: "gitea.invalid"}, RedirectURL: callback,
		HTTP: direct, Store: kv.NewMemory(time.Now),
	})
	return g
}

// FuzzIntrospection: an answer that is accepted names a user, for this client.
func FuzzIntrospection(f *testing.F) {
	f.Add([]byte(`{"active":true,"scope":"read:user","username":"alice","sub":"7","aud":["id"]}`))
	f.Add([]byte(`{"active":true,"username":"alice","sub":"7","aud":"id"}`))
	f.Add([]byte(`{"active":true,"username":"a\u0000","sub":"-7","aud":null}`))
	f.Add([]byte(`{"active":false}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"active":"yes","sub":7}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		id, login, scope, err := upstream.ReadIntrospection(body, "id")
		if err != nil {
			return
		}
		if id <= 0 || login == "" || len(login) > 255 || strings.ContainsAny(login, " \n\x00/") || len(scope) > 4096 || !strings.Contains(string(body), "id") {
			t.Errorf("%d %q %q", id, login, scope)
		}
	})
}

// FuzzNames: a page of organisations or teams is refused or bounded.
func FuzzNames(f *testing.F) {
	f.Add([]byte(`[{"name":"acme","username":"acme"}]`), false)
	f.Add([]byte(`[{"name":"developers","organization":{"username":"acme"}},{"name":"x","organization":null}]`), true)
	f.Add([]byte(`{"message":"no"}`), true)
	f.Add([]byte(`[null,{}]`), false)
	f.Fuzz(func(t *testing.T, body []byte, teams bool) {
		names, err := upstream.ReadNames(body, teams)
		if err == nil && len(names) > 500 {
			t.Errorf("%d names", len(names))
		}
	})
}

// FuzzGrant: a grant that is not "all" has only Gitea's words, and the words mean
// themselves.
func FuzzGrant(f *testing.F) {
	for _, s := range []string{"", "read:user", "read:user,write:issue openid", "all", "offline_access read:user", "read:user,", ", ,", "READ:USER", "write:admin public-only"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, scope string) {
		words, all := upstream.Normal(scope)
		if all {
			return
		}
		for part := range strings.FieldsFuncSeq(scope, func(r rune) bool { return r == ' ' || r == ',' }) {
			switch part {
			case "openid", "profile", "email", "groups", "public-only":
				continue
			}
			if _, wide := upstream.Normal(part); wide {
				t.Errorf("%q has %q, which means everything", scope, part)
			}
		}
		again, all := upstream.Normal(strings.Join(words, " "))
		if len(words) > 0 && (all || strings.Join(again, " ") != strings.Join(words, " ")) {
			t.Errorf("%v became %v", words, again)
		}
	})
}

// wantAny fails unless err is an [*upstream.Error] with a text.
func wantAny(t *testing.T, err error) *upstream.Error {
	t.Helper()
	e, ok := err.(*upstream.Error)
	if !ok || e.Public == "" || e.Kind == "" {
		t.Fatalf("%v", err)
	}
	return e
}
