package spec_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"aegis/spec"
)

const small = `{"version":"1.0.0","source":"x","gitea_version":"1","arguments":{"owner":{"type":"string"}},` +
	`"definitions":{"User":{"type":"object","properties":{"boss":{"$ref":"User"}}}},"operations":[` +
	`{"id":"a","name":"gitea_user_get","version":"1.0.0","domain":"user","title":"T","description":"D","method":"GET",` +
	`"path":"/users/{owner}","params":[{"name":"owner","in":"path","required":true},{"name":"q","in":"query","schema":{"type":"string"}}],` +
	`"risk":"R0","read_only":true,"idempotent":true,"output":{"$ref":"User"}}]}`

func TestParse(t *testing.T) {
	t.Parallel()
	cat, err := spec.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(cat.Schema(&cat.Operations[0].Params[0])); got != `{"type":"string"}` {
		t.Errorf("shared schema %s", got)
	}
}

// TestBuiltinIsStrict: the built-in catalog, which is read without the strict decoder, is
// what that one makes of the same file.
func TestBuiltinIsStrict(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("catalog.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := spec.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := spec.Builtin(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the built-in catalog is another than catalog.json (%v)", err)
	}
}

// TestParseRefuses breaks one rule at a time.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, says string }{
		"unknown member":       {`"risk":"R0"`, `"risk":"R0","extra":1`, "extra"},
		"text after the end":   {`"User"}}]}`, `"User"}}]} {}`, "after its end"},
		"cut":                  {`"output":{"$ref":"User"}}]}`, ``, "not what"},
		"version":              {`"version":"1.0.0","source"`, `"version":"one","source"`, "version"},
		"no operations":        {small[strings.Index(small, `{"id"`):], `]}`, "operations"},
		"name":                 {"gitea_user_get", "user_get", "tool name"},
		"long name":            {"gitea_user_get", "gitea_user_" + strings.Repeat("x", 40), "tool name"},
		"domain":               {`"domain":"user"`, `"domain":"repository"`, "domain"},
		"method":               {`"method":"GET"`, `"method":"TRACE"`, "method"},
		"path":                 {`/users/{owner}`, `/users/../{owner}`, "path"},
		"query in the path":    {`/users/{owner}`, `/users/{owner}?sudo=x`, "path"},
		"risk":                 {`"risk":"R0"`, `"risk":"R7"`, "risk"},
		"reading and deleting": {`"read_only":true`, `"read_only":true,"destructive":true`, "destructive"},
		"paging":               {`"risk":"R0"`, `"risk":"R0","paging":"scroll"`, "paging"},
		"reserved argument":    {`"name":"q"`, `"name":"sudo"`, "reserved"},
		"credential in query":  {`"name":"q"`, `"name":"q","wire":"Access_Token"`, "credential"},
		"argument name":        {`"name":"q"`, `"name":"q q"`, "malformed"},
		"twice":                {`"name":"q"`, `"name":"owner"`, "taken"},
		"place":                {`"in":"query"`, `"in":"header"`, "place"},
		"optional path":        {`"in":"path","required":true`, `"in":"path"`, "cannot be"},
		"no schema":            {`"schema":{"type":"string"}`, `"schema":7`, "schema"},
		"reference":            {`"schema":{"type":"string"}`, `"schema":{"$ref":"User"}`, "schema"},
		"missing in the path":  {`/users/{owner}`, `/users/all`, "path"},
		"missing argument":     {`/users/{owner}`, `/users/{owner}/{other}`, "other"},
		"spaced reference":     {`{"$ref":"User"}}]}`, `{"$ref": "User"}}]}`, "output"},
		"reference and more":   {`{"$ref":"User"}}]}`, `{"$ref":"User","b":{"c":"d"}}}]}`, "output"},
		"replaced by nothing":  {`"risk":"R0"`, `"risk":"R0","replaced_by":"gitea_user_x"`, "does not exist"},
		"timeout":              {`"risk":"R0"`, `"risk":"R0","timeout_seconds":99999`, "timeout"},
	} {
		broken := strings.Replace(small, c.from, c.to, 1)
		if broken == small {
			t.Errorf("%s: nothing was broken", name)
			continue
		}
		if _, err := spec.Parse([]byte(broken)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.says)
		}
	}
	one := small[strings.Index(small, `{"id"`) : len(small)-len("]}")]
	twice := strings.TrimSuffix(small, "]}") + "," + strings.Replace(one, "gitea_user_get", "gitea_user_read", 1) + "]}"
	if _, err := spec.Parse([]byte(twice)); err == nil || !strings.Contains(err.Error(), "have the id") {
		t.Errorf("one id twice: %v", err)
	}
	if _, err := spec.Parse(bytes.Repeat([]byte(" "), spec.MaxBytes+1)); err == nil {
		t.Error("a huge file was read")
	}
}

func TestOutputHasNoReferences(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	e := spec.NewExpander(cat)
	for i := range cat.Operations {
		out := e.Output(&cat.Operations[i])
		if out == nil {
			continue
		}
		if !json.Valid(out) || bytes.Contains(out, []byte(`"$ref"`)) || len(out) > 64<<10 {
			t.Errorf("%s: output of %d bytes is invalid, refers elsewhere or is too long", cat.Operations[i].Name,
				len(out))
		}
	}
}

func TestOutputOfRecursion(t *testing.T) {
	t.Parallel()
	cat, err := spec.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	got := string(spec.NewExpander(cat).Output(&cat.Operations[0]))
	if strings.Count(got, "boss") != 3 || !json.Valid([]byte(got)) {
		t.Errorf("recursive output %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(`{"operations":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cat, err := spec.Parse(data)
		if err != nil {
			return
		}
		e := spec.NewExpander(cat)
		for i := range cat.Operations {
			o := &cat.Operations[i]
			if len(o.Name) > spec.MaxName || !strings.HasPrefix(o.Name, "gitea_"+o.Domain+"_") {
				t.Errorf("accepted the name %q", o.Name)
			}
			if out := e.Output(o); out != nil && !json.Valid(out) {
				t.Errorf("invalid output schema %q", out)
			}
			for j := range o.Params {
				if !json.Valid(cat.Schema(&o.Params[j])) {
					t.Error("invalid argument schema")
				}
			}
		}
	})
}
