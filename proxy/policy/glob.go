package policy

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"aegis/config"
)

// glob is a compiled pattern. It runs in time linear in the text, whatever the
// pattern.
type glob struct {
	text string
	rule string // its place in the configuration: "repos.deny[0]"
	re   *regexp.Regexp
	fold bool // the letters' case does not count
	// Most patterns are a name, or a beginning and one wild card. These are
	// compared without the expression: start is what comes before the wild card.
	simple bool
	start  string
	rest   string // "", "*" or "**"
}

// newGlob compiles a pattern: * matches any characters but a slash, ** for any characters,
// ? for one that is no slash, and **/ also for nothing. RE2 underneath, since patterns come
// from people who do not expect a pattern to be slow: no backtracking whatever is written.
func newGlob(text string, fold bool) (glob, error) {
	if text == "" || len(text) > maxGlob {
		return glob{}, fmt.Errorf("a pattern must have 1 to %d bytes", maxGlob)
	}
	var b strings.Builder
	b.WriteString(`(?s`)
	if fold {
		b.WriteString(`i`)
	}
	b.WriteString(`)\A`)
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		// So that **/x also means x at the top, as in .gitignore and CODEOWNERS.
		case strings.HasPrefix(rest, "**/") && (i == 0 || text[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			i += 2
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			i++
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			i++
		default:
			n := strings.IndexAny(rest, "*?")
			if n < 0 {
				n = len(rest)
			}
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			i += n
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return glob{}, fmt.Errorf("the pattern cannot be used: %w", err)
	}
	g := glob{text: text, re: re, fold: fold, start: strings.TrimRight(text, "*")}
	g.rest = text[len(g.start):]
	g.simple = len(g.rest) <= 2 && !strings.ContainsAny(g.start, "*?") && ascii(g.start)
	return g, nil
}

// ascii reports whether a text is ASCII: then letters of either case have the
// same length.
func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// maxGlob bounds a pattern, in bytes.
const maxGlob = 300

// match reports whether the whole text fits. It is asked for each row of a list, where an
// expression costs many times what comparing two texts does.
func (g *glob) match(text string) bool {
	// Folding can change the length of what is no ASCII, and then bytes cannot be
	// compared by place.
	if !g.simple || g.fold && !ascii(text) {
		return g.re.MatchString(text)
	}
	if len(text) < len(g.start) {
		return false
	}
	start, rest := text[:len(g.start)], text[len(g.start):]
	switch {
	case g.fold && !strings.EqualFold(start, g.start), !g.fold && start != g.start:
		return false
	case g.rest == "":
		return rest == ""
	case g.rest == "*":
		return !strings.Contains(rest, "/")
	}
	return true
}

// globs is a list of patterns.
type globs []glob

// newGlobs compiles the list of a configuration key. The error names the key and
// place.
func newGlobs(key string, patterns []string, fold bool) (out globs, err error) {
	for i, p := range patterns {
		rule := fmt.Sprintf("%s[%d]", key, i)
		g, err := newGlob(p, fold)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rule, err)
		}
		g.rule = rule
		out = append(out, g)
	}
	return out, nil
}

// match returns the rule that text matches, such as "repos.deny[1]"; "" for none.
func (l globs) match(text string) string {
	for i := range l {
		if l[i].match(text) {
			return l[i].rule
		}
	}
	return ""
}

// patterns are the lists of one key of the configuration: what is open, and what is
// closed nevertheless.
type patterns struct {
	key         string // "repos", "branches" or "paths"
	allow, deny globs
}

// newPatterns compiles the lists of a key. What is closed is closed in every case, as on
// some file systems Main is main; fold says whether what is open is too. Folding can only
// close more, so it is safe for deny whatever the server's file system does.
func newPatterns(key string, cfg config.Patterns, fold bool) (r patterns, err error) {
	r.key = key
	if r.allow, err = newGlobs(key+".allow", cfg.Allow, fold); err != nil {
		return r, err
	}
	r.deny, err = newGlobs(key+".deny", cfg.Deny, true)
	return r, err
}

func (r *patterns) any() bool { return len(r.allow)+len(r.deny) > 0 }

// name returns a list that is set, for refusals that concern both.
func (r *patterns) name() string {
	if len(r.allow) > 0 {
		return r.key + ".allow"
	}
	return r.key + ".deny"
}

// closes returns the rule that closes a text, "" when it is open. An empty allow opens all,
// a list opens what it names and nothing else; deny wins over both.
func (r *patterns) closes(text string) string {
	if rule := r.deny.match(text); rule != "" {
		return rule
	}
	if len(r.allow) > 0 && r.allow.match(text) == "" {
		return r.key + ".allow"
	}
	return ""
}
