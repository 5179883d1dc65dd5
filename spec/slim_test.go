package spec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aegis/spec"
)

// TestSlimFieldsExist looks every field of the short lists up in the schema of
// the result: a misspelled one would keep nothing.
func TestSlimFieldsExist(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	expand := spec.NewExpander(cat)
	for i := range cat.Operations {
		o := &cat.Operations[i]
		if len(o.Slim) == 0 {
			continue
		}
		var schema map[string]any
		if err := json.Unmarshal(expand.Output(o), &schema); err != nil {
			t.Fatal(err)
		}
		for _, path := range o.Slim {
			if !hasField(schema, path) {
				t.Errorf("%s: its result has no %s", o.Name, path)
			}
		}
	}
}

// hasField reports whether a result of the schema can have the field. What a
// list has, it has by its items; of any value it can be said.
func hasField(schema map[string]any, path string) bool {
	if either, ok := schema["anyOf"].([]any); ok {
		for _, s := range either {
			if hasField(s.(map[string]any), path) {
				return true
			}
		}
		return false
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return hasField(items, path)
	}
	if path == "" || len(schema) == 0 {
		return true
	}
	name, rest, _ := strings.Cut(path, ".")
	properties, _ := schema["properties"].(map[string]any)
	if _, open := schema["additionalProperties"].(map[string]any); open {
		return true
	}
	member, ok := properties[strings.TrimSuffix(name, "[]")].(map[string]any)
	return ok && hasField(member, rest)
}

// TestListsHaveSlimFields wants a short list for everything that lists objects.
func TestListsHaveSlimFields(t *testing.T) {
	t.Parallel()
	cat := builtin(t)
	without := map[string]bool{"gitea_repository_list_topics": true,
		"gitea_user_get_heatmap": true} // words and pairs of numbers
	for i := range cat.Operations {
		o := &cat.Operations[i]
		lists := o.Paging != "" || strings.HasPrefix(string(o.Output), `{"type":["array"`)
		if lists && o.ReadOnly && len(o.Slim) == 0 &&
			!strings.Contains(string(o.Output), `"items":{"type":"string"}`) && !without[o.Name] {
			t.Errorf("%s has no slim fields", o.Name)
		}
	}
}
