package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

//go:embed head.md
var head string

// markdown returns the reference of all keys. It has a table to search in and a section
// to read for each key, since people come with a name or with a question.
func (e entry) markdown() []byte {
	var b bytes.Buffer
	b.WriteString(head)
	b.WriteString("\n## All keys\n\n| key | kind | default |\n|---|---|---|\n")
	e.rows(&b)
	b.WriteString("\n## Top level\n")
	for _, c := range e.below {
		// Single keys of the top come first, under a heading of their own: among the
		// sections they would be lost.
		if len(c.below) == 0 {
			c.describe(&b)
		}
	}
	for _, c := range e.below {
		if len(c.below) > 0 {
			b.WriteString("\n## " + c.key + "\n\n" + code(c.doc, c.key) + "\n")
			c.describeBelow(&b)
		}
	}
	return b.Bytes()
}

// repeats reports whether e is a section of a team that has the keys of the section of
// the same name at the top. They would be half of the page, twice.
func (e entry) repeats() bool {
	rest, ok := strings.CutPrefix(e.path, "teams.*.")
	return ok && e.kind == kindSection && slices.Contains([]string{"tools", "results", "masking", "policy"}, rest)
}

func (e entry) rows(b *bytes.Buffer) {
	if e.repeats() {
		return
	}
	for _, c := range e.below {
		if c.kind != kindSection {
			fmt.Fprintf(b, "| [`%s`](#%s) | %s | %s |\n", c.path, c.anchor(), c.kind, c.defaultCell())
		}
		c.rows(b)
	}
}

func (e entry) describeBelow(b *bytes.Buffer) {
	for _, c := range e.below {
		c.describe(b)
		if c.repeats() {
			b.WriteString("\nIt has the keys of [`" + c.key + "`](#" + c.key + ").\n")
			continue
		}
		c.describeBelow(b)
	}
}

// describe writes one key: heading, facts, meaning. The facts are set apart in italics:
// they are what people look for most often.
func (e entry) describe(b *bytes.Buffer) {
	b.WriteString("\n### `" + e.path + "`\n\n")
	facts := []string{string(e.kind)}
	if enum := e.tag.Get("enum"); enum != "" {
		facts = append(facts, "one of `"+strings.Join(strings.Fields(enum), "` `")+"`")
	}
	if span := e.tag.Get("range"); span != "" {
		facts = append(facts, "`"+strings.Replace(span, " ", "` to `", 1)+"`")
	}
	d := e.defaultCell()
	if d != required {
		d = "default " + d
	}
	facts = append(facts, d)
	b.WriteString("*" + strings.Join(facts, ", ") + "*\n\n" + code(e.prose(), e.key) + "\n")
	if ex := e.tag.Get("example"); ex != "" {
		value := inline(ex, e.kind)
		if e.kind == kindTexts || e.kind == kindSecrets || e.kind == kindNetworks {
			value = "[" + inline(ex, kindText) + "]"
		}
		b.WriteString("\nFor example `" + e.key + ": " + value + "`.\n")
	}
}

// prose is the doc comment without the sentences that only repeat the facts. Range and
// default stand above the text already, from the tags, where they cannot be wrong.
func (e entry) prose() string {
	doc := strings.TrimSuffix(e.doc, " Required.")
	if e.fallback == nil {
		return doc
	}
	d := e.fallback.Value + "."
	if span := e.tag.Get("range"); span != "" {
		span = " " + strings.Replace(span, " ", " to ", 1)
		return strings.TrimSuffix(strings.Replace(doc, span+", default "+d, "", 1), span+".")
	}
	return strings.Replace(doc, " Default "+d, "", 1)
}

// inline returns an example as it is written in YAML. Unquoted, YAML reads * as an
// alias and { as a mapping. ${NAME} begins with $, and needs no quotes.
func inline(s string, k kind) string {
	if k == kindPattern || strings.ContainsAny(s, "*[{") && !strings.HasPrefix(s, "${") {
		return "'" + s + "'"
	}
	return s
}

// code sets the key that a sentence begins with in code style. The rest may hold
// placeholders such as <name>, which a renderer would take for HTML, and | ends a cell
// of a table.
func code(doc, key string) string {
	if rest, ok := strings.CutPrefix(doc, key+" "); ok {
		doc = "`" + key + "` " + rest
	}
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "|", "\\|").Replace(doc)
}

// anchor is the fragment that renderers give the key's heading. It is that of GitHub
// and Gitea: keys are in lower case already, and punctuation goes.
func (e entry) anchor() string {
	return strings.NewReplacer(".", "", "[", "", "]", "", "*", "").Replace(e.path)
}

const required = "required"

// An absent value is not an empty one: masking.rules[].replacement tells them apart.
func (e entry) defaultCell() string {
	switch n := e.fallback; {
	case e.tag.Get("required") != "":
		return required
	case n == nil:
		return "absent"
	case n.Kind == yaml.SequenceNode:
		return "`[" + strings.Join(texts(n), ", ") + "]`"
	case n.Kind == yaml.MappingNode:
		return "`{}`"
	case n.Value == "":
		return "empty"
	default:
		return "`" + n.Value + "`"
	}
}

// texts returns the items of a list of texts.
func texts(n *yaml.Node) (items []string) {
	_ = n.Decode(&items)
	return items
}
