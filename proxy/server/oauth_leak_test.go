package server_test

import (
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingLeaks goes through everything with every log on, and looks for the
// secrets in logs, audit log, metrics, errors and the files of the store. It also
// looks at what Gitea saw: never a token of Aegis.
func TestNothingLeaks(t *testing.T) {
	h := newHouse(t, houseOptions{top: "metrics: {listen: 127.0.0.1:0}\nlog: {level: trace}\n",
		oauth: "clients:\n  - {id: confidential, name: Confidential, secret: a-client-secret-0123456789, redirect_uris: [\"https://app.example/cb\"]}\n"})
	secrets := map[string]string{"Gitea's client secret": h.secret, "verifier": pkceVerifier, "password": everyPassword, "client secret": "a-client-secret-0123456789"}
	var errs strings.Builder // what programs get told

	a := h.newApp()
	p := h.person("alice")
	got := p.allow(a.address("state", "a-state-that-is-secret"))
	secrets["state"], secrets["code"] = "a-state-that-is-secret", got.Get("code")
	for _, c := range p.http.Jar.Cookies(mustURL(t, h.url)) {
		secrets["cookie "+c.Name] = c.Value
	}
	tokens := a.redeem(got.Get("code"))
	secrets["access token"], secrets["refresh token"] = tokens.field("access_token"), tokens.field("refresh_token")
	h.works(secrets["access token"], "alice")
	next := a.refresh(secrets["refresh token"])
	secrets["second access token"], secrets["second refresh token"] = next.field("access_token"), next.field("refresh_token")
	secrets["Gitea token"] = h.giteaToken()

	// What goes wrong is told without them.
	registered := h.ask(http.MethodPost, "/register", `{"redirect_uris":["https://x.example/cb"],"token_endpoint_auth_method":"client_secret_post"}`, "Content-Type", "application/json")
	secrets["registered secret"] = registered.field("client_secret")
	for _, r := range []reply{
		a.redeem(secrets["code"]),
		a.redeem(secrets["code"] + "x"),
		h.ask(http.MethodPost, "/token", url.Values{"grant_type": {"authorization_code"}, "code": {"aegis_ac_x"}, "code_verifier": {pkceVerifier}, "client_id": {a.id}, "redirect_uri": {a.redirect}}.Encode()),
		h.ask(http.MethodPost, "/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {secrets["refresh token"]}, "client_id": {"confidential"}, "client_secret": {"a-client-secret-0123456789"}}.Encode()),
		h.ask(http.MethodPost, "/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {secrets["second refresh token"]}, "client_id": {registered.field("client_id")}, "client_secret": {"wrong" + secrets["registered secret"]}}.Encode()),
		h.ask(http.MethodPost, "/token", "grant_type=refresh_token&refresh_token="+secrets["refresh token"]+"&refresh_token=x&client_id="+url.QueryEscape(a.id)),
		h.ask(http.MethodGet, "/mcp?access_token="+secrets["second access token"], ""),
		h.ask(http.MethodGet, "/authorize?client_id=x&state="+secrets["state"]+"&redirect_uri=https://evil.example", ""),
		h.ask(http.MethodGet, "/oauth/callback?state="+secrets["state"]+"&code="+secrets["code"], ""),
		h.ask(http.MethodPost, "/mcp", "{", "Authorization", "Bearer "+secrets["second access token"]+"x"),
		h.ask(http.MethodPost, "/mcp", "{", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("alice:"+everyPassword))),
	} {
		if r.status < 400 {
			t.Errorf("accepted: %d %s", r.status, r.body)
		}
		errs.WriteString(r.body)
		for _, v := range r.header {
			errs.WriteString(strings.Join(v, " "))
		}
	}
	h.double.RevokeGrant("alice", h.app) // the credential's end is logged
	for range 2 {
		r, _ := h.whoami(secrets["second access token"])
		errs.WriteString(r.body)
	}
	metrics, err := direct.Get("http://" + servesMetrics(t, h.log) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	places := map[string]string{"errors": errs.String(), "log": h.log.String()}
	places["metrics"] = readAll(t, metrics.Body)
	h.stop()
	err = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			places["file "+strings.TrimPrefix(path, h.dir)] = string(data)
			return err
		}
		return err
	})
	if err != nil || len(places) < 5 || !strings.Contains(places["log"], "request") || !strings.Contains(places["metrics"], "aegis_") {
		t.Fatalf("too little to look at: %d places, %v", len(places), err)
	}
	for what, secret := range secrets {
		if len(secret) < 8 {
			t.Fatalf("no %s: %q", what, secret)
		}
		for place, text := range places {
			for _, form := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret))} {
				if strings.Contains(text, form) {
					t.Errorf("%s is in the %s", what, place)
				}
			}
		}
		// Cookies know no ports, so that the two on this host share theirs.
		ours := strings.HasPrefix(secret, "aegis_") || what == "state" || what == "verifier"
		if ours && h.double.Saw(secret) {
			t.Errorf("Gitea saw the %s: %v", what, h.double.Sightings(secret))
		}
	}
	if h.double.Dropped() != 0 {
		t.Error("the double forgot requests")
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// giteaToken returns the last token that Gitea was called with.
func (h *house) giteaToken() (token string) {
	for _, r := range h.double.Requests() {
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			token = bearer
		}
	}
	return token
}
