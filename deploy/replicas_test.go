package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"aegis/config"
	"aegis/proxy/kv/redis"
	"aegis/proxy/kv/redistest"
)

// replicaSecrets runs the script in a copy of the folder, twice: the second time
// changes nothing. It returns the folder.
func replicaSecrets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("replicas")); err != nil {
		t.Fatal(err)
	}
	var key string
	for range 2 {
		if out, err := exec.Command("sh", filepath.Join(dir, "secrets.sh")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text := read(t, filepath.Join(dir, "secrets", "store_key"))
		if key != "" && key != text || len(text) < 64 {
			t.Fatalf("the key is %d characters long, and changed", len(text))
		}
		key = text
	}
	return dir
}

// TestReplicaExample: what the compose file gives each replica is a configuration
// that loads, with the keys and the name that it needs.
func TestReplicaExample(t *testing.T) {
	dir := replicaSecrets(t)
	if err := os.WriteFile(filepath.Join(dir, "secrets", "oauth_client_secret"), []byte("secret-of-the-application"), 0o600); err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Hostname string
			Volumes  []string
			Secrets  []string
		}
		Secrets map[string]struct{ File string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "replicas/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for name, s := range compose.Services {
		if s.Hostname == "" {
			continue
		}
		names[s.Hostname] = true
		text := read(t, "replicas/aegis.yaml")
		for secret, file := range compose.Secrets {
			text = strings.ReplaceAll(text, "/run/secrets/"+secret, filepath.Join(dir, file.File))
		}
		cfg, err := config.Parse("aegis.yaml", []byte(text), config.OSEnv(dir))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !cfg.Store.Shared() || len(cfg.Store.Keys) != 1 || !cfg.Limits.Shared || s.Hostname != name || len(s.Secrets) != 3 {
			t.Errorf("%s: %+v", name, cfg.Store)
		}
	}
	if len(names) != 2 {
		t.Errorf("replicas: %v", names)
	}
}

// TestReplicaRedis: a real Redis takes the file and the users, and is fit for Aegis.
func TestReplicaRedis(t *testing.T) {
	dir := replicaSecrets(t)
	var args []string
	for line := range strings.Lines(read(t, filepath.Join(dir, "redis.conf"))) {
		word, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !ok || word == "#" || word == "dir":
		case word == "aclfile":
			args = append(args, "--aclfile", filepath.Join(dir, "secrets", "users.acl"))
		default:
			args = append(args, "--"+word, value)
		}
	}
	server := redistest.Start(t, args...)
	s, err := redis.New(redis.Options{
		Addresses: []string{server.Address}, Username: "aegis", Prefix: "aegis:", Password: strings.TrimSpace(read(t, filepath.Join(dir, "secrets", "redis_password"))),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, f := range s.Inspect(t.Context()) {
		if f.Grade == redis.Failure || f.Grade == redis.Warning && !strings.Contains(f.What, "no replica") {
			t.Errorf("%+v", f)
		}
	}
	if got := server.Do("GET other"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("without a password: %s", got)
	}
}
