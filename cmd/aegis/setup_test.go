package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runSetup runs "aegis setup" with the arguments, as a user does.
func runSetup(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"setup"}, args...), &out, &errs)
	return out.String(), errs.String(), code
}

const docURL = "https://aegis.example.org/mcp"

// TestSetupFromConfiguration: the address, the team and the way in come from the
// configuration, and no secret comes out.
func TestSetupFromConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const common = "public_url: https://aegis.example.org/sub/\ngitea: {url: http://127.0.0.1:3000}\ntls: {mode: \"off\"}\nlisten: 127.0.0.1:0\n"
	const tokens = "  tokens: [{name: a, token: 0123456789abcdef-secret, gitea_token: 0123456789abcdef0123456789abcdef01234567}]\n"
	const oauth = "  oauth: {enabled: true, client_id: x, client_secret: a-secret-of-gitea}\n"
	static := write("static.yaml", common+"auth:\n"+tokens)
	people := write("people.yaml", common+"auth:\n"+oauth)
	both := write("both.yaml", common+"members: {everyone: true}\nteams: {web: {members: {everyone: true}}}\nauth:\n"+tokens+oauth)
	for _, c := range []struct {
		args []string
		code int
		says []string // "!" before it: must not be said
	}{
		{[]string{"cursor", "-c", people}, 0, []string{"https://aegis.example.org/sub/mcp\"", "!Authorization"}},
		{[]string{"cursor", "-c", static}, 0, []string{"Bearer ${env:AEGIS_TOKEN}"}},
		{[]string{"cursor", "-c", both}, 0, []string{"!Authorization"}},
		{[]string{"cursor", "-c", both, "--token", "--team", "web", "--name", "web_gitea"}, 0, []string{"/sub/mcp/web\"", "Bearer ${env:AEGIS_TOKEN}", "\"web_gitea\""}},
		{[]string{"codex", "-c", both, "--token"}, 0, []string{"bearer_token_env_var = \"AEGIS_TOKEN\""}},
		{[]string{"claude-code", "-c", both, "--token"}, 0, []string{"${AEGIS_TOKEN}", `"Authorization: Bearer $AEGIS_TOKEN"`}},
		{[]string{"cursor", "-c", both, "--team", "wob"}, 2, []string{"no team"}},
		{[]string{"cursor", "-c", people, "--token"}, 1, []string{"no static tokens"}},
		{[]string{"claude", "-c", static}, 1, []string{"must sign in"}},
		{[]string{"claude", "-c", people, "--write"}, 1, []string{"follow what"}},
		{[]string{"chatgpt", "--url", "http://127.0.0.1:8080/mcp"}, 0, []string{"warning", "port 443"}},
		{[]string{"chatgpt", "--url", docURL}, 0, []string{"!warning"}},
		{[]string{"cursor", "--url", "https://aegis.example.org"}, 0, []string{`"https://aegis.example.org/mcp"`}},
		{[]string{"cursor", "--url", "https://aegis.example.org/"}, 0, []string{`"https://aegis.example.org/mcp"`}},
		{[]string{"cursor", "--url", "ftp://x/mcp"}, 2, []string{"--url must be"}},
		{[]string{"cursor", "--url", "https://x/$(id)"}, 2, []string{"--url must be"}},
		{[]string{"cursor", "--url", docURL, "--team", "web"}, 2, []string{"leave out --team"}},
		{[]string{"cursor", "--url", docURL, "--name", "a b"}, 2, []string{"--name must be"}},
		{[]string{"cursor", "--url", docURL, "--force"}, 2, []string{"need --write"}},
	} {
		out, errs, code := runSetup(t, c.args...)
		all := out + errs
		if code != c.code || strings.Contains(all, "secret-of") || strings.Contains(all, "0123456789abcdef") {
			t.Errorf("%v: exit %d: %s", c.args, code, all)
		}
		for _, want := range c.says {
			want, not := strings.CutPrefix(want, "!")
			if strings.Contains(all, want) == not {
				t.Errorf("%v: %q in\n%s", c.args, want, all)
			}
		}
	}
}
