// Command release builds what a release consists of, from the tree it is in:
// binaries for all platforms, archives, checksums, a software bill of materials,
// and signatures where there is a key. The same commit and the same Go give the
// same bytes, whatever the folder, the machine and the time.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one run.
type release struct {
	version string
	out     string    // folder for the results
	root    string    // of the module
	when    time.Time // that files in archives have
	targets []target
	log     io.Writer
}

// target is a platform.
type target struct{ os, arch string }

// String is the platform in file names.
func (t target) String() string { return t.os + "_" + t.arch }

// platforms are those that a release is built for.
var platforms = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// versions is semantic versioning, without the v of tags. The v belongs to the tag, not
// to the version.
var versions = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-[0-9A-Za-z][0-9A-Za-z.-]*)?(\+[0-9A-Za-z][0-9A-Za-z.-]*)?$`)

// run checks the command line before anything is built or removed.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "version, such as 1.2.3 or v1.2.3; empty: the tag of the commit")
	out := flags.String("out", "dist", "folder for the results; what is in it is replaced")
	only := flags.String("only", "", "one platform or system, such as linux_amd64 or linux; empty: all")
	packages := flags.Bool("packages", false, "make packages for Debian and Red Hat families too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	// It runs from the root of the module, whatever folder it was started in.
	r := &release{version: strings.TrimPrefix(*version, "v"), out: *out, root: root, log: stdout, targets: platforms}
	if r.version == "" {
		if r.version, err = tag(ctx, root); err != nil {
			return err
		}
	}
	// All files have one time, so that the same commit gives the same archives.
	if r.when, err = stamp(ctx, root); err != nil {
		return err
	}
	// It becomes a part of file names and of the linker's flags.
	if !versions.MatchString(r.version) {
		return fmt.Errorf("%q is no version like 1.2.3 or 1.2.3-rc.1", r.version)
	}
	if *only != "" {
		r.targets = slices.DeleteFunc(slices.Clone(platforms),
			func(t target) bool { return t.String() != *only && t.os != *only })
		if len(r.targets) == 0 {
			return fmt.Errorf("-only %s: no such platform; there are %v", *only, platforms)
		}
	}
	return r.make(ctx, *packages)
}

// make builds everything.
func (r *release) make(ctx context.Context, packages bool) error {
	if err := r.clean(); err != nil {
		return err
	}
	for _, t := range r.targets {
		if err := r.build(ctx, t); err != nil {
			return err
		}
	}
	extras, err := r.extras(ctx)
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		// A platform is finished before the next: an error names the one that it is
		// about.
		if err := errors.Join(r.pack(t, extras), r.sbom(t)); err != nil {
			return err
		}
		if packages && t.os == "linux" {
			if err := r.packages(ctx, t); err != nil {
				return err
			}
		}
	}
	if err := r.checksums(); err != nil {
		return err
	}
	return r.sign(ctx)
}

// clean makes the folder, and removes what an earlier run left. It removes only
// what a run makes, so that a mistyped -out costs nothing.
func (r *release) clean() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"aegis_*", "SHA256SUMS*", "bin/*/aegis", "bin/*/aegis.exe"} {
		old, err := filepath.Glob(filepath.Join(r.out, pattern))
		if err != nil {
			return err
		}
		for _, f := range old {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// binary is where a platform's program is built.
func (r *release) binary(t target) string {
	name := "aegis"
	if t.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.out, "bin", t.String(), name)
}

// name is the beginning of a platform's file names.
func (r *release) name(t target) string { return fmt.Sprintf("aegis_%s_%s", r.version, t) }

// checksums writes SHA256SUMS over all that people download, in the form that
// "sha256sum -c" reads. Signatures and the file itself are left out, as they are made
// afterwards.
func (r *release) checksums() error {
	files, err := filepath.Glob(filepath.Join(r.out, "aegis_*"))
	if err != nil {
		return err
	}
	// An empty list of sums would be signed, and vouch for nothing.
	if len(files) == 0 {
		return errors.New("nothing was built")
	}
	var b strings.Builder
	for _, f := range files { // sorted, as Glob returns them
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), filepath.Base(f))
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
