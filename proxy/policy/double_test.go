package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/catalog"
	"aegis/proxy/gitea"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/mask/match"
	"aegis/proxy/policy"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const (
	aliceToken = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	rootToken  = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// instance is a double of Gitea with its client.
type instance struct {
	testing.TB
	double *fakegitea.Server
	url    string
	client *gitea.Client
	token  string // of the user who seeds and calls
	login  string
}

func newInstance(t testing.TB) *instance {
	t.Helper()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	double := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty, Now: func() time.Time { return at },
		RootURL: "https://git.example/sub"})
	double.SetToken("alice", aliceToken)
	double.SetToken("root1", rootToken)
	server := httptest.NewServer(double)
	t.Cleanup(server.Close)
	in := connect(t, server.URL, "alice", aliceToken)
	in.double = double
	return in
}

// connect returns the client of a server.
func connect(t testing.TB, base, login, token string) *instance {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	client, err := gitea.New(config.Gitea{URL: &config.URL{URL: *u}},
		gitea.Limits{Version: "1", Scrub: match.Credentials}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &instance{TB: t, url: base, client: client, login: login, token: token}
}

// do sends a request past Aegis, to seed the double, and returns the answer.
func (in *instance) do(method, path string, body any) map[string]any {
	in.Helper()
	var text []byte
	var err error
	if body != nil {
		text, err = json.Marshal(body)
	}
	if err != nil {
		in.Fatal(err)
	}
	req, err := http.NewRequest(method, in.url+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		in.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+in.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := direct.Do(req)
	if err != nil {
		in.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		in.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, data, err)
	}
	var out map[string]any
	if json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

// chain returns the stages of a team in front of the double.
func (in *instance) chain(set *catalog.Set, cfg config.Policy) proxy.Handler {
	in.Helper()
	sel, problems := set.Select(config.Default().Tools)
	if len(problems) > 0 {
		in.Fatal(problems)
	}
	p, err := policy.New(cfg, policy.Options{Operations: set.Tools(), Lookup: policy.Ask(in.client, set.Tools())})
	if err != nil {
		in.Fatal(err)
	}
	return proxy.Chain(in.client, sel.Stage(), p.Stage(), p.Rows())
}

// call is a call of the instance's user.
func (in *instance) call(name string, given args) *proxy.Call {
	in.Helper()
	c := call(in, name, given)
	c.Identity = &proxy.Identity{Login: in.login, Mode: proxy.ModeStatic,
		Credential: proxy.NewCredential(proxy.ModeStatic, in.token)}
	return c
}

// call is a call of alice's.
func call(t testing.TB, name string, given args) *proxy.Call {
	t.Helper()
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	return &proxy.Call{Name: name, RawArgs: text, Identity: &proxy.Identity{
		Login: "alice", Mode: proxy.ModeStatic, Credential: proxy.NewCredential(proxy.ModeStatic, aliceToken)}}
}

// seedOwner fills an organization with n private repositories, with everything
// that is seen across repositories. Its names begin with prefix.
func (in *instance) seedOwner(org, prefix string, n int) {
	in.Helper()
	in.do("POST", "/orgs", args{"username": org, "visibility": "private"})
	for i := range n {
		name := fmt.Sprintf("%s-repo-%d", prefix, i)
		at := "/repos/" + org + "/" + name
		in.do("POST", "/orgs/"+org+"/repos",
			args{"name": name, "private": true, "auto_init": true, "description": prefix + " things"})
		in.do("PUT", at+"/topics", args{"topics": []string{prefix + "-topic"}})
		for j := range 2 {
			in.do("POST", at+"/issues", args{"title": fmt.Sprintf("%s issue %d", prefix, j), "body": prefix,
				"assignees": []string{in.login}})
		}
		in.do("POST", at+"/issues/1/comments", args{"body": prefix + " comment"})
		in.do("POST", at+"/issues/1/times", args{"time": 60 + i})
		in.do("POST", at+"/contents/a.txt",
			args{"content": "eA==", "message": prefix, "new_branch": prefix + "-branch"})
		in.do("POST", at+"/pulls", args{"title": prefix + " pull", "head": prefix + "-branch", "base": "main"})
		in.do("PUT", "/user/starred/"+org+"/"+name, nil)
		in.do("PUT", at+"/subscription", nil)
	}
	in.do("POST", "/repos/"+org+"/"+prefix+"-repo-0/issues/1/stopwatch/start", nil)
}
