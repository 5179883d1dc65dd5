package config_test

import (
	"strings"
	"testing"

	"aegis/config"
)

// TestPatternsThatCloseNothing: a deny that no name can match would leave open what
// its author thinks is closed, so it is an error.
func TestPatternsThatCloseNothing(t *testing.T) {
	t.Parallel()
	const head = "gitea: {url: 'https://git.example'}\nauth: {tokens: [{name: a, token: tttttttttttttttttttttttttttttttt, gitea_token: gggggggggggggggggggg}]}\npolicy: "
	for text, good := range map[string]bool{
		"{branches: {deny: [refs/heads/main]}}": false, "{branches: {deny: [heads/main]}}": false, "{branches: {deny: [tags/v1]}}": false,
		"{branches: {deny: ['release/']}}": false, "{paths: {deny: ['.gitea/workflows/']}}": false, "{paths: {deny: ['/docs/**']}}": false,
		"{paths: {deny: ['./docs/**']}}": false, "{paths: {deny: ['a//b']}}": false, "{paths: {deny: ['../x']}}": false,
		"{branches: {deny: [main, 'release/**'], allow: ['**/heads/x']}}": true, "{paths: {deny: ['.gitea/workflows/**', '**/.env', 'refs/**']}}": true,
	} {
		_, err := config.Parse("aegis.yaml", []byte(head+text+"\n"), config.Env{})
		if bad := err != nil && strings.Contains(err.Error(), "is no pattern that could match"); bad == good || good && err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
