package build

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"strings"
	"text/template"

	"aegis/spec"
)

//go:embed tools.md.tmpl
var toolsTemplate string

// domain is a section of the tool reference.
type domain struct {
	Name  string
	Tools []*spec.Operation // sorted by name, as in the catalog
}

// Markdown renders the tool reference, grouped by domain. The error is one of the template.
func Markdown(cat *spec.Catalog) ([]byte, error) {
	t, err := template.New("tools.md").Funcs(template.FuncMap{
		"cell": cell, "output": outputForm,
		"code":    func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" },
		"summary": func(p spec.Param) row { return summary(&p, cat.Schema(&p)) },
	}).Parse(toolsTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"Catalog": cat, "Domains": byDomain(cat)})
	return b.Bytes(), err
}

// byDomain groups the operations.
func byDomain(cat *spec.Catalog) []domain {
	var list []domain
	for _, name := range spec.Domains() {
		d := domain{Name: name}
		for i := range cat.Operations {
			if o := &cat.Operations[i]; o.Domain == name {
				d.Tools = append(d.Tools, o)
			}
		}
		list = append(list, d)
	}
	return list
}

// outputForm tells the schema of a result in a few words; "" without one.
func outputForm(raw json.RawMessage) string {
	var s struct {
		Ref   string            `json:"$ref"`
		Type  json.RawMessage   `json:"type"`
		Items json.RawMessage   `json:"items"`
		AnyOf []json.RawMessage `json:"anyOf"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	switch {
	case s.Ref != "":
		return s.Ref
	case len(s.AnyOf) == 2 && string(s.AnyOf[1]) == `{"type":"null"}`:
		return outputForm(s.AnyOf[0]) + " or null"
	case len(s.AnyOf) == 2:
		return outputForm(s.AnyOf[0]) + ", or " + outputForm(s.AnyOf[1])
	case len(s.Items) != 0:
		return "list of " + outputForm(s.Items)
	case len(s.Type) == 0:
		return "any"
	}
	if name := strings.Trim(string(s.Type), `"`); !strings.HasPrefix(name, "[") {
		return name
	}
	return "object" // or null: almost any object can be, so that is not worth the words
}

// row is an argument in the table of its tool.
type row struct{ Type, In, Text string }

// summary tells the schema of an argument in a few words.
func summary(p *spec.Param, raw json.RawMessage) row {
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
		return row{Type: "any", In: p.In}
	}
	out := row{Type: cmp.Or(s.Format, s.Type, "any"), In: p.In, Text: cell(s.Description)}
	if s.Items != nil {
		out.Type = "array of " + cmp.Or(s.Items.Type, "any")
		s.Enum = s.Items.Enum
	}
	if len(s.Enum) != 0 {
		out.Text += " One of `" + strings.Join(s.Enum, "`, `") + "`."
	}
	if len(s.Default) != 0 {
		out.Text += " Default `" + string(s.Default) + "`."
	}
	out.Text = strings.TrimSpace(out.Text)
	return out
}

// cell makes text safe inside a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(s)
}
