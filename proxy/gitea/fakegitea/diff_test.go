package fakegitea_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy/gitea/fakegitea"
)

// writeFile creates or replaces a file on a branch and returns the commit.
func writeFile(t *testing.T, s http.Handler, token, name, text, branch string) string {
	t.Helper()
	const p = "/repos/alice/notes/contents/"
	var old struct {
		SHA string `json:"sha"`
	}
	json.Unmarshal(get(s, token, p+name+"?ref="+branch).Body.Bytes(), &old) // a new file has none
	body, err := json.Marshal(map[string]string{
		"content": base64.StdEncoding.EncodeToString([]byte(text)), "branch": branch, "message": "write " + name, "sha": old.SHA,
	})
	if err != nil {
		t.Fatal(err)
	}
	res := send(s, token, "PUT", p+name, string(body))
	var out struct {
		Commit struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	if err := json.Unmarshal(res.Body.Bytes(), &out); err != nil || out.Commit.SHA == "" {
		t.Fatalf("write %s: %d %s", name, res.Code, res.Body)
	}
	return out.Commit.SHA
}

// newNotes serves an empty world with the repository alice/notes and its
// branches main and next.
func newNotes(t *testing.T) (*fakegitea.Server, string) {
	t.Helper()
	s := fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedEmpty})
	alice := s.Token("alice")
	if res := send(s, alice, "POST", "/user/repos", `{"name":"notes","auto_init":true}`); res.Code != 201 {
		t.Fatalf("create: %d %s", res.Code, res.Body)
	}
	return s, alice
}

// branchNext makes the branch next from main.
func branchNext(t *testing.T, s http.Handler, token string) {
	t.Helper()
	if res := send(s, token, "POST", "/repos/alice/notes/branches", `{"new_branch_name":"next"}`); res.Code != 201 {
		t.Fatalf("branch: %d %s", res.Code, res.Body)
	}
}

// TestNoNewline marks a last line without a newline wherever a diff is shown.
func TestNoNewline(t *testing.T) {
	t.Parallel()
	s, alice := newNotes(t)
	old := map[string]string{
		"both.txt": "one\ntwo", "far.txt": "0\n1\n2\n3\n4\n5\n6", "gain.txt": "one\ntwo", "lose.txt": "one\ntwo\n", "near.txt": "a\nb",
	}
	for name, text := range old {
		writeFile(t, s, alice, name, text, "main")
	}
	branchNext(t, s, alice)
	var last string
	for name, text := range map[string]string{
		"both.txt": "one\nTWO", "far.txt": "zero\n1\n2\n3\n4\n5\n6", "gain.txt": "one\ntwo\n", "lose.txt": "one\ntwo", "near.txt": "a\nb\nc",
	} {
		writeFile(t, s, alice, name, text, "next")
	}
	last = writeFile(t, s, alice, "new.txt", "p", "next")
	if res := send(s, alice, "POST", "/repos/alice/notes/pulls", `{"head":"next","base":"main","title":"t"}`); res.Code != 201 {
		t.Fatalf("pull: %d %s", res.Code, res.Body)
	}
	const mark = "\\ No newline at end of file\n"
	want := []string{
		"@@ -1,2 +1,2 @@\n one\n-two\n" + mark + "+TWO\n" + mark,
		"@@ -1,4 +1,4 @@\n-0\n+zero\n 1\n 2\n 3\ndiff",
		"@@ -1,2 +1,2 @@\n one\n-two\n" + mark + "+two\ndiff",
		"@@ -1,2 +1,2 @@\n one\n-two\n+two\n" + mark,
		"@@ -1,2 +1,3 @@\n a\n-b\n" + mark + "+b\n+c\n" + mark,
		"@@ -0,0 +1 @@\n+p\n" + mark,
	}
	whole := get(s, alice, "/repos/alice/notes/pulls/1.diff").Body.String()
	for _, hunk := range want {
		if !strings.Contains(whole, hunk) {
			t.Errorf("pulls/1.diff lacks %q:\n%s", hunk, whole)
		}
	}
	for _, target := range []string{"pulls/1.patch", "compare/main...next?output=diff", "compare/main...next?output=patch", "git/commits/" + last + ".diff", "git/commits/" + last + ".patch"} {
		if got := get(s, alice, "/repos/alice/notes/"+target).Body.String(); !strings.Contains(got, want[len(want)-1]) {
			t.Errorf("%s lacks the mark:\n%s", target, got)
		}
	}
}

// TestDiffApplies checks that the diff of any two texts, applied to the first,
// gives the second, byte for byte.
func TestDiffApplies(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var out strings.Builder
		for range 1 + rng.IntN(12) {
			fmt.Fprintf(&out, "%c\n", 'a'+rng.IntN(3))
		}
		return strings.TrimSuffix(out.String(), []string{"", "\n"}[rng.IntN(2)])
	}
	for range 60 {
		s, alice := newNotes(t)
		before, after := text(), text()
		if before == after {
			continue
		}
		writeFile(t, s, alice, "x.txt", before, "main")
		branchNext(t, s, alice)
		id := writeFile(t, s, alice, "x.txt", after, "next")
		diff := get(s, alice, "/repos/alice/notes/git/commits/"+id+".diff").Body.String()
		if d := cmp.Diff(after, patched(t, before, diff)); d != "" {
			t.Fatalf("diff %q: %s", diff, d)
		}
	}
}

// patched applies the hunks of a diff of one file to a text. Inside, a line that has
// no newline ends in a NUL.
func patched(t *testing.T, text, diff string) string {
	t.Helper()
	old := strings.SplitAfter(text, "\n")
	if last := len(old) - 1; old[last] != "" {
		old[last] += "\x00\n"
	}
	var out strings.Builder
	_, hunks, _ := strings.Cut(diff, "\n@@ ")
	at := 0
	for line := range strings.Lines(strings.ReplaceAll("@@ "+hunks, "\n\\ No newline at end of file", "\x00")) {
		if line[0] == '@' {
			var from int
			if _, err := fmt.Sscanf(line, "@@ -%d", &from); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			for ; at < from-1; at++ {
				out.WriteString(old[at])
			}
			continue
		}
		if line[0] != '+' {
			if old[at] != line[1:] {
				t.Fatalf("the diff has %q where the text has %q", line, old[at])
			}
			at++
		}
		if line[0] != '-' {
			out.WriteString(line[1:])
		}
	}
	out.WriteString(strings.Join(old[at:], ""))
	return strings.ReplaceAll(out.String(), "\x00\n", "")
}
