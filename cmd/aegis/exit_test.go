package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExitCodes holds what scripts and service managers rely on.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "gitea: {url: http://127.0.0.1:1}\n"+
		"auth: {tokens: [{name: a, token: 0123456789abcdef, gitea_token: 0123456789abcdef}]}\n")
	typo := file("typo.yaml", "gitea: {ulr: http://127.0.0.1:1}\n")
	catalog := file("catalog.yaml", "gitea: {url: http://127.0.0.1:1, catalog: "+file("cat.json", "{}")+"}\n"+
		"auth: {tokens: [{name: a, token: 0123456789abcdef, gitea_token: 0123456789abcdef}]}\n")
	taken := "127.0.0.1:1" // a privileged port that nothing answers on
	for _, tc := range []struct {
		args string
		want int
		says string
	}{
		{"version", exitOK, ""},
		{"check -c " + good, exitOK, ""},
		{"tools -c " + good, exitOK, ""},
		{"check -c " + typo, exitUsage, "did you mean url"},
		{"serve -c " + typo, exitUsage, "did you mean url"},
		{"tools -c " + typo, exitUsage, "did you mean url"},
		{"demo -c " + typo, exitUsage, "did you mean url"},
		{"check -c " + catalog, exitUsage, "gitea.catalog"},
		{"check -c " + filepath.Join(dir, "none.yaml"), exitUsage, "none.yaml"},
		{"demo --token short", exitUsage, "16"},
		{"demo --listen nowhere", exitUsage, "listen"},
		{"demo --listen 192.0.2.1:80", exitFailed, "cannot listen"},
		{"health --url http://" + taken, exitFailed, "does not answer"},
		{"catalog build", exitUsage, "required flag"},
		{"catalog build --from " + good + " -o " + filepath.Join(dir, "out.json"), exitFailed, ""},
		{"frobnicate", exitUsage, "unknown command"},
		{"check extra", exitUsage, ""},
	} {
		var out, errs strings.Builder
		ctx, cancel := context.WithCancel(context.Background())
		if got := run(ctx, strings.Fields(tc.args), &out, &errs); got != tc.want ||
			!strings.Contains(errs.String(), tc.says) {
			t.Errorf("aegis %s: exit %d, want %d and %q: %s", tc.args, got, tc.want, tc.says, errs.String())
		}
		cancel()
	}
}
