package oauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
	"aegis/proxy/oauth"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/scope"
	"aegis/proxy/oauth/upstream"
	"aegis/spec"
)

// tools is a catalog of a few tools and of the two that stand for others.
var tools = oauth.Needs(func(tool string, args json.RawMessage) []string {
	switch tool {
	case "read_issue":
		return []string{"read:issue"}
	case "write_issue":
		return []string{"write:issue"}
	case "star":
		return []string{"write:repository", "write:user"}
	case "administer":
		return []string{"write:admin"}
	case "stand_in":
		var inner struct{ Name string }
		if json.Unmarshal(args, &inner) == nil && inner.Name == "write_issue" {
			return []string{"write:issue"}
		}
	}
	return nil
})

// door is the guard of the default endpoint with an echo behind it.
type door struct {
	*world
	handler http.Handler
	reached int
	id      *proxy.Identity
	body    string
	refused []string
}

func guard(t testing.TB, scopes string, change func(*oauth.Guard)) *door {
	d := &door{world: build(t, nil)}
	d.grants.grants["g"] = &grant.Grant{ID: "g", ClientID: "known", ClientName: "Known", Verified: true, UserID: 7,
		Login: "alice", Scopes: strings.Fields(scopes), Resource: endpoint}
	g := &oauth.Guard{
		Verifier: d.server.Verifier(endpoint, oauth.NewStatic(tokens(),
			&gitea{})), MetadataURL: d.server.MetadataURL(endpoint), Scopes: d.server.Scopes(),
		Offered: settings().Scopes, Needs: tools, Log: zerolog.New(&d.log),
		Refused: func(_ *proxy.RequestInfo, reason string) { d.refused = append(d.refused, reason) },
	}
	if change != nil {
		change(g)
	}
	d.handler = g.Wrap(permitted(g, func(_ http.ResponseWriter, r *http.Request, body []byte) {
		d.reached++
		d.id = proxy.RequestInfoFrom(r.Context()).Identity
		d.body = string(body)
	}))
	return d
}

// permitted reads bodies as the MCP layer does, and asks the guard about them.
func permitted(g *oauth.Guard, next func(w http.ResponseWriter, r *http.Request, body []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		isJSON := r.Method == http.MethodPost && jsonscan.CheckValues(body, 1000, 200_000) == nil
		if !isJSON || g.Permits(w, proxy.RequestInfoFrom(r.Context()), body) {
			next(w, r, body)
		}
	})
}

func (d *door) knock(method, body string, auth ...string) *httptest.ResponseRecorder {
	return d.knockWith(httptest.NewRequest(method, endpoint, strings.NewReader(body)), auth...)
}

func (d *door) knockWith(r *http.Request, auth ...string) *httptest.ResponseRecorder {
	for _, a := range auth {
		r.Header.Add("Authorization", a)
	}
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, r.WithContext(proxy.WithRequestInfo(r.Context(), &proxy.RequestInfo{RequestID: "req-1"})))
	return rec
}

const ours = "Bearer aegis_at_g"

func call(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
}

// TestChallenges: the exact words, as clients parse them with patterns.
func TestChallenges(t *testing.T) {
	t.Parallel()
	d := guard(t, "read:issue", func(g *oauth.Guard) { g.Scopes = []string{"read:repository", "read:issue"} })
	const rest = `resource_metadata="https://aegis.example/.well-known/oauth-protected-resource/mcp", scope="read:repository read:issue"`
	for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"} {
		rec := d.knock(method, "")
		if got := rec.Header().Values("WWW-Authenticate"); rec.Code != 401 || len(got) != 1 ||
			got[0] != "Bearer "+rest {
			t.Errorf("%s without a token: %d %q", method, rec.Code, got)
		}
		rec = d.knock(method, "", "Bearer aegis_at_unknown")
		want := `Bearer error="invalid_token", error_description="the access token is malformed, unknown or no longer valid", ` + rest
		if got := rec.Header().Values("WWW-Authenticate"); rec.Code != 401 || len(got) != 1 || got[0] != want ||
			rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s with a bad token: %d %q", method, rec.Code, got)
		}
	}
	if rec := d.knock("OPTIONS", ""); rec.Code != 204 || rec.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("OPTIONS: %d", rec.Code)
	}
	if d.reached != 0 {
		t.Error("somebody got through")
	}
	if len(d.refused) != 12 || d.refused[0] != "no Authorization header" ||
		strings.Contains(strings.Join(d.refused, ""), "aegis_at") {
		t.Errorf("reasons: %q", d.refused)
	}
}

func TestAccessTokens(t *testing.T) {
	t.Parallel()
	d := guard(t, "read:issue write:repository write:admin", nil)
	if rec := d.knock("POST", call("read_issue"), ours); rec.Code != 200 || d.body != call("read_issue") {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	id := d.id
	if id.Login != "alice" || id.UserID != 7 || id.Mode != proxy.ModeOAuth ||
		id.Credential.Authorization() != "Bearer gitea-access-token" || id.Grant.ID != "g" ||
		id.Grant.ClientName != "Known" || !id.Grant.Verified {
		t.Errorf("identity %+v %+v", id, id.Grant)
	}
	// write:admin is not among auth.oauth.scopes, whatever was granted once.
	if got := strings.Join(id.Grant.Scopes, " "); got != "write:repository read:issue" {
		t.Errorf("scopes: %s", got)
	}
	d.clock.add(time.Second)
	d.gitea.user.Scopes = []string{"write:admin", "write:issue"} // nor does it help that Gitea grants it
	d.knock("GET", "", ours)
	if got := strings.Join(d.id.Grant.Scopes, " "); got != "read:issue" {
		t.Errorf("scopes: %s", got)
	}
	d.clock.add(time.Second)
	d.gitea.user.Scopes = []string{"read:repository"} // Gitea grants less by now
	d.knock("GET", "", ours)
	if got := strings.Join(d.id.Grant.Scopes, " "); got != "read:repository" {
		t.Errorf("scopes: %s", got)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", id, id, id), "gitea-access-token") {
		t.Error("the identity prints its credential")
	}
	for name, auth := range map[string]string{
		"refresh token": "Bearer aegis_rt_g", "code": "Bearer aegis_ac_g", "no prefix": "Bearer g", "Gitea's own": "Bearer gitea-access-token", "a Gitea token": "Bearer gitea-alice",
		"a JWT": "Bearer eyJhbGciOiJSUzI1NiJ9.eyJnbnQiOjF9.c2ln", "upper case": "Bearer AEGIS_AT_g",
	} {
		if rec := d.knock("POST", "", auth); rec.Code != 401 {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
	if rec := d.knock("POST", call("administer"), "Bearer "+aliceToken); rec.Code != 200 || d.id.Login != "alice" ||
		d.id.Grant != nil || d.id.Mode != proxy.ModeStatic {
		t.Errorf("a static token beside it: %d %+v", rec.Code, d.id)
	}
}

// TestCredentialOfAMomentAgo: a burst of calls reads the credential once, and
// what is known to be no good is not used again.
func TestCredentialOfAMomentAgo(t *testing.T) {
	t.Parallel()
	d := guard(t, "read:issue", nil)
	for range 50 {
		d.knock("GET", "", ours)
	}
	if d.reached != 50 || d.gitea.credentials != 1 {
		t.Errorf("%d calls asked for the credential %d times", d.reached, d.gitea.credentials)
	}
	d.clock.add(time.Second)
	d.knock("GET", "", ours)
	if d.gitea.credentials != 2 {
		t.Error("the credential is used for longer than a second")
	}
	h := d.server.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return nil, proxy.NewError(proxy.KindUnauthorized, "no", nil)
	}))
	if _, err := h.Handle(t.Context(), &proxy.Call{Identity: d.id, Tool: &proxy.Tool{OperationID: "x"}}); err == nil {
		t.Error("no error")
	}
	d.gitea.credential = &upstream.Error{Kind: upstream.Gone, Public: "sign in"}
	if rec := d.knock("GET", "", ours); rec.Code != 401 {
		t.Errorf("a credential that Gitea refused is used again: %d", rec.Code)
	}
}

func TestAudience(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]int{
		endpoint: 200, endpoint + "/": 200, "HTTPS://AEGIS.EXAMPLE/mcp": 200, "https://aegis.example:443/mcp/": 200,
		team: 401, base: 401, "https://aegis.example/MCP": 401, "https://evil.example/mcp": 401, "http://aegis.example/mcp": 401, "": 401, endpoint + "//": 401,
	} {
		d := guard(t, "read:issue", nil)
		d.grants.grants["g"].Resource = resource
		if rec := d.knock("POST", call("read_issue"), ours); rec.Code != want {
			t.Errorf("%q: %d, want %d", resource, rec.Code, want)
		}
	}
	d := guard(t, "read:issue", func(g *oauth.Guard) { g.Verifier = build(t, nil).server.Verifier(team, nil) })
	if rec := d.knock("POST", "", "Bearer "+aliceToken); rec.Code != 401 {
		t.Errorf("a static token where there are none: %d", rec.Code)
	}
}

// TestTroubleIsNotTheToken: only the end of a sign-in is invalid_token. Trouble of
// ours or of Gitea is 503 and logs nobody out.
func TestTroubleIsNotTheToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grants, gitea error
		status        int
		kind, retry   string
	}{
		"store": {errors.New("disk of secrets"), nil, 503, "internal", "2"},
		"down": {nil, &upstream.Error{Kind: upstream.Unavailable, Public: "Gitea is away",
			RetryAfter: 11 * time.Second}, 503, "upstream_unavailable", "11"},
		"secret": {nil, &upstream.Error{Kind: upstream.Config, Public: "ask the operator"}, 503,
			"upstream_error", "2"},
		"other":       {nil, errors.New("disk of secrets"), 503, "upstream_unavailable", "2"},
		"gone":        {nil, &upstream.Error{Kind: upstream.Gone, Public: "sign in"}, 401, "unauthorized", ""},
		"not allowed": {fmt.Errorf("%w: expired", grant.ErrInvalid), nil, 401, "unauthorized", ""},
	} {
		d := guard(t, "read:issue", nil)
		d.grants.fail, d.gitea.credential = c.grants, c.gitea
		rec := d.knock("POST", call("read_issue"), ours)
		var answer struct{ Error struct{ Kind string } }
		if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || rec.Code != c.status ||
			answer.Error.Kind != c.kind || rec.Header().Get("Retry-After") != c.retry {
			t.Errorf("%s: %d %v %s", name, rec.Code, rec.Header(), rec.Body)
		}
		if (rec.Header().Get("WWW-Authenticate") != "") != (c.status == 401) || d.reached != 0 ||
			strings.Contains(rec.Body.String(), "disk") {
			t.Errorf("%s: %v %s", name, rec.Header(), rec.Body)
		}
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	var answer error
	d := guard(t, "read:issue", func(g *oauth.Guard) {
		g.Admit = func(_ context.Context, id *proxy.Identity) error { return answer }
	})
	if rec := d.knock("POST", call("read_issue"), ours); rec.Code != 200 {
		t.Errorf("admitted: %d", rec.Code)
	}
	answer = oauth.NotAdmitted("ask for membership of team red")
	if rec := d.knock("POST", call("read_issue"), ours); rec.Code != 403 ||
		!strings.Contains(rec.Body.String(), "team red") || rec.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("turned away: %d %s", rec.Code, rec.Body)
	}
	answer = proxy.NewError(proxy.KindUpstreamUnavailable, "Gitea is away", nil)
	if rec := d.knock("POST", call("read_issue"), ours); rec.Code != 503 || d.reached != 1 {
		t.Errorf("trouble: %d, reached %d", rec.Code, d.reached)
	}
}

func TestStepUp(t *testing.T) {
	t.Parallel()
	const have = "write:repository read:issue"
	for name, c := range map[string]struct{ body, want string }{
		"enough":        {call("read_issue"), ""},
		"more":          {call("write_issue"), "write:repository read:issue write:issue"},
		"two at once":   {call("star"), "write:repository read:issue write:user"},
		"batch":         {"[" + call("read_issue") + "," + call("write_issue") + `,{"method":"ping"},` + call("star") + "]", "write:repository read:issue write:issue write:user"},
		"batch, enough": {"[" + call("read_issue") + "]", ""},
		"stand-in":      {`{"method":"tools/call","params":{"name":"stand_in","arguments":{"name":"write_issue"}}}`, "write:repository read:issue write:issue"},
		"escapes": {`{"m\u0065thod":"tools\/call","p\u0061rams":{"n\u0061me":"write\u005fissue"}}`,
			"write:repository read:issue write:issue"},
		"spaces": {" \n\t" + strings.ReplaceAll(call("write_issue"), ":", " : "),
			"write:repository read:issue write:issue"},
		"order": {`{"params":{"arguments":{"name":"x"},"name":"write_issue"},"method":"tools/call"}`,
			"write:repository read:issue write:issue"},
		"initialize":      {`{"method":"initialize","params":{}}`, ""},
		"list":            {`{"method":"tools/list","params":{"name":"write_issue"}}`, ""},
		"notification":    {`{"method":"notifications/initialized"}`, ""},
		"unknown tool":    {call("no_such_tool"), ""},
		"not JSON":        {`{"method":"tools/call","params":{"name":"write_issue"`, ""},
		"nothing":         {"", ""},
		"name no text":    {`{"method":"tools/call","params":{"name":["write_issue"]}}`, ""},
		"params no text":  {`{"method":"tools/call","params":"write_issue"}`, ""},
		"deeper is data":  {`{"method":"tools/call","params":{"name":"read_issue","arguments":{"method":"tools/call","params":{"name":"write_issue"}}}}`, ""},
		"number for text": {`{"method":1,"params":{"name":"write_issue"}}`, ""},
	} {
		d := guard(t, have, nil)
		rec := d.knock("POST", c.body, ours)
		if c.want == "" {
			if rec.Code != 200 || d.body != c.body {
				t.Errorf("%s: %d %s, body %q", name, rec.Code, rec.Body, d.body)
			}
			continue
		}
		want := `Bearer error="insufficient_scope", resource_metadata="https://aegis.example/.well-known/oauth-protected-resource/mcp", scope="` + c.want + `", error_description="the call needs more than the token allows"`
		if got := rec.Header().Values("WWW-Authenticate"); rec.Code != 403 || len(got) != 1 || got[0] != want ||
			d.reached != 0 {
			t.Errorf("%s: %d %q, want %q", name, rec.Code, got, want)
		}
	}
}

// TestAmbiguousMessages: what two decoders could read differently is not passed on.
func TestAmbiguousMessages(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"method":"tools/list","method":"tools/call","params":{"name":"write_issue"}}`,
		`{"method":"tools/call","params":{"name":"read_issue","name":"write_issue"}}`,
		`{"method":"tools/call","params":{"name":"read_issue"},"params":{"name":"write_issue"}}`,
		`{"method":"tools/list","Method":"tools/call","params":{"name":"write_issue"}}`,
		`{"METHOD":"tools/call","params":{"name":"write_issue"}}`,
		`{"method":"tools/call","Params":{"name":"write_issue"}}`,
		`{"method":"tools/call","params":{"Name":"write_issue"}}`,
		`{"method":"tools/call","params":{"name":"stand_in","arguments":{},"arguments":{"name":"write_issue"}}}`,
		`{"method":"tools/call","params":{"name":"read_issue","n\u0061me":"write_issue"}}`,
		`{"method":"tools/call","params":{"name":"read_issue"},"param\u017f":{"name":"write_issue"}}`, // ſ folds to s
		"[" + strings.Repeat(call("read_issue")+",", 200) + call("write_issue") + "]",
	} {
		d := guard(t, "read:issue", nil)
		if rec := d.knock("POST", body, ours); rec.Code != 400 || d.reached != 0 {
			t.Errorf("%.90s: %d", body, rec.Code)
		}
	}
}

// TestUnreachableScopes: what no sign-in can bring must not send people in circles.
func TestUnreachableScopes(t *testing.T) {
	t.Parallel()
	d := guard(t, "read:issue", nil)
	rec := d.knock("POST", call("administer"), ours)
	if rec.Code != 403 || rec.Header().Get("WWW-Authenticate") != "" ||
		!strings.Contains(rec.Body.String(), "auth.oauth.scopes") ||
		!strings.Contains(rec.Body.String(), "write:admin") {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}

func TestBodiesBehindTheGuard(t *testing.T) {
	t.Parallel()
	d := guard(t, "read:issue", nil)
	large := strings.Replace(call("read_issue"), "{}", `{"x":"`+strings.Repeat("y", 9000)+`"}`, 1)
	if rec := d.knock("POST", large, ours); rec.Code != 200 || d.body != large {
		t.Errorf("%d, %d bytes", rec.Code, len(d.body))
	}
	// A body that breaks off breaks off for whoever reads it next, too.
	broken := io.MultiReader(strings.NewReader(call("read_issue")), iotest.ErrReader(errors.New("gone away")))
	if rec := d.knockWith(httptest.NewRequest("POST", endpoint, broken), ours); rec.Code != http.StatusTeapot ||
		!strings.Contains(rec.Body.String(), "gone away") {
		t.Errorf("broken: %d %s", rec.Code, rec.Body)
	}
	slow := iotest.OneByteReader(strings.NewReader(call("write_issue")))
	if rec := d.knockWith(httptest.NewRequest("POST", endpoint, slow), ours); rec.Code != 403 {
		t.Errorf("slow: %d", rec.Code)
	}
	var copied bytes.Buffer
	d = guard(t, "read:issue", nil)
	d.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", endpoint, nil)) // no exchange: closed
	if d.reached != 0 || copied.Len() != 0 {
		t.Error("let through without an exchange")
	}
}

// anybody is a person with any scopes.
type anybody struct{ scopes []string }

func (a *anybody) Verify(context.Context, string) (*proxy.Identity, error) {
	return &proxy.Identity{Login: "alice", Mode: proxy.ModeOAuth, UserID: 7, Grant: &proxy.Grant{Scopes: a.scopes}}, nil
}

// TestEveryOperationOfGitea: for each operation, a token that lacks one of its
// scopes is asked for all of them, and a token that has them, or their writing
// form, passes.
func TestEveryOperationOfGitea(t *testing.T) {
	t.Parallel()
	catalog, err := spec.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string][]string{}
	for _, op := range catalog.Operations {
		scopes[op.Name] = op.Scopes
	}
	person := &anybody{}
	d := guard(t, "", func(g *oauth.Guard) {
		g.Verifier, g.Offered = person, nil
		g.Needs = oauth.Needs(func(tool string, _ json.RawMessage) []string { return scopes[tool] })
	})
	refused := 0
	for name, need := range scopes {
		for _, form := range [][]string{need, strings.Split(strings.ReplaceAll(strings.Join(need, " "), "read:",
			"write:"), " ")} {
			person.scopes = form
			if rec := d.knock("POST", call(name), ours); rec.Code != 200 {
				t.Errorf("%s with %v: %d %s", name, form, rec.Code, rec.Body)
			}
		}
		for i, lost := range need {
			person.scopes = slices.Delete(slices.Clone(need), i, i+1)
			if verb, area, _ := strings.Cut(lost, ":"); verb == "write" {
				person.scopes = append(person.scopes, "read:"+area)
			}
			rec := d.knock("POST", call(name), ours)
			_, list, _ := strings.Cut(rec.Header().Get("WWW-Authenticate"), `scope="`)
			list, _, _ = strings.Cut(list, `"`)
			if rec.Code != 403 || !scope.Covers(strings.Fields(list), slices.Concat(need, person.scopes)) {
				t.Errorf("%s with %v: %d, asked for %q", name, person.scopes, rec.Code, list)
			}
			refused++
		}
	}
	if len(scopes) < 500 || refused < 500 {
		t.Errorf("%d operations, %d refusals", len(scopes), refused)
	}
}

// TestEveryOperation: for each set of scopes that an operation of Gitea needs, a
// token without them is asked for all of them, and one with them passes; write
// includes read, and nothing else is implied.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	areas := []string{"repository", "issue", "notification", "package", "organization", "user", "misc",
		"activitypub", "admin"}
	everything := []string{}
	for _, a := range areas {
		everything = append(everything, "write:"+a)
	}
	for i, a := range areas {
		for j, b := range areas[i:] {
			for _, verbs := range [][2]string{{"read", "read"}, {"read", "write"}, {"write", "read"},
				{"write", "write"}} {
				need := slices.Compact(sorted([]string{verbs[0] + ":" + a, verbs[1] + ":" + b}))
				if j == 0 && verbs[0] != verbs[1] {
					continue
				}
				for _, k := range append([]string{""}, areas...) { // the area that is missing
					have := slices.DeleteFunc(slices.Clone(everything), func(s string) bool { return s == "write:"+k })
					want := k != a && k != b
					if scope.Covers(have, need) != want {
						t.Fatalf("%v covers %v: %v", have, need, !want)
					}
				}
				for _, n := range need { // read alone does not include write
					have := append(slices.DeleteFunc(slices.Clone(everything),
						func(s string) bool {
							return strings.HasSuffix(s,
								n[strings.Index(n, ":"):])
						}), "read"+n[strings.Index(n, ":"):])
					covered := !slices.Contains(need, "write"+n[strings.Index(n, ":"):])
					if scope.Covers(have, need) != covered {
						t.Fatalf("%v covers %v: %v", have, need, !covered)
					}
				}
			}
		}
	}
}

// TestStage: the call itself is judged too, whoever decoded it.
func TestStage(t *testing.T) {
	t.Parallel()
	w := build(t, nil)
	reached := 0
	var answer error
	h := w.server.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		reached++
		if answer != nil {
			return nil, answer
		}
		return &proxy.Result{}, nil
	}))
	run := func(tool *proxy.Tool, scopes ...string) error {
		_, err := h.Handle(t.Context(), &proxy.Call{Tool: tool,
			Identity: &proxy.Identity{Mode: proxy.ModeOAuth, UserID: 7, Grant: &proxy.Grant{Scopes: scopes}}})
		return err
	}
	write := &proxy.Tool{OperationID: "x", Scopes: []string{"write:issue"}}
	unknown := &proxy.Tool{Method: "POST", Risk: proxy.R4} // a route that no operation is known for
	for name, c := range map[string]struct {
		err  error
		pass bool
	}{
		"enough":        {run(write, "write:issue"), true},
		"less":          {run(write, "read:issue", "write:repository"), false},
		"needs nothing": {run(&proxy.Tool{OperationID: "x"}), true},
		"unknown":       {run(unknown, "write:issue", "write:repository"), false},
		"unknown, all":  {run(unknown, settings().Scopes...), true},
		"no tool":       {run(nil, "write:issue"), false},
	} {
		var pe *proxy.Error
		if pass := c.err == nil; pass != c.pass || !pass && (!errors.As(c.err, &pe) || pe.Kind != proxy.KindForbidden) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if reached != 3 {
		t.Errorf("reached %d times", reached)
	}
	if _, err := h.Handle(t.Context(), &proxy.Call{Tool: unknown,
		Identity: &proxy.Identity{Mode: proxy.ModeStatic}}); err != nil {
		t.Errorf("a static identity: %v", err)
	}
	answer = proxy.NewError(proxy.KindUnauthorized, "Gitea: invalid token", nil)
	for name, c := range map[string]struct {
		rejected error
		kind     proxy.Kind
		says     string
	}{
		"renewed": {nil, proxy.KindUnauthorized, "make the call again"}, "gone": {&upstream.Error{Kind: upstream.Gone, Public: "sign in again"}, proxy.KindUnauthorized, "sign in again"},
		"down": {&upstream.Error{Kind: upstream.Unavailable, Public: "later"}, proxy.KindUpstreamUnavailable,
			"later"}, "secret": {&upstream.Error{Kind: upstream.Config,
			Public: "operator"}, proxy.KindUpstreamError, "operator"},
	} {
		w.gitea.rejected = c.rejected
		var pe *proxy.Error
		if err := run(write, "write:issue"); !errors.As(err, &pe) || pe.Kind != c.kind ||
			!strings.Contains(pe.Public, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkStepUp(b *testing.B) {
	for name, body := range map[string]string{"small": call("read_issue"),
		"large": strings.Replace(call("read_issue"), "{}", `{"x":"`+strings.Repeat("y", 200<<10)+`"}`, 1)} {
		b.Run(name, func(b *testing.B) {
			d := guard(b, "read:issue", nil)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if rec := d.knock("POST", body, ours); rec.Code != 200 {
					b.Fatal(rec.Code)
				}
			}
		})
	}
}

// TestEveryAreaHasWords: an area without words would stand on the consent page as nothing.
func TestEveryAreaHasWords(t *testing.T) {
	t.Parallel()
	for area, words := range oauth.AreaWords() {
		if slices.Contains(words, "") {
			t.Errorf("area %d: %q", area, words)
		}
	}
}
