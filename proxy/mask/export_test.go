package mask

import (
	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/mask/match"
)

// What black-box tests may see of the inside.

type RuleSpec struct {
	Name, About, Must, Guard   string
	Patterns, Keywords, Values []string
	Tail                       int
	Own                        bool
}

func RuleSpecs() []RuleSpec {
	var all []RuleSpec
	for _, s := range match.Rules() {
		r := RuleSpec{Name: s.Name, About: s.About, Must: s.Must, Guard: s.Guard, Patterns: s.Patterns, Tail: s.Tail}
		if r.Own = forms[s.Name] != nil; !r.Own {
			r.Keywords, r.Values = written(s.Keywords), s.Values
		}
		all = append(all, r)
	}
	return all
}

// Longest returns the length of the longest match of the sequences of pattern
// at the beginning of b, -1 without one.
func Longest(pattern, b string) (int, error) {
	seqs, err := compileSeqs(pattern)
	if err != nil {
		return 0, err
	}
	best := -1
	for i := range seqs {
		q := &seqs[i]
		pos := 0
		if q.lead == 1 {
			pos = run([]byte(b), q.elems[0].cls, q.elems[0].max)
		}
		if start, end, _, ok := q.match(&text{b: []byte(b)}, pos); ok && start == 0 && end > best {
			best = end
		}
	}
	return best, nil
}

var (
	Luhn     = luhn
	ISO7064  = iso7064
	CRC32    = githubCRC
	Entropy  = entropy
	Unescape = func(raw string) string { return string(appendDecoded(nil, []byte(raw))) }
)

// Default is the configuration of an empty file.
func Default() config.Masking { return config.Masking{Mode: "mask", Input: "off", Builtin: true} }

// RuleErrors returns the rule errors that err joins.
func RuleErrors(err error) []*RuleError {
	if e, ok := err.(*RuleError); ok {
		return []*RuleError{e}
	}
	var all []*RuleError
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range j.Unwrap() {
			all = append(all, RuleErrors(e)...)
		}
	}
	return all
}

// SubmittedSecrets returns the values of a call that are secrets by their name, of any length.
func SubmittedSecrets(c *proxy.Call) []string {
	long, short := submitted(c)
	return append(long, short...)
}

// Rules returns the names of the active rules in their order, the exact layer
// first.
func (e *Engine) Rules() []string {
	names := []string{ExactRule}
	for i := range e.rules {
		if e.rules[i].prio >= 0 {
			names = append(names, e.rules[i].name)
		}
	}
	return names
}
