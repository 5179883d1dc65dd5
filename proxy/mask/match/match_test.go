package match_test

import (
	"strings"
	"testing"

	"aegis/proxy/mask/match"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	jwt := "eyJhbGciOiJSUzI1NiJ9" + "." + "eyJnbnQiOjN9" + "." + "c2lnbmF0dXJl"
	for in, want := range map[string]string{
		"header Authorization: token abc":                             "header Authorization: [REDACTED]",
		"got Bearer abcdefghijklmnopqrst from you":                    "got Bearer [REDACTED] from you",
		"invalid username, password or token":                         "invalid username, password or token",
		"token scope=read:repository":                                 "token scope=read:repository",
		"x " + jwt + " y":                                             "x [REDACTED] y",
		"access_token=abcdef&x=1 password: hunter22":                  "access_token=[REDACTED]&x=1 password: [REDACTED]",
		"gh" + "p_0123456789abcdefABCD":                               "[REDACTED]",
		"-----BEGIN PRIVATE KEY----- abc":                             "[REDACTED]",
		"-----BEGIN KEY-----abc-----END KEY----- x":                   "[REDACTED] x",
		"the repository acme/infra has no such label":                 "the repository acme/infra has no such label",
		"gt" + "o_0123456789abcdef, gt" + "r_0123456789abcdef":        "[REDACTED], [REDACTED]",
		"gh" + "s_0123456789abcdef github" + "_pat_0123456789_abcdef": "[REDACTED] [REDACTED]",
		"gl" + "pat-0123456789-abcdef":                                "[REDACTED]",
		"xo" + "xz-0123456789 in a channel":                           "[REDACTED] in a channel",
		"AK" + "IAABCDEFGHIJKLMNOP":                                   "[REDACTED]",
	} {
		text := []byte(in)
		if got := string(match.Credentials(text)); got != want || string(text) != in {
			t.Errorf("%q: %q, want %q; the text is %q now", in, got, want, text)
		}
	}
}

// FuzzCredentials: no token survives, whatever is around it as words of their own.
func FuzzCredentials(f *testing.F) {
	for _, s := range []string{"", "token", "password: ", "-----BEGIN", "Bearer", `"secret":"`, "x=[REDACTED]"} {
		f.Add(s, s)
	}
	secret := "gh" + "p_0123456789abcdefABCD0123456789"
	f.Fuzz(func(t *testing.T, before, after string) {
		out := match.Credentials([]byte(before + " " + secret + " " + after))
		if strings.Contains(string(out), secret) {
			t.Fatalf("%q", out)
		}
	})
}
