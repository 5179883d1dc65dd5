package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGeneratedFilesAreCurrent fails when a struct of package config changed
// and "go run ./config/gen" was not run.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date; run go run ./config/gen (-want +got):\n%s", name, diff)
		}
	}
}

// TestCommentsAgreeWithTags: the doc comments are the manual, so what they say
// of ranges, choices and defaults must be what holds. The default of a key may be said by its
// section instead, where one type serves several: "default rate 200/s and burst 1000".
func TestCommentsAgreeWithTags(t *testing.T) {
	t.Parallel()
	root, err := readManual("..")
	if err != nil {
		t.Fatal(err)
	}
	var check func(e, section entry)
	check = func(e, section entry) {
		if span := e.tag.Get("range"); span != "" && !strings.Contains(e.doc, strings.Replace(span, " ", " to ", 1)) {
			t.Errorf("%s: the comment does not say the range %q: %s", e.path, span, e.doc)
		}
		for _, choice := range strings.Fields(e.tag.Get("enum")) {
			if !strings.Contains(e.doc, choice) {
				t.Errorf("%s: the comment does not name %q", e.path, choice)
			}
		}
		if e.tag.Get("required") != "" && !strings.HasSuffix(e.doc, "Required.") {
			t.Errorf("%s: the comment does not end in Required.", e.path)
		}
		if e.fallback == nil || e.fallback.Value == "" {
		} else if value := strings.ToLower(e.fallback.Value); !strings.Contains(strings.ToLower(e.doc), "default "+value) &&
			!strings.Contains(strings.ToLower(section.doc), e.key+" "+value) {
			t.Errorf("%s: the comment does not say the default %q: %s", e.path, e.fallback.Value, e.doc)
		}
		for _, b := range e.below {
			check(b, e)
		}
	}
	check(root, entry{})
}

func TestMissingCommentIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.go"), []byte("package config\n\ntype Config struct {\n\tListen string\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readManual(dir); err == nil || !strings.Contains(err.Error(), "Config.Listen") {
		t.Errorf("error is %v, want one that names Config.Listen", err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	if code := run([]string{"-root", t.TempDir()}, &stderr); code != 1 || stderr.Len() == 0 {
		t.Errorf("without sources: exit %d, %q", code, stderr.String())
	}
	if code := run([]string{"-nonsense"}, &stderr); code != 2 {
		t.Errorf("unknown flag: exit %d", code)
	}
}
