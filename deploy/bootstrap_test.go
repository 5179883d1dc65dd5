//go:build linux || darwin

package deploy_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aegis/config"
)

// fakeDocker stands for Docker, Gitea and Aegis as far as bootstrap.sh talks to them,
// and notes what it was asked.
const fakeDocker = `#!/bin/sh
echo "$*" >>"$LOG"
case "$*" in
  "compose version") ;;
  *"user list"*) printf 'ID Username Email\n'; [ ! -e "$LOG.admin" ] || printf '1 gitea-admin x\n' ;;
  *"user create"*) touch "$LOG.admin"; echo "password: pw" ;;
  *"generate-access-token"*) echo 0123456789abcdef0123456789abcdef01234567 ;;
  *"setup gitea"*) [ "$GITEA_ADMIN_TOKEN" = 0123456789abcdef0123456789abcdef01234567 ] || exit 1
    echo 0f8c6d5e-1c2b >secrets/oauth_client_id; echo gto_secret_of_the_app_1234567890 >secrets/oauth_client_secret ;;
esac
`

// bootstrapped runs the script in a folder of its own.
func bootstrapped(t *testing.T) (dir string, run func(args ...string) (string, error)) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"bootstrap.sh", "aegis.token.yaml", "aegis.tls.yaml", "aegis.proxy.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, "compose/"+name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, "bootstrap.sh"), args...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LOG="+filepath.Join(bin, "log"))
		out, err := cmd.CombinedOutput()
		log, _ := os.ReadFile(filepath.Join(bin, "log")) // empty when nothing was asked
		return string(out) + "\n--\n" + string(log), err
	}
}

// TestBootstrap: each way makes a configuration that Aegis takes, secrets that nobody
// else can read, and nothing again at the second time.
func TestBootstrap(t *testing.T) {
	for name, args := range map[string][]string{
		"token": nil,
		"tls":   {"--tls", "aegis.example.org"},
		"proxy": {"--proxy", "https://aegis.example.org/", "--gitea", "https://git.example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, run := bootstrapped(t)
			out, err := run(args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			files := map[string]string{}
			for _, f := range []string{".env", "aegis.yaml", "secrets/client_token", "secrets/oauth_client_secret"} {
				info, err := os.Stat(filepath.Join(dir, f))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: %v, %v", f, info.Mode(), err)
				}
				files[f] = read(t, filepath.Join(dir, f))
			}
			env := config.Env{ReadFile: func(path string, _ int64) ([]byte, fs.FileMode, error) {
				data, err := os.ReadFile(filepath.Join(dir, "secrets", strings.TrimPrefix(path, "/run/secrets/aegis/")))
				return data, 0o600, err
			}}
			if _, err := config.Parse("aegis.yaml", []byte(files["aegis.yaml"]), env); err != nil {
				t.Errorf("%v\n%s", err, files["aegis.yaml"])
			}
			if strings.Contains(out, "0123456789abcdef0123456789abcdef01234567") {
				t.Errorf("a token is on a command line or on the screen:\n%s", out)
			}
			again, err := run(args...)
			if err != nil || strings.Contains(strings.SplitN(again, "\n--\n", 2)[0], "made ") {
				t.Errorf("the second run: %v\n%s", err, again)
			}
			for f, text := range files {
				if read(t, filepath.Join(dir, f)) != text {
					t.Errorf("the second run changed %s", f)
				}
			}
		})
	}
}

// TestBootstrapRefuses what would not work, before anything is made.
func TestBootstrapRefuses(t *testing.T) {
	for _, args := range [][]string{{"--proxy", "http://aegis.example.org"}, {"--proxy", "https://a|b"}, {"--tls"}, {"--help"}} {
		dir, run := bootstrapped(t)
		out, err := run(args...)
		if _, made := os.Stat(filepath.Join(dir, ".env")); err == nil || made == nil {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
