package config_test

import (
	"strings"
	"testing"
)

// TestAProxyInFrontMustBeNamed: without it all clients are one address, and one of
// them uses up what strangers may ask of the sign-in.
func TestAProxyInFrontMustBeNamed(t *testing.T) {
	t.Parallel()
	const signIn = "gitea: {url: \"https://git.example.org\"}\nauth: {oauth: {enabled: true, client_id: x, client_secret: a-secret-of-gitea}}\n"
	const front = "public_url: https://aegis.example.org\n"
	for text, want := range map[string]bool{
		front: true, front + "server: {trusted_proxies: [127.0.0.1/32]}\n": false, "public_url: http://127.0.0.1:8080\n": false,
	} {
		if got := strings.Contains(mustParse(t, signIn+text).Warnings().Error(), "server.trusted_proxies"); got != want {
			t.Errorf("%q warns: %v", text, got)
		}
	}
}
