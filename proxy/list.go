package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ListEntry is a tool in tools/list. What equals the protocol's default or says nothing for
// this tool is left out: some clients put the whole entry before the model.
type ListEntry struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  Annotations     `json:"annotations"`
}

// Annotations are the hints of MCP about what a tool does. They are always explicit where a
// client may decide by them: a destructiveHint that is left out counts as true. The two of
// them that are pointers mean something for writing tools only.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   bool   `json:"openWorldHint"`
}

// Entry returns the tool as tools/list shows it, without the schema of its result. Clients
// of protocols before 2025-06-18 know no title but that among the annotations.
func (t *Tool) Entry(titled bool) ListEntry {
	e := ListEntry{
		Name: t.Name, Description: t.Description, InputSchema: t.InputSchema,
		Annotations: Annotations{ReadOnly: t.ReadOnly, OpenWorld: t.OpenWorld},
	}
	if titled {
		e.Title = t.Title
	} else {
		e.Annotations.Title = t.Title
	}
	if !t.ReadOnly {
		e.Annotations.Destructive, e.Annotations.Idempotent = &t.Destructive, &t.Idempotent
	}
	if len(t.ListSchema) > 0 {
		e.InputSchema = t.ListSchema
	}
	return e
}

// Encode is json.Marshal that leaves <, > and & as they are: no browser reads what it
// writes, and each escape would cost a model several tokens.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
