package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"aegis/spec"
)

// Markdown renders the tool reference, grouped by domain.
func Markdown(cat *spec.Catalog) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Tools\n\nGenerated from spec/ by `go generate ./...`; do not edit.\n\n")
	fmt.Fprintf(&b, "%d tools, version %s, made from %s. Risk classes, presets and filters are explained in\n"+
		"[toolsets.md](toolsets.md), arguments in [arguments.md](arguments.md).\n\n", len(cat.Operations), cat.Version, cat.Source)
	b.WriteString("Every reading tool also takes `fields` (the paths of the result's data to keep) and `cursor`\n" +
		"(to continue a truncated result).\n")
	for _, domain := range spec.Domains() {
		var ops []*spec.Operation
		for i := range cat.Operations {
			if cat.Operations[i].Domain == domain {
				ops = append(ops, &cat.Operations[i])
			}
		}
		fmt.Fprintf(&b, "\n## %s (%d)\n", domain, len(ops))
		for _, o := range ops {
			markdownTool(&b, cat, o)
		}
	}
	return b.Bytes()
}

func markdownTool(b *bytes.Buffer, cat *spec.Catalog, o *spec.Operation) {
	fmt.Fprintf(b, "\n### %s\n\n%s. %s\n\n", o.Name, o.Title, cell(o.Description))
	fmt.Fprintf(b, "`%s %s` (%s), risk %s", o.Method, o.Path, o.ID, o.Risk)
	if len(o.Scopes) != 0 {
		fmt.Fprintf(b, ", scopes `%s`", strings.Join(o.Scopes, "`, `"))
	}
	for _, f := range []struct {
		on   bool
		text string
	}{
		{o.ReadOnly, "read-only"}, {o.Destructive, "destructive"}, {o.Idempotent && !o.ReadOnly, "idempotent"},
		{o.OpenWorld, "open world"}, {o.CredentialIssuing, "hands out a credential"},
		{o.BasicAuthOnly, "never works with a token"}, {o.Deprecated, "deprecated"},
		{o.Paging == "page" || o.Paging == "per_page", "paged"},
	} {
		if f.on {
			fmt.Fprintf(b, ", %s", f.text)
		}
	}
	b.WriteString(".")
	if o.ReplacedBy != "" {
		fmt.Fprintf(b, " Use %s instead.", o.ReplacedBy)
	}
	b.WriteString("\n")
	if len(o.Params) != 0 {
		b.WriteString("\n| argument | type | in | |\n|---|---|---|---|\n")
	}
	for i := range o.Params {
		p := &o.Params[i]
		name := "`" + p.Name + "`"
		if p.Required {
			name += " *"
		}
		typ, text := summary(cat.Schema(p))
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, typ, p.In, text)
	}
	if len(o.Slim) != 0 {
		fmt.Fprintf(b, "\nSlim fields: `%s`\n", strings.Join(o.Slim, "`, `"))
	}
}

// summary tells a schema in a few words.
func summary(raw json.RawMessage) (typ, text string) {
	var s struct {
		Type        string          `json:"type"`
		Description string          `json:"description"`
		Format      string          `json:"format"`
		Enum        []string        `json:"enum"`
		Default     json.RawMessage `json:"default"`
		Items       *struct {
			Type string   `json:"type"`
			Enum []string `json:"enum"`
		} `json:"items"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return "any", ""
	}
	typ = orText(s.Type, "any")
	if s.Format != "" {
		typ = s.Format
	}
	if s.Items != nil {
		typ = "array of " + orText(s.Items.Type, "any")
		s.Enum = s.Items.Enum
	}
	text = cell(s.Description)
	if len(s.Enum) != 0 {
		text += " One of `" + strings.Join(s.Enum, "`, `") + "`."
	}
	if len(s.Default) != 0 {
		text += " Default `" + string(s.Default) + "`."
	}
	return typ, strings.TrimSpace(text)
}

// cell makes text safe inside a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(s)
}
