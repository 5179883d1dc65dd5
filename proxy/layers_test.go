package proxy_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers says which of our packages each package may import. A package without
// a row fails the test: a new package is a decision, so write it down here and
// say why in docs/adr.
var layers = map[string][]string{
	"config":                {},
	"config/gen":            {"config"},
	"spec":                  {},
	"proxy":                 {},
	"internal/jsonscan":     {},
	"internal/watch":        {},
	"internal/http1":        {},
	"internal/buffers":      {},
	"internal/persontest":   {},
	"internal/systemd":      {},
	"internal/doctor":       {},
	"internal/seal":         {},
	"internal/kv":           {"internal/seal"},
	"internal/kv/kvtest":    {"internal/kv"},
	"internal/kv/rediskv":   {"internal/kv"},
	"internal/kv/certstore": {"internal/kv"},

	"internal/kv/rediskv/redistest": {},

	"spec/build":              {"spec"},
	"spec/build/generate":     {"spec", "spec/build"},
	"proxy/catalog":           {"config", "proxy", "spec", "internal/jsonscan"},
	"proxy/policy":            {"config", "proxy", "internal/jsonscan"},
	"proxy/gitea":             {"config", "proxy", "internal/buffers", "internal/http1", "internal/jsonscan"},
	"proxy/gitea/giteatest":   {},
	"proxy/mask":              {"config", "proxy", "internal/jsonscan"},
	"proxy/envelope":          {"config", "proxy", "internal/jsonscan"},
	"proxy/access":            {"config", "proxy"},
	"proxy/confirm":           {"config", "proxy", "internal/kv"},
	"proxy/sanitize":          {"proxy", "internal/jsonscan"},
	"proxy/oauth":             {"config", "proxy", "internal/jsonscan", "internal/kv", "proxy/oauth/client", "proxy/oauth/grant", "proxy/oauth/upstream"},
	"proxy/oauth/grant":       {"internal/kv"},
	"proxy/oauth/upstream":    {"config", "proxy", "internal/kv"},
	"proxy/oauth/client":      {"config", "proxy", "internal/kv"},
	"proxy/edge":              {"config", "proxy"},
	"proxy/tlsserve":          {"config", "proxy", "internal/watch"},
	"proxy/tlsserve/acmetest": {},
	"proxy/limit":             {"config", "proxy"},
	"proxy/metrics":           {"proxy"},
	"proxy/passthrough":       {"proxy"},
	"proxy/tracing":           {"config", "proxy"},
	"proxy/audit":             {"config", "proxy"},
	"proxy/mcp":               {"config", "proxy", "internal/buffers", "internal/jsonscan"},
	"proxy/server":            {"*"},
	"cmd/aegis":               {"config", "internal/doctor", "internal/systemd", "internal/watch", "proxy/server"},
	"browser":                 {},
	"bench":                   {"config", "proxy/server"},
	"bench/mask":              {},
	"conformance":             {"internal/persontest"},
	"deploy/release":          {},
}

func TestLayers(t *testing.T) {
	root := ".."
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && p != root) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		seen[pkg] = true
		checkImports(t, p, pkg)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range layers {
		if !seen[pkg] {
			t.Errorf("layers has a row for %s, which has no Go files; remove the row", pkg)
		}
	}
}

func checkImports(t *testing.T, file, pkg string) {
	t.Helper()
	allowed, ok := layers[pkg]
	if !ok {
		t.Errorf("%s: package %s has no row in layers", file, pkg)
		return
	}
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, imp := range f.Imports {
		name, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "aegis/")
		if ours && !slices.Contains(allowed, "*") && !slices.Contains(allowed, name) {
			t.Errorf("%s: package %s must not import %s; see docs/architecture.md", file, pkg, name)
		}
	}
}
