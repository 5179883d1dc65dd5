package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aegis/config"
)

// FuzzParse: whatever the file says, Parse returns a valid configuration or
// problems that stand inside the file, and shows no secret.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "../aegis.example.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{
		minimal, "", "---", "--- \n...\n---", "a: &a [*a]", "? [a]\n: b", "!!binary x", "{{{{", "- - - -", "&a", "*a", "%YAML 1.1\n---\n", "<<: {a: b}",
		"results:\n  fields_default: &x\n    a: [b]\n    <<: *x\n", "tools: {enable: [*x]}", "\uFEFFlisten: x", "auth: &a {tokens: [*a]}",
	} {
		f.Add([]byte(s))
	}
	env := testEnv("")
	env.ReadFile = func(string, int64) ([]byte, fs.FileMode, error) { return []byte(hush + "\n"), 0o600, nil }
	schema := resolveSchema(&testing.T{})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("aegis.yaml", data, env)
		if err == nil {
			if ps := c.Validate(); ps != nil {
				t.Errorf("a configuration that is not valid was returned: %v", ps)
			}
			if _, err := config.Effective(c); err != nil {
				t.Errorf("it cannot be printed: %v", err)
			}
			if v, ok := instance(t, data); ok && schema.Validate(v) != nil {
				t.Errorf("Parse accepts what the schema refuses: %v", schema.Validate(v))
			}
			return
		}
		var problems config.Problems
		if !errors.As(err, &problems) {
			t.Fatalf("the error is no list of problems: %v", err)
		}
		checkPlaces(t, data, problems)
		for _, s := range append(secretValues(), hush) {
			if strings.Contains(err.Error(), s) && !strings.Contains(string(data), s) {
				t.Errorf("a secret is in the messages: %v", err)
			}
		}
	})
}
