package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"

	"aegis/config"

	"gopkg.in/yaml.v3"
)

// kind is how a key is written in the file. A kind is more than a Go type: a duration
// and a text are both strings in YAML, and are written and checked in different ways.
type kind string

// The kinds of key, as the manual names them.
const (
	kindSection  kind = "section"
	kindList     kind = "list of sections"
	kindTexts    kind = "list of texts"
	kindTable    kind = "section of lists"
	kindSecrets  kind = "list of secrets"
	kindSecret   kind = "secret"
	kindText     kind = "text"
	kindURL      kind = "URL"
	kindPattern  kind = "pattern"
	kindDuration kind = "duration"
	kindSize     kind = "size"
	kindInt      kind = "whole number"
	kindFloat    kind = "number"
	kindBool     kind = "true or false"
	kindRate     kind = "rate"
	kindNetworks kind = "list of networks"
	kindSections kind = "section of sections"
	kindChoices  kind = "section of texts"
)

// entry is one key of the file and what is known of it.
type entry struct {
	path     string // auth.tokens[].name
	key      string // name
	kind     kind
	doc      string // the field's doc comment, with the key for the field's name
	tag      reflect.StructTag
	fallback *yaml.Node // the default; nil when there is none
	below    []entry
}

// readManual returns the entries of the whole file, with the comments of the
// package in dir. It fails for a field without a doc comment.
func readManual(dir string) (entry, error) {
	docs, err := readDocs(dir)
	if err != nil {
		return entry{}, err
	}
	// Defaults are read from what the program prints of itself, so that they are
	// spelled as people would write them.
	c := config.Default()
	oneItem(reflect.ValueOf(c).Elem())
	effective, err := config.Effective(c)
	if err != nil {
		return entry{}, err
	}
	var defaults yaml.Node
	if err := yaml.Unmarshal(effective, &defaults); err != nil {
		return entry{}, fmt.Errorf("reading the defaults: %w", err)
	}
	t := reflect.TypeFor[config.Config]()
	root := entry{kind: kindSection, doc: docs["Config"], fallback: defaults.Content[0]}
	root.below, err = entries(t, root, docs)
	return root, err
}

// oneItem gives lists of sections one item, to show the defaults of its keys. Their
// defaults are the zero values, which only an item shows.
func oneItem(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case v.Type().Field(i).Tag.Get("yaml") == "":
		case kindOf(f.Type()) == kindList:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case kindOf(f.Type()) == kindSection:
			oneItem(f)
		}
	}
}

// readDocs returns the doc comments of structs (Token) and fields (Token.Name) in a
// package's folder. Reflection does not see comments, so the sources are parsed.
func readDocs(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("finding the comments: %w", err)
	}
	docs := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		// One file at a time: a build tag or an error in another one does not matter
		// for comments.
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading the comments: %w", err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				addDocs(docs, g)
			}
		}
	}
	return docs, nil
}

// addDocs adds the doc comments of declared types and their fields.
func addDocs(docs map[string]string, g *ast.GenDecl) {
	for _, s := range g.Specs {
		spec := s.(*ast.TypeSpec)
		docs[spec.Name.Name] = oneLine(g.Doc.Text())
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range st.Fields.List {
			// A comment before several names on one line is that of each.
			for _, name := range field.Names {
				docs[spec.Name.Name+"."+name.Name] = oneLine(field.Doc.Text())
			}
		}
	}
}

// Comments are wrapped for the source; each page wraps by itself.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// entries returns the keys of a struct. Fields without a key, such as where a
// configuration came from, are none of the file's.
func entries(t reflect.Type, parent entry, docs map[string]string) ([]entry, error) {
	var out []entry
	var problems []error
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" {
			continue
		}
		e := entry{key: key, path: strings.TrimPrefix(parent.path+"."+key, "."), tag: f.Tag, kind: kindOf(f.Type)}
		e.doc = docs[t.Name()+"."+f.Name]
		// The sentence is about the key then, and reads right in the manual and in an
		// editor.
		if rest, ok := strings.CutPrefix(e.doc, f.Name+" "); ok {
			e.doc = key + " " + rest
		} else {
			problems = append(problems,
				fmt.Errorf("%s.%s: the doc comment must begin with the field's name", t.Name(), f.Name))
		}
		e.fallback = child(parent.fallback, key)
		var err error
		of := e // what the keys below are part of
		switch e.kind {
		case kindSection:
			e.below, err = entries(f.Type, of, docs)
		case kindList:
			of.path, of.fallback = e.path+"[]", nil
			if e.fallback != nil { // nil below a section of sections
				of.fallback = e.fallback.Content[0]
				e.fallback = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
			}
			e.below, err = entries(f.Type.Elem(), of, docs)
		case kindSections:
			of.path, of.fallback = e.path+".*", nil
			e.below, err = entries(f.Type.Elem(), of, docs)
		}
		problems = append(problems, err)
		out = append(out, e)
	}
	// All of them at once: a new section often lacks several comments.
	return out, errors.Join(problems...)
}

// child returns the default at a key below n, nil when there is none. An item of a list
// or of a map has no defaults of its own.
func child(n *yaml.Node, key string) *yaml.Node {
	var keys map[string]yaml.Node
	if n != nil {
		_ = n.Decode(&keys) // what is no mapping has no keys
	}
	if below, ok := keys[key]; ok {
		return &below
	}
	return nil
}

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[config.Secret]():           kindSecret,
	reflect.TypeFor[[]config.Secret]():         kindSecrets,
	reflect.TypeFor[config.Duration]():         kindDuration,
	reflect.TypeFor[config.ByteSize]():         kindSize,
	reflect.TypeFor[*config.URL]():             kindURL,
	reflect.TypeFor[*config.Regexp]():          kindPattern,
	reflect.TypeFor[string]():                  kindText,
	reflect.TypeFor[*string]():                 kindText,
	reflect.TypeFor[[]string]():                kindTexts,
	reflect.TypeFor[map[string][]string]():     kindTable,
	reflect.TypeFor[int]():                     kindInt,
	reflect.TypeFor[float64]():                 kindFloat,
	reflect.TypeFor[bool]():                    kindBool,
	reflect.TypeFor[config.Rate]():             kindRate,
	reflect.TypeFor[[]config.Prefix]():         kindNetworks,
	reflect.TypeFor[map[string]config.Limit](): kindSections,
	reflect.TypeFor[map[string]config.Team]():  kindSections,
	reflect.TypeFor[map[string]string]():       kindChoices,
}

// kindOf returns the kind of a field's type. A type that is not in the table is a
// section or a list of them. A new scalar type must be added to the table, or it would
// be a section without keys.
func kindOf(t reflect.Type) kind {
	if k, ok := kinds[t]; ok {
		return k
	}
	if t.Kind() == reflect.Slice {
		return kindList
	}
	return kindSection
}
