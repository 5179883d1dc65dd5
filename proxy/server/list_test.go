package server_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// schemaOf resolves a JSON Schema, which checks it against the rules of draft
// 2020-12.
func schemaOf(t *testing.T, raw []byte) *jsonschema.Resolved {
	t.Helper()
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		t.Fatalf("%v in %.300s", err, raw)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatalf("%v in %.300s", err, raw)
	}
	return resolved
}

// TestListedSchemas reads the list of full mode as a client does and holds every
// schema of it against the draft and against the stricter subset that all
// providers take.
func TestListedSchemas(t *testing.T) {
	subset, err := os.ReadFile("../catalog/testdata/subset.json")
	if err != nil {
		t.Fatal(err)
	}
	meta := schemaOf(t, subset)
	session := newRig(t, "tools: {page_size: 100}").connect(aliceToken, "")
	seen := map[string]bool{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[tool.Name] {
			t.Errorf("%s is listed twice", tool.Name)
		}
		seen[tool.Name] = true
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		schemaOf(t, raw)
		var doc any
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		if err := meta.Validate(doc); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
	if len(seen) != 538 {
		t.Errorf("%d tools", len(seen))
	}
}

// TestAListReadOnceIsEnough works as clients do that never list again: what
// search finds can be described and called, by the tools listed at the start.
func TestAListReadOnceIsEnough(t *testing.T) {
	session := newRig(t, "tools: {mode: search, raw: false, toolsets: [issue]}").connect(aliceToken, "")
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	call := func(name string, args map[string]any) answer {
		t.Helper()
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		var a answer
		if err := json.Unmarshal([]byte(res.Content[0].(*sdk.TextContent).Text), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	var found struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(call("gitea_search_tools", map[string]any{"query": "search issues everywhere"}).Data, &found); err != nil || len(found.Tools) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	name := found.Tools[0].Name
	var described struct {
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if err := json.Unmarshal(call("gitea_describe_tool", map[string]any{"name": name}).Data, &described); err != nil {
		t.Fatal(err)
	}
	schemaOf(t, described.InputSchema)
	if name != "gitea_issue_search" {
		t.Errorf("found %s", name)
	}
	if a := call("gitea_call_tool", map[string]any{"name": name, "arguments": map[string]any{"limit": 1}}); a.Status != 200 || a.Request.Path != "/repos/issues/search" {
		t.Errorf("%+v", a)
	}
	if again, err := session.ListTools(t.Context(), nil); err != nil || len(again.Tools) != 3 {
		t.Errorf("the list has changed: %v, %v", again, err)
	}
}
