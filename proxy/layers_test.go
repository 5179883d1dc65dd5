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
	"config":                     {},
	"config/gen":                 {"config"},
	"spec":                       {},
	"proxy":                      {},
	"proxy/internal/jsonscan":    {},
	"config/watch":               {},
	"proxy/internal/http1":       {},
	"proxy/internal/buffers":     {},
	"cmd/internal/browsertest":   {},
	"cmd/aegis/internal/systemd": {},
	"cmd/aegis/internal/doctor":  {},
	"cmd/aegis/internal/setup":   {"config", "cmd/aegis/internal/doctor", "proxy/server"},
	"proxy/internal/seal":        {"proxy/internal/files"},
	"proxy/internal/files":       {},
	"proxy/kv":                   {"proxy/internal/seal"},
	"proxy/kv/kvtest":            {"proxy/kv"},
	"proxy/kv/redis":             {"proxy/kv"},
	"proxy/kv/certstore":         {"proxy/kv"},

	"proxy/kv/redistest": {},
	"proxy/kv/open":      {"config", "proxy/internal/seal", "proxy/kv", "proxy/kv/redis"},

	"spec/build":                {"spec"},
	"spec/build/generate":       {"spec", "spec/build"},
	"proxy/catalog":             {"config", "proxy", "spec", "proxy/internal/jsonscan"},
	"proxy/policy":              {"config", "proxy", "proxy/internal/jsonscan"},
	"proxy/gitea":               {"config", "proxy", "proxy/internal/buffers", "proxy/internal/http1", "proxy/internal/jsonscan"},
	"proxy/gitea/fakegitea":     {},
	"proxy/mask":                {"config", "proxy", "proxy/internal/jsonscan"},
	"proxy/envelope":            {"config", "proxy", "proxy/internal/jsonscan"},
	"proxy/policy/members":      {"config", "proxy"},
	"proxy/policy/confirm":      {"config", "proxy", "proxy/kv"},
	"proxy/oauth":               {"config", "proxy", "proxy/internal/jsonscan", "proxy/kv", "proxy/oauth/client", "proxy/oauth/grant", "proxy/oauth/scope", "proxy/oauth/upstream"},
	"proxy/oauth/scope":         {},
	"proxy/oauth/grant":         {"proxy/kv", "proxy/oauth/scope"},
	"proxy/oauth/upstream":      {"config", "proxy", "proxy/kv", "proxy/oauth/scope"},
	"proxy/oauth/client":        {"config", "proxy", "proxy/kv", "proxy/oauth/scope"},
	"proxy/edge":                {"config", "proxy"},
	"proxy/edge/certs":          {"config", "proxy", "config/watch"},
	"proxy/edge/certs/acmetest": {},
	"proxy/limit":               {"config", "proxy"},
	"proxy/telemetry":           {"config", "proxy"},
	"proxy/gitea/passthrough":   {"proxy"},
	"proxy/audit":               {"config", "proxy", "proxy/internal/files"},
	"proxy/mcp":                 {"config", "proxy", "proxy/internal/buffers", "proxy/internal/jsonscan"},
	"proxy/server":              {"*"},
	"cmd/aegis":                 {"config", "cmd/aegis/internal/doctor", "cmd/aegis/internal/systemd", "config/watch", "proxy/server", "proxy/audit", "proxy/catalog", "proxy/kv", "proxy/kv/open", "proxy/oauth/grant", "proxy/policy", "cmd/aegis/internal/setup"},
	"proxy/server/browser":      {},
	"cmd/bench":                 {"config", "proxy/server"},
	"cmd/bench/mask":            {},
	"cmd/conformance":           {"cmd/internal/browsertest"},
	"deploy/release":            {},
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
