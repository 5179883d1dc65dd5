package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"aegis/config"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
	"gopkg.in/yaml.v3"
)

func readExample(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../aegis.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// off matches a setting of the example that is commented out: # and no prose.
var off = regexp.MustCompile(`(?m)^( *)#((?:- )?[a-z_]+: )`)

// TestExampleIsDefault: apart from what has no default, the example sets every
// key to it.
func TestExampleIsDefault(t *testing.T) {
	t.Parallel()
	c := mustParse(t, readExample(t))
	want := config.Default()
	want.Gitea.URL, want.Auth.Tokens = c.Gitea.URL, c.Auth.Tokens
	want.DataDir = "/etc/aegis/data" // relative paths start at the file's folder
	if diff := cmp.Diff(want, c, values, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the example differs from the defaults (-default +example):\n%s", diff)
	}
	if ws := c.Warnings(); len(ws) != 0 {
		t.Errorf("the example warns:\n%v", ws)
	}
}

// TestExampleHasEveryKey, with the settings that are commented out turned on.
func TestExampleHasEveryKey(t *testing.T) {
	t.Parallel()
	text := off.ReplaceAllString(readExample(t), "$1$2")
	c := mustParse(t, text)
	if len(c.Masking.Rules) != 1 {
		t.Errorf("%d masking rules with the comment signs removed, want 1", len(c.Masking.Rules))
	}
	for _, key := range allKeys(reflect.TypeFor[config.Config](), "") {
		if !c.IsSet(key) {
			t.Errorf("the example lacks %s", key)
		}
	}
	lines := strings.Split(readExample(t), "\n")
	for i, line := range lines {
		if strings.Contains(line, ": ") && !strings.HasPrefix(strings.TrimSpace(line), "# ") && !strings.HasPrefix(strings.TrimSpace(lines[i-1]), "# ") {
			t.Errorf("line %d has no comment above it: %s", i+1, line)
		}
	}
}

// allKeys returns the key paths of a struct, with index 0 in lists.
func allKeys(t reflect.Type, path string) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("yaml") == "" {
			continue
		}
		key := strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), ".")
		out = append(out, key)
		switch elem := f.Type; {
		case elem == reflect.TypeFor[config.Secret](), elem == reflect.TypeFor[[]config.Secret]():
		case elem.Kind() == reflect.Struct:
			out = append(out, allKeys(elem, key)...)
		case elem.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.Struct:
			out = append(out, allKeys(elem.Elem(), key+"[0]")...)
		}
	}
	return out
}

func resolveSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// instance returns YAML text as the values that JSON Schema is about.
func instance(t *testing.T, text []byte) (any, bool) {
	t.Helper()
	var v any
	if yaml.Unmarshal(text, &v) != nil {
		return nil, false
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	var out any
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out, true
}

func TestExampleFitsSchema(t *testing.T) {
	t.Parallel()
	r := resolveSchema(t)
	first, _, _ := strings.Cut(readExample(t), "\n")
	if want := "# yaml-language-server: $schema=config/aegis.schema.json"; first != want {
		t.Errorf("first line is %q, want %q", first, want)
	}
	for _, text := range []string{readExample(t), off.ReplaceAllString(readExample(t), "$1$2"), minimal} {
		v, ok := instance(t, []byte(text))
		if !ok {
			t.Fatal("the example is no JSON-like YAML")
		}
		if err := r.Validate(v); err != nil {
			t.Errorf("the example does not fit the schema: %v", err)
		}
	}
}

// TestSchemaRefuses holds that an editor marks what Load refuses, for the
// rules that a schema can express.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	r := resolveSchema(t)
	for _, name := range []string{
		"unknown-key", "unknown-key-list", "unknown-key-secret", "type-text", "type-bool", "type-int", "type-section", "type-list", "type-item", "type-table",
		"type-root", "null", "required-file", "required-token", "required-rule", "pattern-token-name", "pattern-glob", "pattern-field",
		"enum", "value-duration", "value-size", "value-url-relative", "value-url-user", "value-url-query",
		"range", "length-masking-rule",
	} {
		data, err := os.ReadFile("testdata/bad/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		v, ok := instance(t, data)
		if !ok {
			t.Fatalf("%s is no JSON-like YAML", name)
		}
		if r.Validate(v) == nil {
			t.Errorf("the schema accepts %s.yaml", name)
		}
	}
}

func TestSchemaIsACopy(t *testing.T) {
	t.Parallel()
	config.Schema()[0] = 'x'
	if config.Schema()[0] != '{' {
		t.Error("a caller can change the schema")
	}
}
