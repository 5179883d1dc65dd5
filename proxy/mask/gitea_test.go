package mask_test

import (
	"strings"
	"testing"
)

// TestForgeTokens finds tokens that look like commits by what they are behind,
// in text and in JSON, and leaves commits alone.
func TestForgeTokens(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	r := newRand(40)
	for range 300 {
		token := random(r, 40, hexChars)
		for _, in := range []string{
			"Authorization: token %s", "authorization: Token %s", "Authorization: Bearer %s", "Authorization: %s",
			`curl -H "Authorization: token %s" https://git.example.org`,
			"curl -H 'authorization:token %s'", "token %s", "Token  %s", "the token `%s` is", "my token is %s.",
			"token: %s", "token=%s", "GITEA_TOKEN=%s", "export FORGEJO_TOKEN='%s'",
			"access_token=%s", "https://git.example.org/api/v1/user?token=%s",
			"https://git.example.org/x?a=1&access_token=%s&b=2", "https://user:%s@git.example.org/a.git",
			"https://%s@git.example.org/a.git", "https://oauth2:%s@git.example.org", "gitea: %s", "forgejo = \"%s\"", "bearer %s", `{"token":"%s"}`, `{"gitea_token": "%s"}`,
		} {
			whole := strings.Replace(in, "%s", token, 1)
			if out, hits := text(t, e, whole); strings.Contains(out, token) || len(hits) == 0 {
				t.Fatalf("text %s became %s, %v", whole, out, hits)
			}
			if out, hits := doc(t, e, `{"a":`+quoted(whole)+`}`); strings.Contains(out, token) || len(hits) == 0 {
				t.Fatalf("JSON %s became %s, %v", whole, out, hits)
			}
		}
		for _, in := range []string{
			"commit %s", "the commit %s broke the token", "tokens were removed in %s", "index %s..", "GITEA_SHA=%s",
			"gitea at %s", "Updating gitea %s", "HEAD is now at %s",
			"https://git.example.org/o/r/commit/%s", "go-gitea/gitea@%s", "see gitea#12 and %s", "rev: %s", "sha1: %s",
			"tree %s\nparent %s", `{"sha":"%s","tokenized":"no"}`, "token bucket %s",
		} {
			whole := strings.ReplaceAll(in, "%s", token)
			if out, hits := text(t, e, whole); out != whole || hits != nil {
				t.Fatalf("text %s became %s, %v", whole, out, hits)
			}
			if out, hits := doc(t, e, `{"a":`+quoted(whole)+`}`); out != `{"a":`+quoted(whole)+`}` || hits != nil {
				t.Fatalf("JSON %s became %s, %v", whole, out, hits)
			}
		}
	}
}

// TestMemberNames: the name of a JSON member tells as much as that of a variable.
func TestMemberNames(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	token := random(newRand(9), 40, hexChars)
	for in, want := range map[string]string{
		`{"token":"` + token + `"}`:                                `{"token":"***"}`,
		`{"sha":"` + token + `","access_token" : "` + token + `"}`: `{"sha":"` + token + `","access_token" : "***"}`,
		`{"authorization_header":"token ` + token + `"}`:           `{"authorization_header":"token ***"}`,
		`{"Authorization":"token ` + token + `"}`:                  `{"Authorization":"token ***"}`,
		`{"api_key":"a8Fk29xLq0Zt71MwPv3Yc"}`:                      `{"api_key":"***"}`,
		`{"token":["` + token + `"]}`:                              `{"token":["` + token + `"]}`,
		`["token","` + token + `"]`:                                `["token","` + token + `"]`,
		`{"token":null,"sha":"` + token + `"}`:                     `{"token":null,"sha":"` + token + `"}`,
		`{"token_last_eight":"` + token + `"}`:                     `{"token_last_eight":"` + token + `"}`,
		`{"token":{"` + token + `":1}}`:                            `{"token":{"` + token + `":1}}`,
		`{"token":"`:                                               `{"token":"`,
		`{"token":`:                                                `{"token":`,
		`{"token"`:                                                 `{"token"`,
	} {
		if out, _ := doc(t, e, in); out != want {
			t.Errorf("%s\nbecame %s\nwant   %s", in, out, want)
		}
	}
}
