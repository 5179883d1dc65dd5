package proxy_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These tests hold the project's habits, so that a review can be about the
// matter. Each failure says what to do.

const (
	maxFileLines     = 450
	maxFunctionLines = 80
)

// sources yields every Go file of ours with its syntax tree.
func sources(t *testing.T, tests bool) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || !tests && strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = f
	})
	return files
}

var fset = token.NewFileSet()

func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && p != "..") {
			return filepath.SkipDir
		}
		if !d.IsDir() {
			visit(filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachPackageHasOneComment(t *testing.T) {
	comments := map[string][]string{}
	for path, f := range sources(t, false) {
		dir := filepath.Dir(path)
		if f.Doc != nil {
			comments[dir] = append(comments[dir], path)
		} else if _, ok := comments[dir]; !ok {
			comments[dir] = nil
		}
	}
	for dir, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s: want one package comment, in one file; has %v", dir, files)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for path, f := range sources(t, false) {
		for _, decl := range f.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s is exported and has no comment", path, name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration without a comment of
// their own or of their group.
func undocumented(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func TestFilesAndFunctionsStayReadable(t *testing.T) {
	for path, f := range sources(t, false) {
		if n := fset.Position(f.End()).Line; n > maxFileLines {
			t.Errorf("%s has %d lines; cut it where the matter changes (at most %d)", path, n, maxFileLines)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines (at most %d)", path, fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestForbiddenInSources(t *testing.T) {
	for path, f := range sources(t, false) {
		command := f.Name.Name == "main"
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s: init runs before anybody can say what with; build it in a constructor", path)
				}
			case *ast.CallExpr:
				if name := called(n); forbidden[name] != "" && !command {
					t.Errorf("%s: %s: %s", fset.Position(n.Pos()), name, forbidden[name])
				}
			}
			return true
		})
	}
}

// forbidden calls, outside commands, and why.
var forbidden = map[string]string{
	"panic":       "return an error",
	"os.Exit":     "return an error; only a command ends the process",
	"fmt.Print":   "take an io.Writer",
	"fmt.Println": "take an io.Writer",
	"fmt.Printf":  "take an io.Writer",
	"log.Print":   "take a zerolog.Logger",
	"log.Println": "take a zerolog.Logger",
	"log.Printf":  "take a zerolog.Logger",
	"log.Fatal":   "return an error",
	"log.Fatalf":  "return an error",
}

// TestTestsShareNoConnections: [net/http/httptest.Server.Close] closes the idle
// connections of http.DefaultTransport, and with them requests of other tests whose
// answer, without a body, just arrives ("CloseIdleConnections called").
func TestTestsShareNoConnections(t *testing.T) {
	shared := map[string]bool{"http.DefaultClient": true, "http.DefaultTransport": true, "http.Get": true, "http.Head": true, "http.Post": true, "http.PostForm": true}
	// withTransport are the types of clients that take the default without this field.
	withTransport := map[string]string{"http.Client": "Transport", "sdk.StreamableClientTransport": "HTTPClient"}
	for path, f := range sources(t, true) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if name := selected(n); shared[name] {
					t.Errorf("%s: %s is shared with other tests; use a client with a transport of its own", fset.Position(n.Pos()), name)
				}
			case *ast.CompositeLit:
				if field := withTransport[selected(n.Type)]; field != "" && !hasField(n, field) {
					t.Errorf("%s: without %s it shares connections with other tests", fset.Position(n.Pos()), field)
				}
			}
			return true
		})
	}
}

func hasField(lit *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := kv.Key.(*ast.Ident)
		return ok && key.Name == name
	})
}

// selected returns the name of what a package exports, with the package's.
func selected(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

func called(c *ast.CallExpr) string {
	if fn, ok := c.Fun.(*ast.Ident); ok {
		return fn.Name
	}
	return selected(c.Fun)
}

// TestNothingIsLeftOpen: what is not done is said in the changelog or refused in
// the code; a comment in the middle is read by nobody.
func TestNothingIsLeftOpen(t *testing.T) {
	open := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	walk(t, func(path string) {
		switch filepath.Ext(path) {
		case ".go", ".md", ".yaml", ".mod":
		default:
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if open.Match(line) {
				t.Errorf("%s:%d: left open: %s", path, i+1, line)
			}
		}
	})
}

// ownErrors finds the members of errors in Aegis's own form, written by hand or named in a tag.
var ownErrors = regexp.MustCompile(`\\?"(request_id|kind)\\?"\s*:|json:"(request_id|kind)[",]`)

// TestErrorsHaveOneWriter: whoever answers with an error uses proxy.WriteError, so that each has
// kind, message and request id. Errors of JSON-RPC (mcp), records (audit) and the answer to a
// head that never came (edge/late.go, below net/http) have forms of their own.
func TestErrorsHaveOneWriter(t *testing.T) {
	exempt := []string{"../proxy/write.go", "../proxy/mcp/", "../proxy/audit/", "../proxy/edge/late.go", "../proxy/gitea/fakegitea/"}
	found := map[string]bool{}
	for file := range sources(t, false) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(exempt, func(prefix string) bool { return strings.HasPrefix(file, prefix) })
		for i, line := range strings.Split(string(data), "\n") {
			if !ownErrors.MatchString(line) {
				continue
			}
			if at < 0 {
				t.Errorf("%s:%d: an error is written by hand; use proxy.WriteError: %s", file, i+1, strings.TrimSpace(line))
			} else {
				found[exempt[at]] = true
			}
		}
	}
	for _, place := range exempt[:4] { // else the pattern matches nothing, or the exemption is idle
		if !found[place] {
			t.Errorf("%s writes no errors of its own; remove it here", place)
		}
	}
}

func TestModuleHasNoReplace(t *testing.T) {
	data, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("replace")) || bytes.Contains(data, []byte("toolchain")) {
		t.Error("go.mod: no replace and no toolchain lines")
	}
}

// TestNoTemplates: text/template and html/template call methods by name, so the
// linker keeps every method of every package; that makes the binary a third larger.
// Pages are built of components instead.
func TestNoTemplates(t *testing.T) {
	for file, f := range sources(t, false) {
		for _, imp := range f.Imports {
			if path := strings.Trim(imp.Path.Value, `"`); path == "text/template" || path == "html/template" {
				t.Errorf("%s imports %s; see docs/adr/0001-dependencies.md", file, path)
			}
		}
	}
}

// TestNoToolIsKnownByItsPath: a call of the tool for any route has the same form as
// every other one. Whoever asks a tool whether it has a path is about to read that
// call's arguments in a way of his own.
func TestNoToolIsKnownByItsPath(t *testing.T) {
	for _, f := range sources(t, false) {
		ast.Inspect(f, func(n ast.Node) bool {
			if b, ok := n.(*ast.BinaryExpr); ok && asksForPath(b) {
				t.Errorf("%s: read Call.Op, Call.Wire or Call.Target instead", fset.Position(b.Pos()))
			}
			return true
		})
	}
	for src, want := range map[string]bool{
		`t.Path == ""`: true, `"" != c.Tool.Path`: true, `call.Op.Path == ""`: true, `len(tool.Path) == 0`: true,
		`u.Path == ""`: false, `t.Path == "/x"`: false,
	} {
		e, err := parser.ParseExpr(src)
		if err != nil {
			t.Fatal(err)
		}
		b := e.(*ast.BinaryExpr)
		if got := asksForPath(b); got != want {
			t.Errorf("%s: %v", src, got)
		}
	}
}

// asksForPath reports whether an expression compares the path of a tool with none.
func asksForPath(b *ast.BinaryExpr) bool {
	return emptyText(b.X) && toolPath(b.Y) || emptyText(b.Y) && toolPath(b.X)
}

// emptyText reports whether an expression is "", or the length that it has.
func emptyText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && (lit.Value == `""` || lit.Value == "``" || lit.Value == "0")
}

// toolPath reports whether an expression is the path of a tool, by the names that
// tools have here, or its length. URLs have paths too.
func toolPath(e ast.Expr) bool {
	if c, ok := e.(*ast.CallExpr); ok && called(c) == "len" && len(c.Args) == 1 {
		e = c.Args[0]
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Path" {
		return false
	}
	name := ""
	switch x := sel.X.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	switch strings.ToLower(name) {
	case "t", "tool", "op", "raw", "stands":
		return true
	}
	return false
}
