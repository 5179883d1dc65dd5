package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ldflags are the linker's flags of a release; the Dockerfile has the same ones. No
// symbols and no build id: symbols make the program larger, and a build id would differ between machines.
func ldflags(version string) string { return "-s -w -buildid= -X main.version=" + version }

// build builds the program for a platform. What of the environment could change
// the bytes is set.
func (r *release) build(ctx context.Context, t target) error {
	bin, err := filepath.Abs(r.binary(t))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags(r.version), "-o",
		bin, "./cmd/aegis")
	cmd.Dir = r.root
	// Later variables win. The instruction sets are the oldest ones, so that programs
	// run on every machine of an architecture.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOTOOLCHAIN=local", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", t, err, out)
	}
	info, err := os.Stat(bin)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.log, "%-14s %5.1f MB\n", t, float64(info.Size())/1e6)
	return nil
}

// moduleRoot is the folder of the module that this program is run in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	// What go prints outside of a module.
	if out == "" || out == os.DevNull {
		return "", errors.New("run it in the module's folder")
	}
	return filepath.Dir(out), nil
}

// tag returns the version that the commit is tagged with. Exactly this commit: a
// release of something between two tags would have a version that leads to no commit.
func tag(ctx context.Context, root string) (string, error) {
	out, err := output(ctx, root, "git", "describe", "--tags", "--exact-match", "--match", "v[0-9]*")
	if err != nil {
		return "", fmt.Errorf("the commit has no tag like v1.2.3; tag it or give VERSION=1.2.3: %w", err)
	}
	return strings.TrimPrefix(out, "v"), nil
}

// stamp is the time that files in archives have: SOURCE_DATE_EPOCH, or that of the
// commit, or a fixed day outside of version control.
func stamp(ctx context.Context, root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := output(ctx, root, "git", "log", "-1", "--format=%ct")
		if err != nil {
			return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), nil // a tree without history is no error
		}
		text = out
	}
	sec, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(sec, 0).UTC(), nil
}

// output runs a command and returns what it prints. Its messages become part of the
// error, as there is no terminal in CI.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

// extras are the files beside the program in every archive and package: manual page and
// completions, made by the program itself, and texts. They are kept in the folder
// "share" of the results for the packages. The completions and the page come from the
// program that is released, so that they fit it.
func (r *release) extras(ctx context.Context) ([]entry, error) {
	host := target{runtime.GOOS, runtime.GOARCH}
	program := r.binary(host)
	if _, err := os.Stat(program); err != nil { // a run for one foreign platform
		if err := r.build(ctx, host); err != nil {
			return nil, err
		}
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	var list []entry
	for _, x := range []struct {
		name string
		args []string
	}{
		{"aegis.1", []string{"man"}},
		{"completions/aegis.bash", []string{"completion", "bash"}},
		{"completions/_aegis", []string{"completion", "zsh"}},
		{"completions/aegis.fish", []string{"completion", "fish"}},
		{"completions/aegis.ps1", []string{"completion", "powershell"}},
		{"aegis.schema.json", []string{"config", "schema"}},
	} {
		text, err := exec.CommandContext(ctx, program, x.args...).Output()
		if err != nil {
			return nil, fmt.Errorf("aegis %s: %w", strings.Join(x.args, " "), err)
		}
		list = append(list, entry{name: x.name, data: text})
	}
	for _, name := range []string{"LICENSE", "README.md", "aegis.example.yaml"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		list = append(list, entry{name: name, data: text})
	}
	return list, r.share(list)
}

// share writes the extras for the packages, the manual page compressed as Debian wants
// it. nfpm reads files and not memory.
func (r *release) share(list []entry) error {
	page, err := compressed(list[0].data)
	if err != nil {
		return err
	}
	list = append(slices.Clone(list), entry{name: list[0].name + ".gz", data: page})
	for _, e := range list {
		name := filepath.Join(r.out, "share", filepath.FromSlash(e.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, e.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
