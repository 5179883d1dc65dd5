package mask

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"aegis/config"
	"aegis/proxy/mask/match"
)

// shapeEntropy is the least entropy of the random part of a shape: fillers
// like xxxx or 0000 have less, and no random text of these lengths has.
const shapeEntropy = 2.5

// builtins compiles the built-in rules that cfg leaves on, behind the marker
// of encoded content and the search for base64, which are always on.
func (e *Engine) builtins(cfg config.Masking) error {
	e.rules = append(e.rules, rule{prio: -1, matcher: marker{}}, rule{name: peekName, prio: -1, matcher: peek{}})
	table := match.Rules()
	names := make([]string, len(table))
	for i, s := range table {
		names[i] = s.Name
	}
	for i, n := range cfg.DisableRules {
		if slices.Contains(names, n) {
			continue
		}
		do := "see the table in docs/masking.md"
		// A name that is misspelled would leave the rule on without a word.
		if near := config.Nearest(n, names); near != "" {
			do += "; did you mean " + near + "?"
		}
		return &RuleError{
			Key: fmt.Sprintf("masking.disable_rules[%d]", i), What: "no built-in rule has this name", Do: do,
		}
	}
	// Compiling takes milliseconds; rules that can do nothing are left out.
	if !cfg.Builtin || e.mode == [purposes]action{} {
		return nil
	}
	for _, s := range table {
		if slices.Contains(cfg.DisableRules, s.Name) {
			continue
		}
		r, err := builtin(&s)
		if err != nil {
			return fmt.Errorf("built-in rule %s: %w", s.Name, err)
		}
		// Built-in rules have no action of their own.
		r.action = e.mode
		e.rules = append(e.rules, r)
	}
	return nil
}

// builtin compiles a rule of the table.
func builtin(s *match.Rule) (r rule, err error) {
	r = rule{name: s.Name, must: s.Must, with: []byte("[MASKED:" + s.Name + "]")}
	r.withJSON = r.with
	a := assignment{keywords: written(s.Keywords), tail: s.Tail}
	if a.values, err = compileSeqs(s.Values...); err != nil {
		return r, err
	}
	for i := range a.values { // they begin at a place that is known
		a.values[i].lead = 0
	}
	switch form := forms[s.Name]; {
	case form != nil:
		r.matcher, r.prio = form(a), prioContext
		if _, ok := r.matcher.(*generic); ok {
			r.prio = prioGeneric
		}
	case len(s.Keywords) > 0:
		a.ok = func(v []byte, _ bool) bool { return entropy(v) >= shapeEntropy }
		r.matcher, r.prio = &a, prioContext
	case len(s.Patterns) > 0:
		k := &token{}
		k.seqs, err = compileSeqs(s.Patterns...)
		r.matcher, r.prio, r.entropy = k, prioToken, shapeEntropy
	default: // it would match nothing and look as if it did
		err = errors.New("it has no shape")
	}
	return r, err
}

// written returns each keyword with its blanks as they may be written: as
// nothing, an underscore or a hyphen.
func written(words []string) []string {
	var all []string
	for _, w := range words {
		if !strings.Contains(w, " ") {
			all = append(all, w)
			continue
		}
		for _, sep := range []string{"", "_", "-"} {
			all = append(all, strings.ReplaceAll(w, " ", sep))
		}
	}
	return all
}

// forms make the matchers of the rules that need code, by name, from what the
// table has of them.
var forms = map[string]func(assignment) matcher{
	"private-key":  func(assignment) matcher { return keyBlock{} },
	"putty-key":    func(assignment) matcher { return puttyKey{} },
	"url-password": func(assignment) matcher { return address{} },
	"authorization-header": func(a assignment) matcher {
		a.words = []string{"bearer", "basic", "token", "apikey", "digest", "negotiate"}
		a.ok = func(v []byte, _ bool) bool { return credential(v) || userPass(v) }
		return &a
	},
	"bearer-token": func(a assignment) matcher {
		a.bare = a.keywords
		a.ok = func(v []byte, _ bool) bool { return credential(v) }
		return &a
	},
	"docker-auth": func(a assignment) matcher {
		a.ok = func(v []byte, quoted bool) bool { return quoted && userPass(v) }
		a.quotedName = true
		return &a
	},
	"netrc-password": func(a assignment) matcher {
		a.bare = a.keywords
		return &netrcLine{a}
	},
	"gitea-token": func(a assignment) matcher {
		a.words = []string{"token", "bearer", "basic", "is", "was"}
		// "gitea" and a blank before a commit is ordinary prose; "the token 0123…" is not.
		a.bare = []string{"token"}
		a.ok = func(v []byte, _ bool) bool { return isForgeToken(v) }
		return &a
	},
	"generic-assignment": func(a assignment) matcher { return &generic{a} },
}

// credential reports whether v may be what a header carries: something random of
// some length, or a token of Gitea's.
func credential(v []byte) bool {
	return len(v) >= 16 && looksRandom(v, true) || isForgeToken(v)
}
