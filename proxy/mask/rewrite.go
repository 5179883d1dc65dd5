package mask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// Options tune one rewrite.
type Options struct {
	// ExactOnly leaves the pattern layer out.
	ExactOnly bool
	// Input makes the rules act as masking.input says, not masking.mode.
	Input bool
	// neverBlock masks what a blocking rule finds; json says what the text is.
	neverBlock, json bool
	// wide is the UTF-16 text that the scanned one stands for.
	wide []byte
}

// BlockedError says that a blocking rule matched: nothing of the text may be
// used.
type BlockedError struct {
	// Rule is the rule's name.
	Rule string
}

// Error names the rule.
func (e *BlockedError) Error() string { return "withheld: the rule " + e.Rule + " found a secret" }

// ErrDepth means that a document is nested too deep to be taken apart.
var ErrDepth = errors.New("JSON is nested too deep to be masked")

// errSplice is a defect: settle leaves disjoint spans in order. Withholding the text
// is better than writing it out of order.
var errSplice = errors.New("masking found overlapping or misplaced spans")

// JSON masks the strings of a JSON document. Without a match it returns src
// itself and allocates nothing; otherwise it overwrites dst and returns it,
// grown as needed. Object keys pass the exact layer only. Everything outside
// the masked spans keeps its bytes. On an error, a [*BlockedError] among
// others, the document must not be used; hits may still be set.
func (e *Engine) JSON(ctx context.Context, dst, src []byte, r *Redactor, o Options) (out []byte, hits Hits, err error) {
	o.json = true
	return e.mask(ctx, dst, src, r, o)
}

// Text is [Engine.JSON] for any other text, which need not be valid UTF-8.
// UTF-16 with a byte order mark is read as such, too.
func (e *Engine) Text(ctx context.Context, dst, src []byte, r *Redactor, o Options) (out []byte, hits Hits, err error) {
	o.json = false
	return e.mask(ctx, dst, src, r, o)
}

// mask masks src as what o says that it is.
func (e *Engine) mask(ctx context.Context, dst, src []byte, r *Redactor, o Options) (out []byte, hits Hits, err error) {
	out, hits, err = e.rewrite(ctx, dst, src, r, o)
	if o.json || err != nil || !hasBOM(out) {
		return out, hits, err
	}
	o.wide = out
	out, more, err := e.rewrite(ctx, nil, narrowed(out), r, o)
	if more == nil && err == nil {
		out = o.wide
	}
	return out, hits.Add(more), err
}

// Bytes masks src, as JSON when it is a document or lines of documents, whatever the modes say of
// blocking. It is for people who try their rules.
func (e *Engine) Bytes(src []byte) (out []byte, hits Hits) {
	ctx, r := context.Background(), e.Call()
	if looksJSON(src) {
		if out, hits, err := e.JSON(ctx, nil, src, r, Options{neverBlock: true}); err == nil {
			return out, hits
		}
	}
	out, hits, err := e.Text(ctx, nil, src, r, Options{neverBlock: true})
	if err != nil {
		return nil, hits // fail closed; only a defect leads here
	}
	return out, hits
}

// rewrite finds, decides and writes. Contents in base64 come after the rest of the
// document, as what was found in their encoded form decides what is done with them.
func (e *Engine) rewrite(ctx context.Context, dst, src []byte, r *Redactor, o Options) ([]byte, Hits, error) {
	s := e.get(src, o.json, r)
	defer e.put(s)
	if o.Input {
		s.purpose = forInput
	} else {
		s.purpose = forResults
	}
	s.patterns = !o.ExactOnly && e.patterns[s.purpose]
	s.done, s.wide = ctx.Done(), o.wide
	// With patterns the pass finds that out by itself, see marker.
	s.encoded = s.t.json && !s.patterns && containsAny(src, markers...)
	s.all()
	if s.encoded || len(s.peeks) > 0 {
		if err := s.contents(); err != nil {
			return nil, nil, err
		}
	}
	if s.stopped() {
		return nil, nil, fmt.Errorf("masking: %w", ctx.Err())
	}
	if len(s.spans) == 0 && s.hits == nil {
		return src, nil, nil
	}
	s.settle()
	if s.blocked != "" && !o.neverBlock {
		return nil, s.hits, &BlockedError{Rule: s.blocked}
	}
	if len(s.spans) == 0 {
		if s.wide != nil {
			return s.wide, s.hits, nil
		}
		return src, s.hits, nil
	}
	out, err := s.splice(dst[:0])
	return out, s.hits, err
}

// all runs both layers and collects spans. The pattern layer sees the text
// that the exact layer leaves.
func (s *scan) all() {
	s.known()
	if len(s.spans) == 0 {
		s.patternLayer()
		return
	}
	// Patterns must not take a part of a known secret, or miss what is next to one: they see the
	// mark in its place, and their spans are translated back.
	s.exact, s.spans = s.spans, s.exact[:0]
	orig := s.t.b
	s.redacted = s.redacted[:0]
	at := 0
	for _, p := range s.exact {
		s.redacted = append(s.redacted, orig[at:p.start]...)
		s.redacted = append(s.redacted, markRedacted...)
		at = p.end
	}
	s.redacted = append(s.redacted, orig[at:]...)
	s.shiftExact()
	s.t.b = s.redacted
	s.patternLayer()
	s.t.b = orig
	for i, p := range s.peeks {
		s.peeks[i] = [2]int{original(p[0], s.exact, false), original(p[1], s.exact, true)}
	}
	for i := range s.spans {
		p := &s.spans[i]
		start := original(p.start, s.exact, false)
		// A known secret is within the part to keep, of which nothing stays then.
		if keep := original(p.start+int(p.keep), s.exact, false) - start; keep != int(p.keep) {
			p.keep = 0
		}
		p.start, p.end = start, original(p.end, s.exact, true)
	}
	for _, p := range s.exact {
		p.keep = 0
		s.spans = append(s.spans, p)
	}
}

// shiftExact notes in keep by how much the text before each exact span is
// longer than the redacted one.
func (s *scan) shiftExact() {
	longer := 0
	for i := range s.exact {
		s.exact[i].keep = int32(longer)
		longer += s.exact[i].end - s.exact[i].start - len(markRedacted)
	}
}

// patternLayer makes the pass and runs the custom rules that it noticed. In JSON the
// pass is needed without patterns, too: it notices escapes and encoded contents.
func (s *scan) patternLayer() {
	if s.t.json || s.patterns {
		s.run()
	}
	s.customs()
}

// original translates an offset in the redacted text into one of the text. An
// offset inside [REDACTED] becomes the beginning or the end of what stood there.
func original(i int, exact []span, end bool) int {
	after := sort.Search(len(exact), func(k int) bool { return exact[k].start-int(exact[k].keep) >= i })
	if after == 0 {
		return i
	}
	p := exact[after-1]
	before := int(p.keep)
	if i < p.start-before+len(markRedacted) {
		if end {
			return p.end
		}
		return p.start
	}
	return i + before + (p.end - p.start) - len(markRedacted)
}

// stopped reports whether the caller has given up. It is looked at between parts of
// the work that may take long, not in the pass.
func (s *scan) stopped() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// sort orders spans by where they begin, the longer ones first, so that a span comes
// before all that is inside it.
func (s *scan) sort() {
	slices.SortFunc(s.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.rule, b.rule))
	})
}

// A known secret is certain, so it wins over every rule. Content as a whole wins over
// what was found in its encoded form, which is no longer there.
const (
	prioExact   int8 = 100
	prioContent int8 = 101
)

func (s *scan) prio(p *span) int8 {
	switch {
	case p.rule == contentRule:
		return prioContent
	case p.rule == exactRule:
		return prioExact
	}
	return s.e.rules[p.rule].prio
}

// settle turns what was found into what is done: it counts hits, notes
// whether a rule blocks, and leaves disjoint spans in order. Overlapping spans
// become one, which gets the name and form of the rule with the highest
// priority; a known secret thus always becomes [REDACTED].
func (s *scan) settle() {
	s.sort()
	all := slices.CompactFunc(s.spans, same)
	out := all[:0]
	for _, p := range all {
		switch s.actionOf(&p) {
		case actOff:
			continue
		case actReport:
			s.count(p.rule)
			continue
		case actBlock:
			if s.blocked == "" {
				s.blocked = s.e.rules[p.rule].name
			}
		}
		// Known secrets that touch are one, as the exact layer has it.
		if n := len(out); n > 0 {
			last := &out[n-1]
			touch := p.start == last.end && p.rule == exactRule && last.rule == exactRule
			if touch || p.start < last.end {
				last.join(&p, s.prio(last), s.prio(&p))
				continue
			}
		}
		out = append(out, p)
	}
	for i := range out {
		s.count(out[i].rule)
	}
	s.spans = out
}

// join makes p cover q as well, under the name of the stronger.
func (p *span) join(q *span, prioP, prioQ int8) {
	if prioQ > prioP || prioQ == prioP && q.start == p.start && q.end > p.end {
		// Of a match that begins later, the part to keep is not at the beginning of the whole.
		keep := q.keep
		if q.start != p.start {
			keep = 0
		}
		p.rule, p.keep = q.rule, keep
	}
	p.end = max(p.end, q.end)
}

// actionOf returns what the span leads to. Known secrets are masked in every mode.
func (s *scan) actionOf(p *span) action {
	if p.rule < 0 {
		return actMask
	}
	return s.e.rules[p.rule].action[s.purpose]
}

// count counts a hit under the name of its rule.
func (s *scan) count(rule int32) {
	if rule == contentRule {
		return // counted when it was decoded
	}
	if s.hits == nil {
		s.hits = Hits{}
	}
	if rule == exactRule {
		s.hits[ExactRule]++
		return
	}
	s.hits[s.e.rules[rule].name]++
}

// splice appends the text with its spans replaced to dst. Of UTF-16 text the scan
// has seen the narrow form, a byte for each unit behind the byte order mark.
func (s *scan) splice(dst []byte) ([]byte, error) {
	src, mark, unit := s.t.b, 0, 1
	if s.wide != nil {
		src, mark, unit = s.wide, 2, 2
	}
	if cap(dst) < len(src) {
		// A little more than the text, as a mark may be longer than what it replaces.
		dst = make([]byte, 0, len(src)+len(src)/64+64)
	}
	dst = append(dst, src[:mark]...)
	at := 0
	for i := range s.spans {
		p := &s.spans[i]
		keep := p.start + int(p.keep)
		if p.rule == contentRule {
			keep = p.start
		}
		if p.start < at || keep > p.end || p.end > len(s.t.b) {
			return nil, errSplice
		}
		dst = append(dst, src[mark+at*unit:mark+keep*unit]...)
		if s.wide != nil {
			dst = appendUTF16(dst, s.replacement(p))
		} else {
			dst = append(dst, s.replacement(p)...)
		}
		at = p.end
	}
	return append(dst, src[mark+at*unit:]...), nil
}

// markShort replaces a part of a match whose rest stays, which says what it was.
var markShort = []byte("***")

// replacement returns what is written in the span's place.
func (s *scan) replacement(p *span) []byte {
	switch {
	case p.rule == contentRule:
		return s.rewritten[p.keep]
	case p.rule == exactRule:
		return markRedacted
	}
	r := &s.e.rules[p.rule]
	switch {
	case r.custom == nil && (p.keep > 0 || r.prio < prioToken):
		return markShort
	case s.t.json:
		return r.withJSON
	}
	return r.with
}

func same(a, b span) bool { return a.start == b.start && a.end == b.end && a.rule == b.rule }
