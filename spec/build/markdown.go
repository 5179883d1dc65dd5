package build

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"aegis/spec"
)

// Markdown renders the tool reference, grouped by domain. It writes to a buffer without a
// template: text/template keeps every method of the program alive in the binary, see
// docs/adr/0001-dependencies.md.
func Markdown(cat *spec.Catalog) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Tools\n\nGenerated from spec/ by `go generate ./...`; do not edit.\n\n")
	fmt.Fprintf(&b, "%d tools, version %s, made from %s. "+
		"Risk classes (R0 to R4), presets and filters are explained in\n[toolsets.md](toolsets.md), "+
		"arguments in [arguments.md](arguments.md), results in [results.md](results.md).\n\n",
		len(cat.Operations), cat.Version, cat.Source)
	b.WriteString("Arguments with * are required. " +
		"Reading tools also take `fields` (the paths of the data to keep), and those that return something take\n" +
		"`cursor` (to continue a truncated result). " +
		"*Slim* are the fields that `results.slim: true` keeps when a call names none;\n" +
		"a list without them comes whole. " +
		"*Output* is the form of `data`; `gitea_describe_tool` and `aegis tools --json` give whole schemas.\n\n")
	domains := byDomain(cat)
	b.WriteString("| domain | tools |\n|---|---|\n")
	for _, domain := range spec.Domains() {
		heading := fmt.Sprintf("%s-%d", domain, len(domains[domain]))
		fmt.Fprintf(&b, "| [%s](#%s) | %d |\n", domain, heading, len(domains[domain]))
	}
	for _, domain := range spec.Domains() {
		fmt.Fprintf(&b, "\n## %s (%d)\n\n| tool | what it does | risk |\n|---|---|---|\n", domain, len(domains[domain]))
		for _, o := range domains[domain] {
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", o.Name, o.Name, cell(o.Title), o.Risk)
		}
		for _, o := range domains[domain] {
			markdownTool(&b, cat, o)
		}
	}
	return b.Bytes()
}

// byDomain groups the operations; they stay sorted by name.
func byDomain(cat *spec.Catalog) map[string][]*spec.Operation {
	out := map[string][]*spec.Operation{}
	for i := range cat.Operations {
		o := &cat.Operations[i]
		out[o.Domain] = append(out[o.Domain], o)
	}
	return out
}

// markdownTool writes the section of one tool. Its heading is the bare name, so that
// links to it stay good.
func markdownTool(b *bytes.Buffer, cat *spec.Catalog, o *spec.Operation) {
	fmt.Fprintf(b, "\n### %s\n\n**%s.** %s\n\n", o.Name, cell(o.Title), cell(o.Description))
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
	var result output
	if len(o.Output) != 0 && json.Unmarshal(o.Output, &result) == nil {
		fmt.Fprintf(b, "\nOutput: %s.", outputForm(&result))
		if len(o.Slim) != 0 {
			fmt.Fprintf(b, " Slim: `%s`.", strings.Join(o.Slim, "`, `"))
		}
		b.WriteString("\n")
	}
	if len(o.Example) != 0 {
		fmt.Fprintf(b, "\nExample: `%s`\n", o.Example)
	}
}

// outputForm describes the schema of a result in a few words.
func outputForm(s *output) string {
	switch {
	case s.Ref != "":
		return s.Ref
	case len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null":
		return outputForm(s.AnyOf[0]) + " or null"
	case len(s.AnyOf) == 2:
		return outputForm(s.AnyOf[0]) + ", or " + outputForm(s.AnyOf[1])
	case s.Items != nil:
		return "list of " + outputForm(s.Items)
	case s.Type == nil:
		return "any"
	}
	switch types := s.Type.(type) {
	case string:
		return types
	case []any:
		if types[0] == "string" {
			return "string, or object of bytes that are no text"
		}
	}
	return "object" // or null, as nearly all of them can be
}

// summary describes a schema in a few words. Bounds are left out: the table is for people who
// choose a tool, and the error of a call names the bound that it breaks.
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
	typ = cmp.Or(s.Format, s.Type, "any")
	if s.Items != nil {
		typ = "array of " + cmp.Or(s.Items.Type, "any")
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
