package mask

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"aegis/config"
	"aegis/proxy/mask/match"
)

// custom is a rule of the configuration: a regular expression that runs on
// each decoded string that contains one of its literals.
type custom struct {
	re *regexp.Regexp
	// group is the group whose span is replaced, 0 for the whole match.
	group int
	// keywords are in lower case; one of them must be in the match or near it.
	keywords []string
	// literals announce the rule; one of them is in every match. Without
	// any, the rule is tried on every string.
	literals []string
	// limit is the length of the longest match in bytes, 0 when unbounded.
	limit int
	// anchored says that the expression has ^, $ or the like, which only the
	// whole string can answer.
	anchored bool
}

// Bounds of custom rules.
const (
	// near is how far before the match a keyword may be, in bytes.
	near = 64
	// reach bounds the matches of expressions without a longest match.
	reach = 4 << 10
	// mostRegexp bounds the instructions of a compiled expression.
	mostRegexp = 20000
)

// customRules compiles the configuration's rules. All errors are reported.
func customRules(cfg config.Masking, mode [purposes]action) ([]rule, error) {
	var rules []rule
	var errs []error
	names := map[string]bool{}
	for i, c := range cfg.Rules {
		key := fmt.Sprintf("masking.rules[%d]", i)
		r, bad := customRule(c, mode)
		for _, b := range bad {
			b.Key = key + "." + b.Key
			errs = append(errs, b)
		}
		if names[c.Name] || isBuiltin(c.Name) || c.Name == ExactRule {
			errs = append(errs, &RuleError{
				Key: key + ".name", What: "another rule has this name",
				Do: "choose one that no rule has, built-in rules included",
			})
		}
		names[c.Name] = true
		rules = append(rules, r)
	}
	return rules, errors.Join(errs...)
}

// isBuiltin looks at the whole table, rules that are switched off too: hits are
// counted by name, and a name must mean the same in every deployment.
func isBuiltin(name string) bool {
	return slices.ContainsFunc(match.Rules(), func(r match.Rule) bool { return r.Name == name })
}

// customRule compiles one rule and returns all that is wrong with it; the keys are
// relative to the rule. A rule without an action of its own follows masking.mode,
// and none acts on arguments while masking.input is off.
func customRule(c config.MaskRule, mode [purposes]action) (rule, []*RuleError) {
	r := rule{name: c.Name, prio: prioCustom, entropy: c.Entropy, with: []byte("[MASKED:" + c.Name + "]")}
	var bad []*RuleError
	fail := func(key, what, do string) { bad = append(bad, wrong(key, what, do)) }
	if !validName(c.Name) {
		fail("name", "not a rule name", "use 1 to 64 characters of a-z 0-9 - _")
	}
	explicit, ok := actions[c.Action]
	if c.Action != "" && (!ok || explicit == actOff) {
		fail("action", "unknown action", "use mask, block or report, or leave it out to follow masking.mode")
	}
	for p := range purposes {
		r.action[p] = mode[p]
		// Masking of arguments is switched on as a whole: a rule alone must not begin to change what
		// people write.
		if c.Action != "" && (purpose(p) == forResults || mode[p] != actOff) {
			r.action[p] = explicit
		}
	}
	if c.Replacement != nil {
		if explicit == actBlock || explicit == actReport {
			fail("replacement", "a rule with action "+c.Action+" replaces nothing",
				"remove the replacement, or use action mask")
		} else if c.Action == "" && (mode[forResults] == actBlock || mode[forResults] == actReport) {
			fail("replacement", "under this masking.mode the rule replaces nothing",
				"remove the replacement, or give the rule action mask")
		}
		r.with = []byte(*c.Replacement)
	}
	// The last is true for NaN alone, which YAML can spell.
	if c.Entropy < 0 || c.Entropy > 8 || c.Entropy != c.Entropy {
		fail("entropy", "out of range", "use 0 to 8 bits per character")
	}
	if c.Validator != "" {
		if r.check = validators[c.Validator]; r.check == nil {
			fail("validator", "unknown validator", "use luhn, iso7064 or crc32")
		}
	}
	r.allow, r.withJSON = set(c.Allow...), jsonText(r.with)
	m, err := newCustom(c)
	if err != nil {
		bad = append(bad, err)
		m = &custom{}
	}
	r.custom, r.matcher = m, m
	return r, bad
}

func wrong(key, what, do string) *RuleError { return &RuleError{Key: key, What: what, Do: do} }

// validName bounds what ends up in marks, counters and records.
func validName(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// jsonText returns b as it must be written inside a JSON string.
func jsonText(b []byte) []byte {
	j, err := json.Marshal(string(b))
	if err != nil {
		return nil // a string always marshals
	}
	return j[1 : len(j)-1]
}

// newCustom refuses expressions that would be slow or would replace nothing. RE2
// needs no other check: its time is linear whatever the expression.
func newCustom(c config.MaskRule) (*custom, *RuleError) {
	if c.Regex == nil || c.Regex.Regexp == nil {
		return nil, wrong("regex", "missing", "give an RE2 expression")
	}
	m := &custom{re: c.Regex.Regexp}
	parsed, err := syntax.Parse(m.re.String(), syntax.Perl)
	if err != nil {
		return nil, wrong("regex", "does not parse", "give an RE2 expression")
	}
	parsed = parsed.Simplify()
	// A bound on the memory of one search, which grows with the program's length.
	if prog, err := syntax.Compile(parsed); err != nil || len(prog.Inst) > mostRegexp {
		return nil, wrong("regex", "too large", "split it into several rules")
	}
	least, most := lengths(parsed)
	if least == 0 {
		return nil, wrong("regex", "matches the empty string", "make at least one character mandatory")
	}
	m.limit, m.anchored = most, anchoredText(parsed)
	if m.re.NumSubexp() >= 1 {
		m.group = 1
	}
	var plain []string
	for _, k := range c.Keywords {
		if strings.TrimSpace(k) == "" {
			return nil, wrong("keywords", "an empty keyword is near everything", "remove it")
		}
		m.keywords = append(m.keywords, strings.ToLower(k))
		plain = append(plain, plainLiteral(strings.ToLower(k)))
	}
	// Each match has one of them near it, so they announce the rule as well, and better, as they
	// were chosen to be distinctive.
	if m.literals = required(parsed); len(plain) > 0 && !slices.Contains(plain, "") {
		m.literals = plain
	}
	return m, nil
}

// lengths returns the least and the largest length of a match in bytes; 0 as
// the largest means unbounded.
func lengths(re *syntax.Regexp) (least, most int) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			least += len(string(r))
		}
		return least, least + 2*len(re.Rune) // case folding may change the length
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, 4
	case syntax.OpCapture:
		return lengths(re.Sub[0])
	case syntax.OpQuest:
		_, most = lengths(re.Sub[0])
		return 0, most
	case syntax.OpStar:
		return 0, 0
	case syntax.OpPlus:
		least, _ = lengths(re.Sub[0])
		return least, 0
	case syntax.OpConcat, syntax.OpAlternate:
		return lengthsOf(re.Sub, re.Op == syntax.OpConcat)
	}
	return 0, 1 // empty-width
}

// lengthsOf is lengths for parts that follow one another, or are alternatives.
func lengthsOf(subs []*syntax.Regexp, all bool) (least, most int) {
	open := false
	for i, s := range subs {
		l, m := lengths(s)
		switch {
		case all:
			least, most = least+l, most+m
		case i == 0:
			least, most = l, m
		default:
			least, most = min(least, l), max(most, m)
		}
		// One part without a bound makes the whole unbounded.
		open = open || m == 0
	}
	if open {
		most = 0
	}
	return least, most
}

// required returns literals one of which is in every match, nil when none is
// known. They are in lower case.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		l := strings.ToLower(string(re.Rune))
		if re.Flags&syntax.FoldCase != 0 {
			// The Kelvin sign and the long s fold to these letters.
			l = strings.NewReplacer("k", "\n", "s", "\n").Replace(l)
		}
		if l = plainLiteral(l); l != "" {
			return []string{l}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, s := range re.Sub {
			l := required(s) // few are better than many, long ones better than short ones
			if l != nil && (best == nil || len(l) < len(best) || len(l) == len(best) && len(l[0]) > len(best[0])) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, s := range re.Sub {
			l := required(s)
			// Each literal makes candidates in the filter.
			if l == nil || len(all)+len(l) > 64 {
				return nil
			}
			all = append(all, l...)
		}
		return all
	}
	return nil
}

// plainLiteral returns the longest part of s that is ASCII letters, digits
// and the marks that JSON never escapes, "" when it has less than four bytes.
func plainLiteral(s string) string {
	best := longestRun(s, func(c byte) bool { return isLiteral[c] })
	if len(best) < 4 {
		return ""
	}
	return best
}

// isLiteral has no quote, backslash, < > & or control character: JSON may escape
// those, and the filter compares raw bytes.
var isLiteral = newClass("0-9A-Za-z_.:= -")
