package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for v, ok := range map[string]bool{
		"1.2.3": true, "0.1.0-rc.1": true, "1.0.0+build.5": true, "v1.2.3": false, "1.2": false, "01.2.3": false,
		"1.2.3 -X main.x=y": false, "1.2.3;id": false, "": false, "1.2.3-": false,
	} {
		if versions.MatchString(v) != ok {
			t.Errorf("%q: want %v", v, ok)
		}
	}
}

// TestWrongUse ends before anything is built or removed.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-version", "one"}, {"-version", "1.0.0", "-only", "plan9_mips"}, {"-nonsense"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

var files = []entry{{name: "aegis", data: []byte("program"), exec: true},
	{name: "completions/_aegis", data: []byte("text")}}

// TestArchives: the same files give the same bytes, with fixed times and no owners,
// and can be unpacked.
func TestArchives(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 5, 4, 3, 2, 2, 0, time.UTC)
	for name, write := range map[string]func(io.Writer, string, []entry, time.Time) error{
		"tar": tarball, "zip": zipball,
	} {
		var a, b bytes.Buffer
		if err := errors.Join(write(&a, "d/", files, when),
			write(&b, "d/", files, when.In(time.FixedZone("x", 7200)).UTC())); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: two times, two archives", name)
		}
		got := unpack(t, name, a.Bytes())
		if got["d/aegis"] != "755 program" || got["d/completions/_aegis"] != "644 text" || len(got) != 2 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func unpack(t *testing.T, kind string, data []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	add := func(name string, mode int64, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = map[int64]string{0o755: "755 ", 0o644: "644 "}[mode] + string(text)
	}
	if kind == "zip" {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, int64(f.Mode().Perm()), r)
		}
		return got
	}
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(gz); ; {
		head, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Uid != 0 || head.Uname != "" {
			t.Errorf("%s belongs to %d %s", head.Name, head.Uid, head.Uname)
		}
		add(head.Name, head.Mode, tr)
	}
}

// TestSBOM: every module with its version, identifiers that are unique and allowed,
// relationships between packages that are there.
func TestSBOM(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26.1", Deps: []*debug.Module{
		{Path: "example.org/a/b", Version: "v1.2.3", Sum: "h1:x"},
		{Path: "example.org/a-b", Version: "v1.2.3+incompatible"},
		{Path: "example.org/old", Version: "v1.0.0",
			Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0"}},
	}}
	d := described(t, info, "program")
	ids := []string{}
	for _, p := range d.Packages {
		if slices.Contains(ids, p.ID) || !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.ID) {
			t.Errorf("the identifier %s is wrong or there twice", p.ID)
		}
		ids = append(ids, p.ID)
	}
	for _, r := range d.Relationships {
		if r.From != d.ID && !slices.Contains(ids, r.From) || !slices.Contains(ids, r.To) {
			t.Errorf("%v leads nowhere", r)
		}
	}
	var locators []string
	for _, p := range d.Packages {
		locators = append(locators, p.References[0].Locator)
	}
	want := []string{"pkg:generic/aegis@1.0.0", "pkg:golang/stdlib@1.26.1", "pkg:golang/example.org/a/b@v1.2.3",
		"pkg:golang/example.org/a-b@v1.2.3+incompatible", "pkg:golang/example.org/new@v2.0.0"}
	if !slices.Equal(locators, want) {
		t.Errorf("got %q, want %q", locators, want)
	}
	if other := described(t, info, "another"); other.Namespace == d.Namespace {
		t.Error("two programs, one namespace")
	}
}

// spdx is what is looked at of a document.
type spdx struct {
	ID        string `json:"SPDXID"`
	Namespace string `json:"documentNamespace"`
	Packages  []struct {
		ID         string `json:"SPDXID"`
		References []struct {
			Locator string `json:"referenceLocator"`
		} `json:"externalRefs"`
	}
	Relationships []struct {
		From string `json:"spdxElementId"`
		To   string `json:"relatedSpdxElement"`
	}
}

// described is the document of a program with its bytes, as it is written.
func described(t *testing.T, info *debug.BuildInfo, program string) (d spdx) {
	t.Helper()
	text, err := json.Marshal((&release{version: "1.0.0"}).describe(info, []byte(program), target{"linux", "amd64"}))
	if err = errors.Join(err, json.Unmarshal(text, &d)); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCleanTakesItsOwnOnly: a mistyped folder loses nothing.
func TestCleanTakesItsOwnOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"aegis_1.0.0_linux_amd64.tar.gz", "SHA256SUMS", "SHA256SUMS.minisig", "thesis.txt",
		"bin.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&release{out: dir}).clean(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestChecksums(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"aegis_b", "aegis_a", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&release{out: dir}).checksums(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[0],
		"  aegis_a") || !regexp.MustCompile(`^[0-9a-f]{64}  aegis_b$`).MatchString(lines[1]) {
		t.Errorf("got %q", lines)
	}
	if err := (&release{out: t.TempDir()}).checksums(); err == nil {
		t.Error("checksums of nothing")
	}
}

// TestCompressed: what is compressed can be unpacked, whole.
func TestCompressed(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("aegis "), 1000)
	data, err := compressed(want)
	if err != nil {
		t.Fatal(err)
	}
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(gz); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
