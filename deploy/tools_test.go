//go:build deploy

package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tools that read what is shipped, at fixed versions. Those that are Go modules
// are run from there; those of Debian must be installed (see .ci/run).
const (
	helm        = "helm.sh/helm/v3/cmd/helm@v3.22.0"
	composeSpec = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"
	minisign    = "aead.dev/minisign/cmd/minisign@v0.3.0"
	kubernetes  = "k8s.io/cli-runtime@v0.37.0" // has the API's own description
)

// command is a program with its arguments and what it needs beside them.
type command struct {
	dir   string
	env   []string
	stdin string
	limit time.Duration // ten minutes when zero
}

// run runs a program and returns what it printed to either output.
func (c command) run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%s is missing; .ci/run says which package of Debian has it", name)
	}
	if c.limit == 0 {
		c.limit = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// must is run for what has to end well.
func (c command) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := c.run(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, tail(out))
	}
	return out
}

func tail(s string) string { return s[max(0, len(s)-6000):] }

// goRun returns the arguments that run a module's program.
func goRun(module string, args ...string) []string {
	return append([]string{"run", module}, args...)
}

// built is a release for this platform, packages included, made once for each
// version.
var built = struct {
	sync.Mutex
	dirs map[string]string
}{dirs: map[string]string{}}

func releaseOf(t *testing.T, version string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if dir, ok := built.dirs[version]; ok {
		return dir
	}
	dir := filepath.Join(scratch, "release-"+version)
	command{dir: tree(t)}.must(t, "go", "run", "./deploy/release", "-version", version, "-out", dir, "-only", "linux_"+runtime.GOARCH, "-packages")
	built.dirs[version] = dir
	return dir
}

// scratch is a folder for all tests together.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "aegis-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	// The image builder leaves its store mounted on itself; without it this fails.
	_ = exec.Command("umount", "--recursive", "--lazy", filepath.Join(scratch, "storage", "overlay")).Run()
	if err := os.RemoveAll(scratch); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// snapshot is a copy of the project, made once, so that all builds have the same files
// whatever an editor does meanwhile. It has no history.
var snapshot struct {
	sync.Once
	dir string
	err error
}

func tree(t *testing.T) string {
	t.Helper()
	snapshot.Do(func() {
		snapshot.dir = filepath.Join(scratch, "tree")
		snapshot.err = copyTree(t, "..", snapshot.dir)
	})
	if snapshot.err != nil {
		t.Fatal(snapshot.err)
	}
	return snapshot.dir
}

func copyTree(t *testing.T, from, to string) error {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	_, err := command{dir: from}.run(t, "sh", "-c", `tar cf - --exclude=./.git --exclude=node_modules --exclude=./dist . | tar xf - -C "$0"`, to)
	return err
}

// TestTwoBuildsAreIdentical: another folder, another depth of it, another time zone and
// an empty build cache change nothing.
func TestTwoBuildsAreIdentical(t *testing.T) {
	first := releaseOf(t, "1.0.0")
	other := filepath.Join(t.TempDir(), "quite", "another", "place", "altogether")
	if err := copyTree(t, tree(t), other); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "out")
	env := []string{"GOCACHE=" + filepath.Join(t.TempDir(), "cache"), "TZ=Asia/Tokyo", "LC_ALL=C", "GOFLAGS=-mod=mod"}
	command{dir: other, env: env}.must(t, "go", "run", "./deploy/release", "-version", "1.0.0", "-out", second, "-only", "linux_"+runtime.GOARCH)
	a, b := read(t, filepath.Join(first, "SHA256SUMS")), read(t, filepath.Join(second, "SHA256SUMS"))
	for line := range strings.SplitSeq(strings.TrimSpace(b), "\n") {
		if !strings.Contains(a, line) {
			t.Errorf("one build:\n%s\nanother:\n%s", a, b)
		}
	}
	if strings.Count(b, "\n") != 2 {
		t.Errorf("want an archive and a bill of materials: %s", b)
	}
}

// TestSigned: what minisign signs, minisign's other implementation verifies; and
// without a key the release says that it is not signed.
func TestSigned(t *testing.T) {
	dir := t.TempDir()
	bin := command{env: []string{"GOBIN=" + dir}}
	bin.must(t, "go", "install", minisign)
	key := filepath.Join(dir, "key")
	command{}.must(t, filepath.Join(dir, "minisign"), "-G", "-W", "-p", key+".pub", "-s", key)
	out := command{dir: tree(t), env: []string{"AEGIS_MINISIGN_KEY=" + key, "PATH=" + dir + ":" + os.Getenv("PATH")}}.
		must(t, "go", "run", "./deploy/release", "-version", "1.0.0", "-out", filepath.Join(dir, "dist"), "-only", "linux_"+runtime.GOARCH)
	if strings.Contains(out, "unsigned") {
		t.Error(out)
	}
	sums := filepath.Join(dir, "dist", "SHA256SUMS")
	command{}.must(t, filepath.Join(dir, "minisign"), "-V", "-p", key+".pub", "-m", sums)
	if err := os.WriteFile(sums, []byte("forged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := (command{}).run(t, filepath.Join(dir, "minisign"), "-V", "-p", key+".pub", "-m", sums); err == nil {
		t.Errorf("a forged file verifies: %s", out)
	}
}

// TestAlertsFire: promtool takes the alerts, and each fires for the series that
// should make it fire, and for no healthy ones.
func TestAlertsFire(t *testing.T) {
	promtool := promtool(t)
	for _, kind := range []string{"check", "test"} {
		file := map[string]string{"check": "alerts.yaml", "test": "alerts_test.yaml"}[kind]
		out := command{dir: "monitoring"}.must(t, promtool, kind, "rules", file)
		if !strings.Contains(out, "SUCCESS") {
			t.Error(out)
		}
	}
}

// promtool returns the program of Debian's package, which is unpacked and not
// installed: it would start a server.
func promtool(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	// apt gives up its rights for downloads, and must be able to write then.
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := (command{dir: dir}).run(t, "apt-get", "download", "-qq", "prometheus"); err != nil {
		command{}.must(t, "apt-get", "update", "-qq") // its lists are missing or old
		command{dir: dir}.must(t, "apt-get", "download", "-qq", "prometheus")
	}
	command{dir: dir}.must(t, "sh", "-c", "dpkg-deb -x prometheus_*.deb root")
	return filepath.Join(dir, "root", "usr", "bin", "promtool")
}

// TestComposeFiles: the reference implementation of the compose specification takes
// every combination that the texts name, and what it makes of them is locked down.
func TestComposeFiles(t *testing.T) {
	for name, files := range map[string][]string{
		"alone":   {"compose.yaml"},
		"tls":     {"compose.yaml", "compose.tls.yaml"},
		"caddy":   {"compose.yaml", "compose.proxy.yaml"},
		"traefik": {"compose.yaml", "proxy/traefik.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"-format", "json"}
			for _, file := range files {
				args = append(args, filepath.Base(file))
				if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(interpolated(t, file)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out := command{dir: dir}.must(t, "go", goRun(composeSpec, args...)...)
			var p struct {
				Services map[string]struct {
					ReadOnly bool     `json:"read_only"`
					CapDrop  []string `json:"cap_drop"`
					User     string
					Ports    []struct{ Published string }
				}
			}
			if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &p); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			a := p.Services["aegis"]
			if !a.ReadOnly || len(a.CapDrop) != 1 || a.CapDrop[0] != "ALL" || a.User != "1000:1000" {
				t.Errorf("not locked down: %+v", a)
			}
			want := map[string]int{"alone": 1, "tls": 2}[name]
			if len(a.Ports) != want {
				t.Errorf("%d ports, want %d: %+v", len(a.Ports), want, a.Ports)
			}
		})
	}
}

// interpolated fills in the variables of a compose file, as bootstrap.sh sets them:
// the reference program does not. A required one that is not set must say what to do.
func interpolated(t *testing.T, file string) string {
	t.Helper()
	vars := map[string]string{"DB_PASSWORD": "x", "GITEA_URL": "http://localhost:3000/", "AEGIS_USER": "1000:1000", "AEGIS_HOST": "aegis.example.org"}
	return variable.ReplaceAllStringFunc(read(t, "compose/"+file), func(text string) string {
		m := variable.FindStringSubmatch(text)
		value, ok := vars[m[1]]
		switch {
		case m[2] == "-":
			if !ok {
				value = m[3]
			}
		case !ok || m[2] != "?" || !strings.Contains(m[3], "bootstrap.sh") && !strings.Contains(m[3], ".env"):
			t.Errorf("compose/%s: %s has no default, or does not say what to do without it", file, text)
		}
		return value
	})
}

var variable = regexp.MustCompile(`\$\{([A-Z_]+)(?::([-?])([^}]*))?\}`)
