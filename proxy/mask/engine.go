// Package mask keeps secrets from leaving through Aegis.
//
// Two layers look at every text. The exact layer removes the secrets that
// Aegis knows, in each of their encodings. The pattern layer recognises
// secrets by shape or by the name they are assigned to, with built-in rules
// and the configuration's own. JSON is rewritten without being decoded: every
// byte outside a masked span stays as it came.
//
// An [Engine] is built once and never changes. Its time is linear in the text,
// and text without a secret costs no allocation.
package mask

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"aegis/config"
)

// Engine finds and masks secrets. It is immutable and safe for concurrent use.
type Engine struct {
	rules []rule
	table *table
	// addresses is the index of the rule for addresses, -1 without it.
	addresses int32
	// customs are the indexes of the configuration's rules; some of them are
	// tried on every text because no literal announces them.
	customs []int32
	// patterns says, by purpose, whether the pattern layer does anything.
	patterns [purposes]bool
	mode     [purposes]action
	exact    *secrets
	base     *Redactor // of no call
	known    map[string]bool
	pool     sync.Pool
}

// action is what a match leads to.
type action uint8

// The zero value does nothing: a rule must be switched on.
const (
	actOff action = iota
	actReport
	actMask
	actBlock
)

// actions are the words of the configuration.
var actions = map[string]action{"off": actOff, "report": actReport, "mask": actMask, "block": actBlock}

// purpose is what a text is scanned for: rules act differently on results and
// on arguments.
type purpose uint8

const (
	forResults purpose = iota
	forInput
	purposes
)

// Priorities: of overlapping matches the rule with the higher one gives the
// name and the replacement.
const (
	prioGeneric int8 = iota // a name and a value that looks random
	prioContext             // a name and a value of the right shape
	prioToken               // a shape of its own
	prioCustom              // the configuration's
)

// rule is a compiled rule.
type rule struct {
	name    string
	prio    int8
	matcher matcher
	custom  *custom
	// What the span must satisfy besides: a substring, a least entropy, a
	// validator, and not to be listed in allow.
	must    string
	entropy float64
	check   func([]byte) bool
	allow   map[string]bool
	// action by purpose.
	action [purposes]action
	// with replaces the span, in text and inside a JSON string.
	with, withJSON []byte
}

// accepts judges a span of which the first keep bytes are the rule's literal.
func (r *rule) accepts(span []byte, keep int) bool {
	body := span[keep:]
	return (r.entropy == 0 || entropy(body) >= r.entropy) &&
		(r.must == "" || bytes.Contains(span, []byte(r.must))) &&
		(r.check == nil || r.check(span)) &&
		!r.allow[string(span)]
}

// RuleError is a rule that cannot be enforced as written.
type RuleError struct {
	// Key is the place in the configuration: masking.rules[2].regex.
	Key string
	// What is wrong, and what to Do about it.
	What, Do string
}

// Error returns key, complaint and advice.
func (e *RuleError) Error() string { return e.Key + ": " + e.What + "; " + e.Do }

// New compiles the rules of cfg. secrets are all values that the process knows
// to be secret: configured tokens, client secrets and keys; those shorter than
// four bytes are ignored, and cfg.ExtraSecrets are added. Errors are
// [*RuleError]s, joined.
func New(cfg config.Masking, secrets []string) (*Engine, error) {
	e := &Engine{addresses: -1}
	if err := e.modes(cfg); err != nil {
		return nil, err
	}
	if err := e.builtins(cfg); err != nil {
		return nil, err
	}
	own, err := customRules(cfg, e.mode)
	if err != nil {
		return nil, err
	}
	// Their indexes are known only now, as they follow the built-in ones.
	for i := range own {
		e.customs = append(e.customs, int32(len(e.rules)+i))
	}
	e.rules = append(e.rules, own...)
	if err := e.compile(); err != nil {
		return nil, err
	}
	values := slices.Clone(secrets)
	for _, s := range cfg.ExtraSecrets {
		values = append(values, s.Reveal())
	}
	e.known = set(values...)
	e.exact = newSecrets(values, leastSecret)
	e.base = newRedactor(e.exact)
	e.pool.New = func() any { return &scan{} }
	return e, nil
}

// leastSecret is how many bytes a value must have to be redacted exactly.
const leastSecret = 4

// modes reads what rules do by default, for results and for arguments. Arguments
// cannot be reported only: what a report would name has been sent by then.
func (e *Engine) modes(cfg config.Masking) error {
	for _, m := range []struct {
		p         purpose
		key, text string
		fallback  action
	}{{forResults, "masking.mode", cfg.Mode, actMask}, {forInput, "masking.input", cfg.Input, actOff}} {
		e.mode[m.p] = m.fallback
		if m.text == "" {
			continue
		}
		a, ok := actions[m.text]
		if !ok || m.p == forInput && a == actReport {
			return &RuleError{
				Key: m.key, What: "unknown mode", Do: "use off, mask or block (masking.mode also knows report)",
			}
		}
		e.mode[m.p] = a
	}
	return nil
}

// compile builds the filter over the rules.
func (e *Engine) compile() error {
	starts := map[uint32]struct{}{}
	for i := range e.rules {
		r := &e.rules[i]
		switch m := r.matcher.(type) {
		case address:
			e.addresses = int32(i)
		case *token:
			m.prefixes(starts)
		}
		for p := range purposes {
			e.patterns[p] = e.patterns[p] || r.action[p] != actOff
		}
	}
	// All rules share one table, so its cost does not grow with their number.
	t, err := newTable(e.places())
	if err != nil {
		return err
	}
	t.starts = starts
	e.table = t
	return nil
}

// places returns where the filter must look: the guards of JSON, and what the
// rules ask for.
func (e *Engine) places() []place {
	all := guardPlaces()
	for i := range e.rules {
		for k, p := range e.rules[i].matcher.places() {
			p.name, p.ref.rule, p.ref.variant = e.rules[i].name, int32(i), int32(k)
			all = append(all, p)
		}
	}
	return all
}

// ExactRule is the name under which the exact layer counts its hits.
const ExactRule = "known-secret"

// Hits counts masked, blocked and reported secrets by rule name. It is nil
// when there were none.
type Hits map[string]int

// Add adds the counts of more and returns the sum, which may be h itself.
func (h Hits) Add(more Hits) Hits {
	if len(more) == 0 {
		return h
	}
	if h == nil {
		return maps.Clone(more)
	}
	for k, n := range more {
		h[k] += n
	}
	return h
}

// Redactor is the exact layer of one call: the configured secrets and those of
// the call itself. It is immutable.
type Redactor struct {
	passes []pass
	// longest is the length of the longest secret.
	longest int
	// blind says that strings with escapes must be decoded, see secrets.
	blind bool
}

// newRedactor joins compiled sets; nil sets are left out. That is cheap, so each
// call can have a redactor of its own over the configured set.
func newRedactor(sets ...*secrets) *Redactor {
	r := &Redactor{passes: passes(sets...)}
	for _, s := range sets {
		if s != nil {
			r.longest = max(r.longest, s.longest)
			r.blind = r.blind || s.blind
		}
	}
	return r
}

// Call returns the redactor of a call that must not give away these secrets,
// such as the caller's token. Values shorter than four bytes are ignored.
// [Engine.ForCall] takes them from a call itself.
func (e *Engine) Call(values ...string) *Redactor {
	return e.call(values, nil)
}

// call makes a redactor; short are values that count whatever their length.
func (e *Engine) call(values, short []string) *Redactor {
	fresh := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) < leastSecret || e.known[v] })
	// A static token is among the configured secrets, and most calls submit none.
	if len(fresh) == 0 && len(short) == 0 {
		return e.base
	}
	return newRedactor(e.exact, newSecrets(fresh, leastSecret), newSecrets(short, 1))
}

// get returns a scan of b, put gives it back.
func (e *Engine) get(b []byte, json bool, r *Redactor) *scan {
	s := e.pool.Get().(*scan)
	if r == nil {
		r = e.base
	}
	skip := s.skip
	if len(skip) != len(e.rules) {
		skip = make([]int, len(e.rules))
	}
	// Of an earlier text, where other places were useless.
	clear(skip)
	*s = scan{
		e: e, t: text{b: b, json: json}, r: r, skip: skip,
		spans: s.spans[:0], marks: s.marks[:0], decodedFrom: s.decodedFrom[:0], probes: s.probes[:0],
		peeks: s.peeks[:0], exact: s.exact, redacted: s.redacted, buf: s.buf, plain: s.plain,
	}
	return s
}

// sub returns a scan of b, which a part of the text of s is decoded to.
func (s *scan) sub(b []byte, patterns bool) *scan {
	sub := s.e.get(b, false, s.r)
	sub.purpose, sub.done, sub.patterns = s.purpose, s.done, patterns
	return sub
}

// keepBuffers bounds what a pooled scan holds on to, in bytes.
const keepBuffers = 1 << 20

// put keeps the buffers of ordinary texts. One large document must not stay in
// memory for good because its buffers are in the pool.
func (e *Engine) put(s *scan) {
	s.spans, s.exact = bounded(s.spans, keepBuffers/64), bounded(s.exact, keepBuffers/64)
	s.marks = bounded(s.marks, keepBuffers/16)
	s.redacted, s.plain = bounded(s.redacted, keepBuffers), bounded(s.plain, keepBuffers)
	s.buf = bounded(s.buf, keepBuffers)
	// The pool must not hold on to texts and to what was found in them.
	s.t, s.r, s.hits, s.done, s.rewritten, s.wide = text{}, nil, nil, nil, nil, nil
	e.pool.Put(s)
}

// bounded returns l, or nil when it has room for more than most elements.
func bounded[T any](l []T, most int) []T {
	if cap(l) > most {
		return nil
	}
	return l
}
