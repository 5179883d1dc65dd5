package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aegis/proxy/kv/redistest"
)

// TestStoreCheck reads what an operator reads.
func TestStoreCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "aegis.yaml")
	check := func(url, more string) (int, string) {
		t.Helper()
		text := "gitea: {url: http://127.0.0.1:1}\nauth: {tokens: [{name: a, token: 0123456789-0123456789, gitea_token: x}]}\nstore: {kind: redis, url: \"" + url +
			"\", keys: [key-of-all-replicas-0123456789-0123456789]" + more + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		code := run(context.Background(), []string{"store", "check", "-c", file}, &out, &errs)
		return code, out.String() + errs.String()
	}
	sound := redistest.Start(t, "--appendonly", "yes", "--requirepass", "secret-password")
	if code, out := check("redis://"+sound.Address, ", password: secret-password"); code != exitOK || !strings.Contains(out, "ok: entries survive a restart") ||
		!strings.Contains(out, "entries, which the keys") || strings.Contains(out, "secret-password") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out := check("redis://"+sound.Address, ", password: another-password"); code != exitFailed || !strings.Contains(out, "store.password") || strings.Contains(out, "another-password") {
		t.Errorf("exit %d: %s", code, out)
	}
	evicting := redistest.Start(t, "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru")
	if code, out := check("redis://"+evicting.Address, ""); code != exitFailed || !strings.Contains(out, "set maxmemory-policy noeviction") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out := check("redis://127.0.0.1:1", ""); code != exitFailed || !strings.Contains(out, "failure: Redis cannot be used") {
		t.Errorf("exit %d: %s", code, out)
	}
}
