package config_test

import (
	"bytes"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aegis/config"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the expected messages in testdata/bad")

// secrets are the values that no message may ever show.
var secrets = map[string]string{
	"AEGIS_TOKEN": "k9Qe2vXn7bRt4mWz8cLp1sYd6hGf3jUa",
	"GITEA_TOKEN": "5d1c9e0b7a3f8264c0e9d7b1a5f36284",
	"BOB_TOKEN":   "Zt7yPq3LmX9vBn2KwR6cHd8sJf4gTe1u",
}

// testEnv has the variables above, an empty one, and the files of this folder.
func testEnv(dir string) config.Env {
	env := config.OSEnv(dir)
	env.Lookup = func(name string) (string, bool) {
		if name == "EMPTY_TOKEN" {
			return "", true
		}
		v, ok := secrets[name]
		return v, ok
	}
	return env
}

const minimal = `gitea:
  url: https://git.example.org
auth:
  tokens:
    - name: alice
      token: ${AEGIS_TOKEN}
      gitea_token: ${GITEA_TOKEN}
`

// large are the broken files that are too big to keep in a folder.
func large() map[string][]byte {
	var repeated strings.Builder
	repeated.WriteString(minimal + "results:\n  fields_default:\n    t: &long [" + strings.Repeat("a,", 1000) + "a]\n")
	for i := range 150 {
		repeated.WriteString("    t" + strconv.Itoa(i) + ": *long\n")
	}
	unknown := minimal
	for i := range 150 {
		unknown += "key" + strings.Repeat("x", i%20) + strings.Repeat("y", i/20) + ": 1\n"
	}
	return map[string][]byte{
		"more":  []byte(unknown),
		"size":  []byte(minimal + strings.Repeat("# padding\n", 120_000)),
		"count": []byte(repeated.String()),
	}
}

// TestZoo loads one broken file for each rule and compares all that is said
// about it. Every message of the sources must be shown by one.
func TestZoo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "bad")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	zoo := large()
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		zoo[strings.TrimSuffix(filepath.Base(f), ".yaml")] = data
	}
	var shown strings.Builder
	for name, data := range zoo {
		t.Run(name, func(t *testing.T) {
			problems := mustFail(t, data, testEnv(dir))
			shown.WriteString(problems.Error() + "\n")
			compareFile(t, filepath.Join(dir, name+".txt"), problems.Error()+"\n")
			for _, s := range append([]string{"correct-horse", "correct horse"}, secretValues()...) {
				if strings.Contains(problems.Error(), s) {
					t.Errorf("a secret is in the messages:\n%v", problems)
				}
			}
		})
	}
	for _, text := range messages(t) {
		if !strings.Contains(shown.String(), text) {
			t.Errorf("no file in %s shows the message %q", dir, text)
		}
	}
}

// unshown are messages that no file can show, since they are about the caller or about what
// only a later version of a library could do.
var unshown = []string{
	"is not valid YAML", "check indentation and quotes", "is not valid", "files cannot be read here", "use ${NAME}",
	"see the syntax of Go's regexp package",
}

// messages returns the texts that the sources of this package give to what adds a problem,
// up to the first verb of a format.
func messages(t *testing.T) (texts []string) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); !ok || !strings.HasPrefix(strings.ToLower(fn.Name.Name), "warn") {
				ast.Inspect(d, func(n ast.Node) bool {
					if says(n) {
						texts = append(texts, sentences(n)...)
					}
					return true
				})
			}
		}
	}
	return slices.DeleteFunc(texts, func(s string) bool { return slices.Contains(unshown, s) })
}

// says reports whether n adds a problem, or is the reason for one.
func says(n ast.Node) bool {
	adds := []string{"add", "addKey", "addIf", "stop", "unique", "wrongType", "notA", "null", "refuse", "refuseIf"}
	switch n := n.(type) {
	case *ast.CallExpr:
		switch f := n.Fun.(type) {
		case *ast.Ident:
			return slices.Contains(adds, f.Name)
		case *ast.SelectorExpr:
			return slices.Contains(adds, f.Sel.Name)
		}
	case *ast.CompositeLit:
		typ, ok := n.Type.(*ast.Ident)
		return ok && typ.Name == "valueError"
	}
	return false
}

// sentences returns the string literals below n that have several words.
func sentences(n ast.Node) (texts []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value) // it was parsed
			if text, _, _ = strings.Cut(text, "%"); strings.Contains(strings.TrimSpace(text), " ") {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

func secretValues() []string {
	var out []string
	for _, v := range secrets {
		out = append(out, v)
	}
	return out
}

// mustFail parses data and returns its problems, whose places must be inside it.
func mustFail(t *testing.T, data []byte, env config.Env) config.Problems {
	t.Helper()
	c, err := config.Parse("aegis.yaml", data, env)
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("error is %v, want problems", err)
	}
	if c != nil {
		t.Error("a configuration with problems was returned")
	}
	checkPlaces(t, data, problems)
	return problems
}

// checkPlaces holds that problems are sorted and stand inside the file.
func checkPlaces(t *testing.T, data []byte, problems config.Problems) {
	t.Helper()
	lines := bytes.Split(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\n"))
	for i, p := range problems {
		if p.Line < 1 || p.Line > len(lines) {
			t.Fatalf("line %d of %d: %v", p.Line, len(lines), p)
		}
		if width := len([]rune(string(lines[p.Line-1]))); p.Col < 1 || p.Col > width+1 {
			t.Fatalf("column %d of %d: %v", p.Col, width, p)
		}
		if p.What == "" || p.Do == "" {
			t.Errorf("says not what is wrong and what to do: %v", p)
		}
		if i > 0 && (p.Line < problems[i-1].Line || p.Line == problems[i-1].Line && p.Col < problems[i-1].Col) {
			t.Errorf("out of order: %v before %v", problems[i-1], p)
		}
	}
}

func compareFile(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test ./config -update and read what it writes", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("messages differ from %s (-want +got):\n%s", file, diff)
	}
}
