//go:build deploy

package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// debian is a small Debian with systemd, made once.
var debian struct {
	sync.Once
	dir string
	err error
}

func debianRoot(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root can make a throw-away machine; run the test as root, or in a container of its own")
	}
	debian.Do(func() {
		debian.dir = filepath.Join(scratch, "debian")
		var out string
		out, debian.err = command{}.run(t, "debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,ca-certificates", "bookworm", debian.dir)
		if debian.err != nil {
			debian.err = fmt.Errorf("%w\n%s", debian.err, tail(out))
		}
	})
	if debian.err != nil {
		t.Fatal(debian.err)
	}
	return debian.dir
}

// copyRoot returns a copy that a test may change.
func copyRoot(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "root")
	command{}.must(t, "cp", "-a", "--reflink=auto", debianRoot(t), dir)
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(read(t, from)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func packageOf(t *testing.T, version, kind string) string {
	t.Helper()
	return filepath.Join(releaseOf(t, version), fmt.Sprintf("aegis_%s_linux_%s.%s", version, runtime.GOARCH, kind))
}

// TestDebianPackage boots a machine with a real systemd and no network but loopback,
// and lets testdata/guest.sh install, run, break, upgrade and remove the package there.
func TestDebianPackage(t *testing.T) {
	root := copyRoot(t)
	check := filepath.Join(root, "check")
	copyFile(t, packageOf(t, "1.0.0", "deb"), filepath.Join(check, "first.deb"))
	copyFile(t, packageOf(t, "1.1.0", "deb"), filepath.Join(check, "second.deb"))
	copyFile(t, "testdata/guest.sh", filepath.Join(check, "guest.sh"))
	copyFile(t, "testdata/guest.service", filepath.Join(root, "etc/systemd/system/guest.service"))
	if err := os.Symlink("../guest.service", filepath.Join(root, "etc/systemd/system/multi-user.target.wants/guest.service")); err != nil {
		t.Fatal(err)
	}
	out, err := command{limit: 20 * time.Minute}.run(t, "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--link-journal=no", "--private-network", "--directory="+root, "--boot")
	result, readErr := os.ReadFile(filepath.Join(check, "result"))
	t.Logf("\n%s", result)
	if readErr != nil || !strings.HasSuffix(string(result), "\ndone\n") || strings.Count(string(result), "ok: ") != 10 {
		log, _ := os.ReadFile(filepath.Join(check, "log"))
		t.Fatalf("%v, %v\n%s\n%s", err, readErr, tail(out), tail(string(log)))
	}
}

// TestRedHatPackage installs, upgrades and removes the other package, in a root that
// runs its scripts; there is no systemd there.
func TestRedHatPackage(t *testing.T) {
	root := copyRoot(t)
	rpm := func(args ...string) string {
		t.Helper()
		return command{}.must(t, "rpm", append([]string{"--root=" + root, "--dbpath=/var/lib/rpm", "--nodeps", "--force-debian"}, args...)...)
	}
	conf := filepath.Join(root, "etc/aegis/aegis.yaml")
	rpm("-i", packageOf(t, "1.0.0", "rpm"))
	if owner := strings.TrimSpace(command{}.must(t, "chroot", root, "stat", "-c", "%U:%G %a", "/etc/aegis/aegis.yaml")); owner != "root:aegis 640" {
		t.Errorf("aegis.yaml is %s", owner)
	}
	if v := (command{}).must(t, "chroot", root, "aegis", "version"); !strings.HasPrefix(v, "aegis 1.0.0\n") {
		t.Error(v)
	}
	edited := read(t, conf) + "# edited\n"
	if err := os.WriteFile(conf, []byte(edited), 0o640); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(root, "var/lib/aegis/marker")
	copyFile(t, "testdata/guest.service", marker)
	rpm("-U", packageOf(t, "1.1.0", "rpm"))
	if v := (command{}).must(t, "chroot", root, "aegis", "version"); !strings.HasPrefix(v, "aegis 1.1.0\n") {
		t.Error(v)
	}
	if read(t, conf) != edited {
		t.Error("the upgrade changed the configuration")
	}
	rpm("-V", "--nofiledigest", "--nosize", "--nomtime", "--nogroup", "aegis")
	rpm("-e", "aegis")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/aegis")); !os.IsNotExist(err) {
		t.Errorf("the program is still there: %v", err)
	}
	for _, kept := range []string{conf + ".rpmsave", marker} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
}

const (
	// What an image may have, in bytes: on a disk, and on its way there.
	maxImage, maxTransfer = 25_000_000, 12_000_000
	// goImage is what the Dockerfile builds with.
	goImage = "docker.io/library/golang:1.26-bookworm"
)

// TestImage builds the Dockerfile with a builder that needs no daemon. In the place of
// the image with Go stands the small Debian, with this machine's Go and modules. The
// result must have the program that anybody builds of these sources, and serve from a root that nobody can
// write to, as a user who may do nothing.
func TestImage(t *testing.T) {
	store := []string{"--root", filepath.Join(scratch, "storage"), "--runroot", filepath.Join(scratch, "runroot")}
	env := []string{"BUILDAH_ISOLATION=chroot", "STORAGE_DRIVER=" + storageDriver(t, store)}
	buildah := func(args ...string) string {
		t.Helper()
		out := command{dir: tree(t), env: env}.must(t, "buildah", append(append([]string{}, store...), args...)...)
		return strings.TrimSpace(out)
	}
	base := buildah("from", "scratch")
	buildah("copy", "-q", base, debianRoot(t), "/")
	buildah("config", "--env", "PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--env", "GOCACHE=/built", base)
	buildah("commit", "-q", "--rm", base, goImage)
	goenv := func(name string) string { return strings.TrimSpace(command{}.must(t, "go", "env", name)) }
	buildah("build", "--pull-never", "--format", "docker", "--network", "none",
		"-v", goenv("GOROOT")+":/usr/local/go:ro", "-v", goenv("GOMODCACHE")+"/cache/download:/modules:ro", "-v", goenv("GOCACHE")+":/built",
		"--build-arg", "GOPROXY=file:///modules", "--build-arg", "TARGETARCH="+runtime.GOARCH, "--build-arg", "VERSION=1.0.0", "-t", "aegis:1.0.0", ".")
	defer buildah("rm", "--all")
	inspectImage(t, buildah("inspect", "--type", "image", "aegis:1.0.0"))
	mounted := buildah("mount", buildah("from", "aegis:1.0.0"))

	var size, transfer int
	sizes := command{}.must(t, "sh", "-c", `du -sb "$0" | cut -f1; tar czf - -C "$0" . | wc -c`, mounted)
	if _, err := fmt.Sscan(sizes, &size, &transfer); err != nil || size > maxImage || transfer > maxTransfer {
		t.Errorf("%v: the image has %d bytes, %d compressed; %d and %d are the most", err, size, transfer, maxImage, maxTransfer)
	}
	t.Logf("%.1f MB, %.1f MB compressed", float64(size)/1e6, float64(transfer)/1e6)
	same := filepath.Join(t.TempDir(), "aegis")
	command{dir: tree(t), env: []string{"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOTOOLCHAIN=local"}}.must(t, "go", "build", "-tags", "nodemo",
		"-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version=1.0.0", "-o", same, "./cmd/aegis")
	if read(t, filepath.Join(mounted, "usr/bin/aegis")) != read(t, same) {
		t.Error("the image has another program than its sources give elsewhere")
	}
	serveReadOnly(t, mounted)
}

// storageDriver is overlay, or vfs where the scratch folder cannot have that.
func storageDriver(t *testing.T, store []string) string {
	t.Helper()
	_, err := command{env: []string{"STORAGE_DRIVER=overlay"}}.run(t, "buildah", append(append([]string{}, store...), "images")...)
	if err != nil {
		return "vfs"
	}
	return "overlay"
}

func inspectImage(t *testing.T, text string) {
	t.Helper()
	for _, want := range []string{`"User": "65532:65532"`, `"org.opencontainers.image.version": "1.0.0"`, `"/usr/bin/aegis"`, `"Healthcheck"`, `"/var/lib/aegis"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the image's description has no %s", want)
		}
	}
}

// serveReadOnly runs the image's program in a mount namespace of its own, where its
// root is read-only, and asks it how it is, as the health check does.
func serveReadOnly(t *testing.T, root string) {
	t.Helper()
	dir := t.TempDir()
	conf := "listen: 127.0.0.1:18089\ndata_dir: /var/lib/aegis\ngitea: {url: 'http://127.0.0.1:1'}\nauth: {tokens: [{name: a, token: 0123456789abcdef, gitea_token: 0123456789abcdef0123456789abcdef01234567}]}\n"
	if err := os.WriteFile(filepath.Join(dir, "aegis.yaml"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := command{}.run(t, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc", `
ip link set lo up 2>/dev/null || ifconfig lo up
mount --bind "$0" "$0"
mount --bind "$1" "$0/etc/aegis"
mount -t tmpfs -o mode=700,uid=65532,gid=65532 none "$0/var/lib/aegis"
mount -o remount,bind,ro "$0"
! touch "$0/x" 2>/dev/null || { echo "the root can be written to"; exit 1; }
set -- chroot --userspec=65532:65532 "$0" /usr/bin/aegis
"$@" serve -c /etc/aegis/aegis.yaml &
for i in $(seq 1000); do
  if "$@" health -c /etc/aegis/aegis.yaml; then kill -TERM $!; wait $!; echo served; exit; fi
  sleep 0.1
done
exit 1`, root, dir)
	if err != nil || !strings.HasSuffix(out, "served\n") {
		t.Errorf("%v\n%s", err, tail(out))
	}
}
