package audit_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy/audit"
)

var update = flag.Bool("update", false, "write the tables of docs/audit.md")

const manual = "../../docs/audit.md"

// TestManual holds that docs/audit.md has every field and every event, in the
// words of their comments.
func TestManual(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "record.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(text), "fields", fieldTable(t, f))
	want = between(t, want, "events", eventTable(t, f))
	if *update {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("docs/audit.md is not what record.go says (-want +got); run go test ./proxy/audit -run Manual -update:\n%s", diff)
	}
}

// between puts a table between the two marks of a name.
func between(t *testing.T, text, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatalf("docs/audit.md lacks the marks of %s", name)
	}
	return text[:i+len(begin)] + table + text[j:]
}

func fieldTable(t *testing.T, f *ast.File) string {
	docs := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range st.Fields.List {
					docs[spec.Name.Name+"."+field.Names[0].Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
				}
			}
		}
		return true
	})
	var b strings.Builder
	b.WriteString("| member | type | meaning |\n| --- | --- | --- |\n")
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			doc, ok := strings.CutPrefix(docs[typ.Name()+"."+field.Name], field.Name+" ")
			if !ok {
				t.Errorf("%s.%s: the comment must begin with the field's name", typ.Name(), field.Name)
			}
			elem := field.Type
			if elem.Kind() == reflect.Pointer {
				elem = elem.Elem()
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", path+name, jsonType(elem), strings.ReplaceAll(doc, "|", "\\|"))
			if jsonType(elem) == "object" && elem.Kind() == reflect.Struct {
				walk(elem, path+name+".")
			}
		}
	}
	walk(reflect.TypeFor[audit.Record](), "")
	return b.String()
}

func jsonType(typ reflect.Type) string {
	switch {
	case typ.Name() == "Time":
		return "time"
	case typ.Kind() == reflect.String:
		return "text"
	case typ.Kind() == reflect.Bool:
		return "true"
	case typ.Kind() == reflect.Slice:
		return "list"
	case typ.Kind() == reflect.Struct, typ.Kind() == reflect.Map:
		return "object"
	}
	return "number"
}

func eventTable(t *testing.T, f *ast.File) string {
	var b strings.Builder
	b.WriteString("| event | meaning |\n| --- | --- |\n")
	ast.Inspect(f, func(n ast.Node) bool {
		g, ok := n.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			return true
		}
		for _, s := range g.Specs {
			spec := s.(*ast.ValueSpec)
			doc := strings.Join(strings.Fields(spec.Doc.Text()), " ")
			doc, ok := strings.CutPrefix(doc, spec.Names[0].Name+" ")
			if !ok {
				t.Errorf("%s: the comment must begin with the name", spec.Names[0].Name)
			}
			fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(spec.Values[0].(*ast.BasicLit).Value, `"`, "`"), doc)
		}
		return true
	})
	return b.String()
}

// TestVerificationByHand runs the commands of the manual on a real log.
func TestVerificationByHand(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "sha256sum", "openssl", "base64"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```sh\n")
	script, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("docs/audit.md has no commands")
	}
	r := newRig(t, settings())
	r.open()
	r.calls(3)
	r.log.Close()
	run := func() (string, error) {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = filepath.Dir(r.path)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	if err != nil || !strings.Contains(out, "Signature Verified Successfully") ||
		!strings.Contains(out, "the log has the record of the checkpoint") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.WriteFile(r.path, []byte(strings.Replace(r.text(), "alice", "mallo", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err == nil || !strings.Contains(out, "edited: ") {
		t.Errorf("an edited log: %v\n%s", err, out)
	}
}
