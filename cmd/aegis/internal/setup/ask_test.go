package setup

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAsker(t *testing.T) {
	t.Parallel()
	short := func(s string) error {
		if len(s) > 3 {
			return errors.New("at most 3")
		}
		return nil
	}
	tests := []struct {
		name, given, typed string
		q                  question
		quiet              bool
		want, err          string
	}{
		{name: "an answer", typed: " ab \nx\n", q: question{check: short}, want: "ab"},
		{name: "the default", typed: "\n", q: question{preset: "p"}, want: "p"},
		{name: "nothing", typed: "\n", want: ""},
		{name: "wrong, then right", typed: "long one\nab\n", q: question{check: short}, want: "ab"},
		{name: "wrong for ever", typed: strings.Repeat("long one\n", 9), q: question{flag: "f", check: short},
			err: "give it as --f"},
		{name: "needed", typed: "\nab\n", q: question{needed: true}, want: "ab"},
		{name: "no line end", typed: "ab", want: "ab"},
		{name: "no more input", typed: "", q: question{flag: "f"}, err: "--f"},
		{name: "given", given: "ab", typed: "x\n", q: question{check: short}, want: "ab"},
		{name: "given wrongly", given: "long one", q: question{flag: "f", check: short}, err: "--f: at most 3"},
		{name: "quiet", quiet: true, typed: "x\n", q: question{preset: "p"}, want: "p"},
		{name: "quiet and needed", quiet: true, q: question{flag: "f", needed: true}, err: "--f: required with --yes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			a := &asker{in: bufio.NewReader(strings.NewReader(tt.typed)), out: &out, quiet: tt.quiet}
			got, err := a.ask(tt.given, tt.q)
			if got != tt.want || (err == nil) != (tt.err == "") ||
				err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q, %v", got, err)
			}
			if strings.Contains(out.String(), "long one") {
				t.Error("an answer is repeated")
			}
		})
	}
}

// TestAskerIsInterrupted: a question does not hold up the end of the program.
func TestAskerIsInterrupted(t *testing.T) {
	t.Parallel()
	in, keep := io.Pipe()
	defer keep.Close()
	done := make(chan struct{})
	close(done)
	a := &asker{in: bufio.NewReader(in), out: io.Discard, done: done}
	if _, err := a.ask("", question{}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
}

// TestWriteSecret: for the owner alone, and nothing is replaced unasked.
func TestWriteSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secrets", "one")
	if err := writeSecret(path, "first", false); err != nil {
		t.Fatal(err)
	}
	if err := writeSecret(path, "second", false); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, path); err != nil {
		t.Skip("no links here")
	}
	if err := writeSecret(path, "third", false); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if err := writeSecret(path, "third", true); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(outside); string(text) != "theirs" {
		t.Errorf("a link was followed: %s", text)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Error(left)
	}
}
