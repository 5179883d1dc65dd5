package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzAuthorize: whatever a client opens, the browser goes nowhere but to one of
// the client's own addresses, there is no code, and nothing foreign is in the page.
func FuzzAuthorize(f *testing.F) {
	_, query, _ := strings.Cut(ask(), "?")
	for _, s := range []string{query, query + "&state=2", "client_id=known&redirect_uri=https://known.example/cb", "client_id=known&redirect_uri=javascript:alert(1)", "", "&&&", "%zz", ";",
		"client_id=known&redirect_uri=https%3A%2F%2Fknown.example%2Fcb&response_type=code&state=%0d%0aX:y&scope=<script>&resource=//evil"} {
		f.Add(s)
	}
	w := build(f, nil)
	f.Fuzz(func(t *testing.T, query string) {
		w.clock.add(1 << 30) // one second: the limits do not stand in the way
		r := httptest.NewRequest(http.MethodGet, base+"/authorize", nil)
		r.URL.RawQuery = query
		rec := w.send(r)
		location := rec.Header().Get("Location")
		switch rec.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusServiceUnavailable:
			if location != "" {
				t.Errorf("%d leads to %q", rec.Code, location)
			}
		case http.StatusFound:
			ok := false
			for _, known := range []string{"https://known.example/cb?", "http://127.0.0.1", "https://secretive.example/cb?x=1&", "cursor://anysphere.cursor-mcp/oauth/callback?"} {
				ok = ok || strings.HasPrefix(location, known)
			}
			u, err := url.Parse(location)
			if err != nil || !ok || u.Query().Get("code") != "" || u.Query().Get("error") == "" || strings.ContainsAny(location, "\r\n") {
				t.Errorf("leads to %q", location)
			}
		case http.StatusTooManyRequests:
		default:
			t.Errorf("status %d", rec.Code)
		}
		if body := rec.Body.String(); strings.Contains(body, "<script") || strings.Contains(body, "http-equiv=\"refresh\"") {
			t.Errorf("%s", body)
		}
	})
}

// FuzzToken: no form gets tokens without a code that was issued, and every answer
// is an error of the specification, in JSON without nulls.
func FuzzToken(f *testing.F) {
	for _, s := range []string{"grant_type=authorization_code&client_id=known&code=x&code_verifier=y", "grant_type=refresh_token&client_id=known&refresh_token=aegis_rt_x", "grant_type=&grant_type=", "client_id=known&client_id=app", "%zz", "a;b",
		"grant_type=refresh_token&client_id=secretive&client_secret=secret+of%2Bthe%2520client&refresh_token=x&scope=a+b&resource=https://aegis.example/mcp/"} {
		f.Add(s, "")
		f.Add(s, basic("secretive", "x"))
	}
	known := map[string]bool{"invalid_request": true, "invalid_client": true, "invalid_grant": true, "invalid_target": true, "unsupported_grant_type": true, "too_many_requests": true, "temporarily_unavailable": true}
	w := build(f, nil)
	f.Fuzz(func(t *testing.T, body, auth string) {
		w.clock.add(1 << 32)
		r := httptest.NewRequest(http.MethodPost, base+"/token", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if auth != "" {
			r.Header["Authorization"] = []string{auth}
		}
		rec := w.send(r)
		if m := object(t, rec); rec.Code < 400 || !known[m["error"].(string)] || len(m) != 2 || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", rec.Code, m)
		}
	})
}

// FuzzRegister: every answer is JSON without nulls, and what is registered can be
// sent back to nowhere but where it said.
func FuzzRegister(f *testing.F) {
	for _, s := range []string{`{"redirect_uris":["https://x.example/cb"]}`, `{"redirect_uris":["javascript:alert(1)","http://localhost:1/x"],"client_name":"<b>"}`, `{}`, `[]`, `null`, `{"redirect_uris":null}`, ``} {
		f.Add(s)
	}
	w := build(f, nil)
	f.Fuzz(func(t *testing.T, body string) {
		w.clock.add(1 << 36)
		rec := w.send(httptest.NewRequest(http.MethodPost, base+"/register", strings.NewReader(body)))
		var m map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil || rec.Code != 201 && rec.Code != 400 && rec.Code != 413 && rec.Code != 429 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		id, _ := m["client_id"].(string)
		if rec.Code != 201 || id == "" {
			return
		}
		w.clock.add(1 << 30)
		if page := w.get(ask("client_id", id, "redirect_uri", "https://evil.example/other")); page.Code != 400 || page.Header().Get("Location") != "" {
			uris, _ := json.Marshal(m["redirect_uris"])
			if !strings.Contains(string(uris), "https://evil.example/other") {
				t.Errorf("%d %v", page.Code, page.Header())
			}
		}
	})
}

// FuzzConsent: no form but the one that was shown goes on to Gitea, and none goes
// elsewhere.
func FuzzConsent(f *testing.F) {
	w := build(f, nil)
	b := w.browser()
	b.open(ask())
	good := b.form()
	for _, s := range []string{"", "say=allow&access=all", "request=a.b&token=c&say=allow", good.Encode() + "&say=perhaps", "%zz", "request=" + good.Get("request") + "&token=AAAA&say=allow"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w.clock.add(1 << 30)
		r := httptest.NewRequest(http.MethodPost, base+"/consent", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		b.do(r)
		if got, _ := url.ParseQuery(body); got.Get("token") == good.Get("token") {
			return // the form that was shown
		}
		if b.last.Code < 400 || b.next() != "" || b.last.Header().Get("Location") != "" {
			t.Errorf("%d %s", b.last.Code, b.last.Body)
		}
	})
}

// FuzzStepUp: what passes the guard is what an ordinary decoder takes for no call
// of the tool that is not allowed. Text that is not UTF-8 is none of them: the guard
// leaves it to the MCP layer, which refuses it, while encoding/json reads it.
func FuzzStepUp(f *testing.F) {
	for _, s := range []string{call("write_issue"), call("read_issue"), "[" + call("read_issue") + "," + call("write_issue") + "]", `{"Method":"tools/call","params":{"name":"write_issue"}}`,
		`{"method":"tools\u002fcall","params":{"name":"write\u005fissue"}}`, `{"method":"tools/call","params":{"name":"write_issue","name":"x"}}`, `nul`} {
		f.Add(s)
	}
	d := guard(f, "read:issue", nil)
	f.Add("{\"method\":\"tools/call\",\"params\":{\"name\":\"write_issue\",\"\xff\":1}}")
	f.Fuzz(func(t *testing.T, body string) {
		if rec := d.knock("POST", body, ours); rec.Code != 200 || !utf8.ValidString(body) {
			return
		}
		// encoding/json ignores case and takes the last of equal members.
		type message struct {
			Method string
			Params json.RawMessage
		}
		var list []message
		if json.Unmarshal([]byte(body), &list) != nil {
			var one message
			if json.Unmarshal([]byte(body), &one) != nil {
				return
			}
			list = []message{one}
		}
		for _, m := range list {
			var p struct{ Name string }
			if m.Method == "tools/call" && json.Unmarshal(m.Params, &p) == nil && p.Name == "write_issue" {
				t.Errorf("%q went through", body)
			}
		}
	})
}
