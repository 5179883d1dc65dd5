package mask

import (
	"fmt"
	"slices"
	"strings"

	"aegis/config"
)

// spec is a built-in rule as data. A rule goes by shape (patterns), by name
// and shape of the value (keywords and values), or by a matcher of its own.
type spec struct {
	name, about string
	// patterns are the shapes, in the subset of RE2 that compileSeqs takes.
	patterns []string
	// must is a literal that stands somewhere in the match.
	must string
	// bound are bytes besides those of words that must not be neighbours.
	bound string
	// weak lifts the demand for entropy of shapes.
	weak bool
	// keywords (lower case, without the separators that may stand in them)
	// and values make a rule that goes by name; up to tail more characters of
	// the name may follow the keyword.
	keywords []string
	values   []string
	tail     int
	// own makes a matcher that needs code.
	own func() (matcher, error)
	// guard says what else keeps the rule from false positives.
	guard string
}

// shapeEntropy is the least entropy of the random part of a shape: fillers
// like xxxx or 0000 have less, and no random text of these lengths has.
const shapeEntropy = 2.5

// builtinSpecs returns all built-in rules in the order of their documentation.
func builtinSpecs() []spec {
	return slices.Concat(forgeSpecs(), cloudSpecs(), modelSpecs(), packageSpecs(), messageSpecs(), serviceSpecs(), namedSpecs(), formSpecs())
}

func builtinNames() map[string]bool {
	names := map[string]bool{}
	for _, s := range builtinSpecs() {
		names[s.name] = true
	}
	return names
}

// builtins compiles the built-in rules that cfg leaves on, behind the marker
// of encoded content, which is always on.
func (e *Engine) builtins(cfg config.Masking) ([]rule, error) {
	e.rules = append(e.rules, rule{name: "", prio: -1, matcher: marker{}}, rule{name: peekName, prio: -1, matcher: peek{}})
	specs := builtinSpecs()
	off := map[string]bool{}
	for i, n := range cfg.DisableRules {
		if !slices.ContainsFunc(specs, func(s spec) bool { return s.name == n }) {
			names := make([]string, len(specs))
			for i, s := range specs {
				names[i] = s.name
			}
			do := "see the table in docs/masking.md"
			if near := config.Nearest(n, names); near != "" {
				do += "; did you mean " + near + "?"
			}
			return nil, &RuleError{Key: fmt.Sprintf("masking.disable_rules[%d]", i), What: "no built-in rule has this name", Do: do}
		}
		off[n] = true
	}
	active := cfg.Builtin && (e.mode[forResults] != actOff || e.mode[forInput] != actOff)
	for _, s := range specs {
		if !active || off[s.name] {
			continue
		}
		r, err := s.compile()
		if err != nil {
			return nil, fmt.Errorf("built-in rule %s: %w", s.name, err)
		}
		r.action = e.mode
		e.rules = append(e.rules, r)
	}
	return e.rules, nil
}

func (s *spec) compile() (rule, error) {
	r := rule{name: s.name, prio: prioToken, must: s.must, with: []byte("[MASKED:" + s.name + "]")}
	r.withJSON = r.with
	switch {
	case s.own != nil:
		m, err := s.own()
		if err != nil {
			return r, err
		}
		r.matcher = m
		r.prio = prioContext
		if _, ok := m.(*generic); ok {
			r.prio = prioGeneric
		}
	case len(s.keywords) > 0:
		a := &assignment{keywords: spellKeywords(s.keywords), tail: s.tail}
		var err error
		if a.values, err = compileValues(s.values...); err != nil {
			return r, err
		}
		a.ok = func(v []byte, _ bool) bool { return entropy(v) >= shapeEntropy }
		r.matcher, r.prio = a, prioContext
	default:
		k, err := newToken(s.patterns...)
		if err != nil {
			return r, err
		}
		if s.bound != "" {
			k.bound = newClass(s.bound)
		}
		if !s.weak {
			r.entropy = shapeEntropy
		}
		r.matcher = k
	}
	return r, nil
}

// spellKeywords returns each keyword with its blanks as they may be written:
// as nothing, an underscore or a hyphen.
func spellKeywords(words []string) []string {
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

// formSpecs are the rules that need code.
func formSpecs() []spec {
	return []spec{
		{name: "private-key", about: "PEM, OpenSSH and PGP private keys; the body is masked, the BEGIN and END lines stay",
			own:   func() (matcher, error) { return keyBlock{}, nil },
			guard: "the body must begin with 16 characters of base64; PUBLIC KEY and CERTIFICATE blocks do not match"},
		{name: "putty-key", about: "the private part of PuTTY key files",
			own: func() (matcher, error) { return puttyKey{}, nil }, guard: "lines of base64 must follow Private-Lines"},
		{name: "url-password", about: "the password of scheme://user:password@host, or a random name of 20 characters and more without one",
			own: func() (matcher, error) { return address{}, nil }, guard: "templates and the passwords of manuals (user:pass, user:user) are left alone"},
		{name: "authorization-header", about: "the credentials of an Authorization header, whatever the scheme",
			own: authorization, guard: "the value must look random, or be the base64 of a name and a password"},
		{name: "bearer-token", about: "what follows the word Bearer", own: bearer, guard: "16 characters and more that look random"},
		{name: "docker-auth", about: "the auth value of a Docker client configuration", own: dockerAuth, guard: "must be the base64 of a name and a password"},
		{name: "netrc-password", about: "the password of a .netrc line", own: netrc, guard: "must follow machine, login and a name on the line"},
		{name: "generic-assignment", about: "a value that looks random, assigned to a name that ends in token, secret, password, api_key, access_key or the like",
			own: newGeneric, guard: "16 characters and more (12 for passwords) with letters, digits, many changes between them and 3.1 bits of entropy; words, paths, versions, hashes with their algorithm, calls and placeholders do not match"},
	}
}

const headerValue = `[A-Za-z0-9._~+/=-]{8,}`

func authorization() (matcher, error) {
	q, err := compileValues(headerValue)
	return &assignment{keywords: []string{"authorization", "private-token", "x-api-key", "x-auth-token"}, values: q,
		words: []string{"bearer", "basic", "token", "apikey", "digest", "negotiate"},
		ok: func(v []byte, _ bool) bool {
			return len(v) >= 16 && looksRandom(v, true) || isForgeToken(v) || userPass(v)
		}}, err
}

func bearer() (matcher, error) {
	q, err := compileValues(headerValue)
	return &assignment{keywords: []string{"bearer"}, values: q, bare: true,
		ok: func(v []byte, _ bool) bool { return len(v) >= 16 && looksRandom(v, true) || isForgeToken(v) }}, err
}

func dockerAuth() (matcher, error) {
	q, err := compileValues(`[A-Za-z0-9+/=]{8,}`)
	return &quotedName{assignment{keywords: []string{"auth", "identitytoken"}, values: q,
		ok: func(v []byte, quoted bool) bool { return quoted && userPass(v) }}}, err
}

func netrc() (matcher, error) {
	q, err := compileValues(`[!-!#-%'-;=?-[\]-~]{6,}`)
	return &netrcLine{assignment{keywords: []string{"password"}, values: q, bare: true}}, err
}

func newGeneric() (matcher, error) {
	return &generic{assignment: assignment{keywords: spellKeywords([]string{
		"token", "secret", "passwd", "password", "passphrase", "api key", "access key", "secret key", "private key", "auth key", "account key",
		"encryption key", "signing key", "master key", "credential", "credentials", "client secret", "storepass", "keypass",
	})}}, nil
}
