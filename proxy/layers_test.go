package proxy_test

import (
	"flag"
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

// layer is a package of ours.
type layer struct {
	name string // below the module
	is   string // one line of Markdown for docs/architecture.md
	// uses are the packages of ours that it may import; "*" is all.
	uses []string
}

// layers are all packages. One without a row fails the test: a new package is a decision, so
// write it down here and say why in docs/adr. "make generate" puts the rows into
// docs/architecture.md.
var layers = []layer{
	{"config", "the YAML file: typed structs that are the manual, strict loading, `Secret`", nil},
	{"config/watch", "tells when files change", nil},
	{"config/gen", "makes docs/config.md and the schema from the structs", []string{"config"}},
	{"spec", "the pinned facts of Gitea's API; our names, risks, words and scopes by route; the generated catalog", nil},
	{"spec/build", "makes a catalog from facts or from any Swagger description", []string{"spec"}},
	{"spec/build/generate", "makes spec/catalog.json and docs/tools.md", []string{"spec", "spec/build"}},
	{"proxy", "the vocabulary: `Call`, `Tool`, `Identity`, `Result`, `Error`, `Stage`, `Chain`; `WriteError`", nil},
	{"proxy/internal/jsonscan", "checks JSON and finds its parts without decoding it", nil},
	{"proxy/internal/lru", "keeps the values that were used last", nil},
	{"proxy/internal/buffers", "memory that serves one answer after another", nil},
	{"proxy/internal/http1", "connections to a Gitea next door, without goroutines of their own", nil},
	{"proxy/internal/files", "opens, locks and replaces files of keys and records", nil},
	{"proxy/internal/seal", "sealing with a ring of keys", []string{"proxy/internal/files"}},
	{"proxy/kv", "the store, in memory or in a file", []string{"proxy/internal/seal"}},
	{"proxy/kv/redis", "the store in Redis, for several replicas", []string{"proxy/kv"}},
	{"proxy/kv/certstore", "certificates and their keys in the store", []string{"proxy/kv"}},
	{"proxy/kv/kvtest", "a clock for tests of stores; its own tests are the table that every store must pass", nil},
	{"proxy/kv/open", "the configuration to a sealed store: picks file or Redis, and reads the keys", []string{"config", "proxy/internal/seal", "proxy/kv", "proxy/kv/redis"}},
	{"proxy/kv/replicas", "how many replicas share a store, and who lost a membership that one has seen end", []string{"proxy/kv"}},
	{"proxy/kv/redistest", "real Redis servers for tests", nil},
	{"proxy/catalog", "tools, their selection, search, argument validation", []string{"config", "proxy", "spec", "proxy/internal/jsonscan"}},
	{"proxy/policy", "repositories, branches, paths and budgets of a team", []string{"config", "proxy", "proxy/internal/jsonscan"}},
	{"proxy/policy/members", "who may enter an endpoint", []string{"config", "proxy"}},
	{"proxy/policy/confirm", "a person decides before a call runs", []string{"config", "proxy", "proxy/kv"}},
	{"proxy/gitea", "the only package that talks to Gitea", []string{"config", "proxy", "proxy/internal/buffers", "proxy/internal/http1", "proxy/internal/jsonscan"}},
	{"proxy/gitea/passthrough", "what is not Aegis's own, to Gitea as it is", []string{"proxy"}},
	{"proxy/gitea/demo", "the Gitea of `aegis demo`: the double, filled and described", []string{"config", "spec", "spec/build", "proxy/gitea/fakegitea"}},
	{"proxy/gitea/fakegitea", "a stateful double of Gitea, for tests and the demo", nil},
	{"proxy/mask", "redaction and secret patterns", []string{"config", "proxy", "proxy/internal/jsonscan", "proxy/mask/match"}},
	{"proxy/mask/match", "the table of credentials; what of it goes from texts of strangers, whatever the configuration", nil},
	{"proxy/envelope", "what a model reads, within its bounds; cursors; fields", []string{"config", "proxy", "proxy/internal/jsonscan"}},
	{"proxy/oauth", "who is calling: static tokens, and the authorization server", []string{"config", "proxy", "proxy/internal/jsonscan", "proxy/internal/lru", "proxy/kv", "proxy/oauth/client", "proxy/oauth/grant", "proxy/oauth/scope", "proxy/oauth/upstream"}},
	{"proxy/oauth/client", "MCP clients: registration, documents, redirect URIs", []string{"config", "proxy", "proxy/internal/lru", "proxy/kv", "proxy/oauth/scope"}},
	{"proxy/oauth/grant", "codes and tokens of people who signed in", []string{"config", "proxy/internal/lru", "proxy/kv", "proxy/oauth/scope"}},
	{"proxy/oauth/scope", "Gitea's scopes: what a token may do, by area", nil},
	{"proxy/oauth/upstream", "Aegis as an OAuth client of Gitea", []string{"config", "proxy", "proxy/internal/lru", "proxy/kv", "proxy/oauth/scope"}},
	{"proxy/edge", "what a request meets first", []string{"config", "proxy"}},
	{"proxy/edge/certs", "certificates and the plain listener beside TLS", []string{"config", "proxy", "config/watch"}},
	{"proxy/edge/certs/acmetest", "a real certificate authority for tests", nil},
	{"proxy/limit", "token buckets by address, identity, team, class and tool; caps on calls at a time", []string{"config", "proxy", "proxy/internal/lru"}},
	{"proxy/audit", "the log of who did what, and its verification", []string{"config", "proxy", "proxy/internal/files", "proxy/internal/http1"}},
	{"proxy/telemetry", "a log line for every call, numbers for Prometheus, spans for a collector", []string{"config", "proxy", "proxy/internal/http1"}},
	{"proxy/mcp", "the binding to the official MCP SDK", []string{"config", "proxy", "proxy/internal/buffers", "proxy/internal/jsonscan"}},
	{"proxy/server", "the wiring", []string{"*"}},
	{"proxy/server/browser", "pages in a real browser, for tests", nil},
	{"cmd/aegis", "flags, sub-commands, exit codes", []string{"config", "cmd/aegis/internal/doctor", "cmd/aegis/internal/setup", "cmd/aegis/internal/systemd", "config/watch", "proxy/audit", "proxy/catalog", "proxy/gitea/demo", "proxy/kv", "proxy/kv/open", "proxy/oauth/grant", "proxy/policy", "proxy/server"}},
	{"cmd/aegis/internal/setup", "writes a first configuration, makes the application in Gitea, connects clients", []string{"config", "cmd/aegis/internal/doctor", "proxy/server"}},
	{"cmd/aegis/internal/doctor", "looks at a running Aegis from outside, and at Gitea", []string{"config"}},
	{"cmd/aegis/internal/systemd", "notices and sockets", nil},
	{"cmd/internal/browsertest", "a person with a browser, for tests of commands", nil},
	{"cmd/bench", "what Aegis costs, beside a plain proxy", []string{"config", "proxy/server"}},
	{"cmd/conformance", "the official MCP conformance suite", []string{"cmd/internal/browsertest"}},
	{"deploy/release", "what people install", nil},
}

func TestLayers(t *testing.T) {
	t.Parallel()
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
	for _, l := range layers {
		if !seen[l.name] {
			t.Errorf("layers has a row for %s, which has no Go files; remove the row", l.name)
		}
	}
}

func checkImports(t *testing.T, file, pkg string) {
	t.Helper()
	at := slices.IndexFunc(layers, func(l layer) bool { return l.name == pkg })
	if at < 0 {
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
		if ours && !slices.Contains(layers[at].uses, "*") && !slices.Contains(layers[at].uses, name) {
			t.Errorf("%s: package %s must not import %s; see docs/architecture.md", file, pkg, name)
		}
	}
}

var update = flag.Bool("update", false, "write what these tests compare with")

// TestPackagesAreDocumented holds the table of docs/architecture.md to layers. With -update it
// writes the table.
func TestPackagesAreDocumented(t *testing.T) {
	const file, begin, end = "../docs/architecture.md", "<!-- packages: made from proxy/layers_test.go -->\n", "<!-- end of packages -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the comments around its table of packages", file)
	}
	want := before + begin + packageTable() + end + after
	switch {
	case want == string(page):
	case !*update:
		t.Errorf("%s: its table of packages is not layers; run make generate", file)
	default:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// packageTable is layers in Markdown. Packages that one may import are named by the last part
// of their path.
func packageTable() string {
	var b strings.Builder
	b.WriteString("\n| package | what it is | may import |\n| --- | --- | --- |\n")
	for _, l := range layers {
		uses := "–"
		for i, u := range l.uses {
			switch {
			case u == "*":
				uses = "all"
			case i == 0:
				uses = "`" + path.Base(u) + "`"
			default:
				uses += " `" + path.Base(u) + "`"
			}
		}
		b.WriteString("| `" + l.name + "` | " + l.is + " | " + uses + " |\n")
	}
	b.WriteString("\n")
	return b.String()
}
