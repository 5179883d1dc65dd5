package proxy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityPageNamesTests: every test that docs/security.md calls a proof is
// there, in the package that it names.
func TestSecurityPageNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	proofs := regexp.MustCompile("`([a-z/]+): ((?:(?:Test|Fuzz)[A-Za-z0-9]+(?:, )?)+)`").FindAllStringSubmatch(string(page), -1)
	if len(proofs) < 20 {
		t.Fatalf("the page names %d proofs; has its form changed?", len(proofs))
	}
	for line := range strings.SplitSeq(string(page), "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| threat ") && !strings.HasPrefix(line, "| ---") {
			if !strings.Contains(line, "`proxy") && !strings.Contains(line, "`config: ") {
				t.Errorf("a threat without a test: %s", line)
			}
		}
	}
	for _, p := range proofs {
		sources := testSources(t, filepath.Join("..", filepath.FromSlash(p[1])))
		for name := range strings.SplitSeq(p[2], ", ") {
			if !strings.Contains(sources, "func "+name+"(") {
				t.Errorf("docs/security.md: package %s has no %s", p[1], name)
			}
		}
	}
}

// testSources returns the text of a folder's test files.
func testSources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
