package passthrough_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	"aegis/proxy/gitea/passthrough"
)

// TestOurTokensStayHere: a token of Aegis that a client sends to the wrong path
// does not reach Gitea, in none of the places where Gitea takes tokens. Gitea's
// own credentials do.
func TestOurTokensStayHere(t *testing.T) {
	t.Parallel()
	const ours, theirs = "aegis-bearer-0123456789abcdef", "5d1c9e0b7a3f8264c0e9d7b1a5f36284"
	addr := newPass(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q %q", r.Header.Values("Authorization"), r.URL.RawQuery)
	}), func(o *passthrough.Options) { o.Ours = func(s string) bool { return s == ours } })
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, tc := range []struct{ name, headers, query, wantHeader, wantQuery string }{
		{"bearer", "Authorization: Bearer " + ours + "\r\n", "", `[]`, ``},
		{"other case and spaces", "AUTHORIZATION:   bEARER   " + ours + "  \r\n", "", `[]`, ``},
		{"token scheme", "Authorization: token " + ours + "\r\n", "", `[]`, ``},
		{"bare", "Authorization: " + ours + "\r\n", "", `[]`, ``},
		{"password", "Authorization: " + basic("alice", ours) + "\r\n", "", `[]`, ``},
		{"user", "Authorization: " + basic(ours, "x-oauth-basic") + "\r\n", "", `[]`, ``},
		{"second header", "Authorization: Bearer " + theirs + "\r\nAuthorization: Bearer " + ours + "\r\n", "", `[]`, ``},
		{"query", "", "?a=%zz&token=" + ours + "&b=1", `[]`, `a=%zz&b=1`},
		{"query, escaped", "", "?access%5Ftoken=%61" + ours[1:], `[]`, ``},
		{"theirs", "Authorization: token " + theirs + "\r\n", "?token=" + theirs + "&x=" + theirs, `["token ` + theirs + `"]`, `token=` + theirs + `&x=` + theirs},
		{"theirs, basic", "Authorization: " + basic("alice", theirs) + "\r\n", "?a=%zz", `["` + basic("alice", theirs) + `"]`, `a=%zz`},
	} {
		_, body := raw(t, addr, "GET /alice/repo"+tc.query+" HTTP/1.1\r\nHost: git.example.org\r\nConnection: close\r\n"+tc.headers+"\r\n")
		if want := fmt.Sprintf("%s %q", tc.wantHeader, tc.wantQuery); body != want {
			t.Errorf("%s: Gitea sees %s, want %s", tc.name, body, want)
		}
	}
}
