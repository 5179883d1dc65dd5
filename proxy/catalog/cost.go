package catalog

import (
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"aegis/config"
	"aegis/proxy"
)

// Cost is what a tool list costs a client. A list is part of every conversation of a
// client, so operators choose tools by it.
type Cost struct {
	// Tools is the number of tools in the list, Bytes the size of their entries
	// as JSON, Tokens an estimate for current models; see [EstimateTokens].
	Tools, Bytes, Tokens int
}

func (c *Cost) add(o Cost) {
	c.Tools += o.Tools
	c.Bytes += o.Bytes
	c.Tokens += o.Tokens
}

// Costs are the costs of a list by domain and in all.
type Costs struct {
	Domains map[string]Cost
	Total   Cost
}

// Cost returns the cost of what [Selection.Tools] lists.
func (sel *Selection) Cost() Costs {
	out := Costs{Domains: map[string]Cost{}}
	for _, t := range sel.Tools() {
		entry, _ := proxy.Encode(t.Entry(true)) // fails for schemas that are no JSON only, which Load refuses
		c := Cost{Tools: 1, Bytes: len(entry), Tokens: EstimateTokens(entry)}
		d := out.Domains[t.Domain]
		d.add(c)
		out.Domains[t.Domain] = d
		out.Total.add(c)
	}
	return out
}

// InMode returns the same selection as tools.mode would list it: "full" or "search". The
// command line shows both beside each other.
func (sel *Selection) InMode(mode string) *Selection {
	out := *sel
	out.mode = mode
	out.sudo = sync.OnceValue(out.sudoTools)
	return &out
}

// PresetCost is what the list of one preset costs in full mode, the raw tool
// included.
type PresetCost struct {
	Name string
	Cost
}

// PresetCosts returns the cost of every preset, sorted by name.
func (s *Set) PresetCosts() []PresetCost {
	var out []PresetCost
	for _, name := range slices.Sorted(maps.Keys(presets())) {
		sel, _ := s.Select(config.Tools{Toolsets: []string{name}, Raw: true}) // a preset has no problems
		out = append(out, PresetCost{name, sel.Cost().Total})
	}
	return out
}

// EstimateTokens estimates the tokens of JSON with English text in the encodings of current
// models (o200k_base is the yardstick; the error on tool lists is 3 per cent at most).
// Words cost one token each and one more for every eight letters beyond the first twelve,
// numbers one per three digits, runs of punctuation one per three characters, other scripts
// one per rune. A tokenizer of a provider's would be exact, but for one model, and needs a
// table of megabytes.
func EstimateTokens(text []byte) int {
	tokens := 0
	for i := 0; i < len(text); {
		start, class := i, classOf(text[i])
		for i++; i < len(text) && classOf(text[i]) == class; i++ {
		}
		n := i - start
		switch class {
		case letter:
			tokens++
			// Fitted to the tool lists of this catalog; the error is held by a test.
			if n > 12 {
				tokens += (n - 5) / 8
			}
		case digit:
			tokens += (n + 2) / 3
		case mark:
			tokens += (n + 2) / 3
		case other:
			tokens += utf8.RuneCount(text[start:i])
		}
	}
	return tokens
}

// The classes of bytes that EstimateTokens distinguishes. A space or an
// underscore belongs to the word after it and costs nothing.
const (
	space = iota
	letter
	digit
	mark
	other
)

// classOf returns the class of a byte. All bytes of a rune beyond ASCII are other.
func classOf(c byte) int {
	switch {
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return letter
	case c >= '0' && c <= '9':
		return digit
	case c == ' ' || c == '\n' || c == '\t' || c == '_':
		return space
	case c < utf8.RuneSelf:
		return mark
	}
	return other
}
