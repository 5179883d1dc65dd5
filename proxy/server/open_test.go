package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/server"
)

// TestOpenOfAWrongConfigurationTouchesNothing: what only building finds wrong is found
// before the folder of the audit log and the store is made.
func TestOpenOfAWrongConfigurationTouchesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ gitea, more, want string }{
		"authority": {`, ca_file: "/no/such/authority.pem"`, "", "ca_file"},
		"tool":      {"", "tools: {enable: [gitea_no_such_tool]}\n", "tools.enable[0]"},
		"masking":   {"", "masking: {disable_rules: [no-such-rule]}\n", "masking.disable_rules[0]"},
		"masking of a team": {
			"", "members: {everyone: true}\nteams: {web: {members: {everyone: true}, masking: {disable_rules: [x]}}}\n", "teams.web.masking.disable_rules[0]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse("aegis.yaml", []byte(`gitea: {url: "http://127.0.0.1:1"`+c.gitea+"}\n"+
				"auth:\n  tokens: [{name: alice, token: "+aliceToken+", gitea_token: x}]\n"+
				"  oauth: {enabled: true, client_id: aegis, client_secret: a-secret-of-the-application}\n"+c.more), config.Env{})
			if err != nil {
				t.Fatal(err)
			}
			cfg.DataDir = filepath.Join(t.TempDir(), "data")
			_, err = server.Open(cfg, "test", server.Plain(zerolog.Nop()))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v; want one about %s", err, c.want)
			}
			if _, err := os.Stat(cfg.DataDir); !os.IsNotExist(err) {
				t.Errorf("data_dir was made: %v", err)
			}
		})
	}
}
