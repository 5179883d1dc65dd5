package mask

import (
	"bytes"
	"slices"

	"aegis/proxy/internal/jsonscan"
)

// known runs the exact layer.
func (s *scan) known() {
	if s.r == nil {
		return
	}
	from := len(s.spans)
	add := func(start, end int, probe bool) {
		if probe {
			s.probes = append(s.probes, start)
			return
		}
		// What overlaps or touches is one: a secret of few bytes may be
		// everywhere, and spans cost memory.
		if n := len(s.spans); n > from && s.spans[n-1].start <= start && start <= s.spans[n-1].end {
			s.spans[n-1].end = max(s.spans[n-1].end, end)
			return
		}
		s.spans = append(s.spans, span{start: start, end: end, rule: exactRule})
	}
	for i := range s.r.passes {
		s.r.passes[i].find(s.t.b, s.t.json, add)
	}
	// Without a secret there is no length that could bound a region.
	if len(s.r.passes) > 0 {
		s.percents(add)
	}
	// Raw bytes are not enough for strings that may spell a character in several ways.
	if s.t.json && (s.r.blind || len(s.probes) > 0) {
		s.decodedStrings()
	}
	if len(s.spans) == from {
		return
	}
	// Passes and strings were gone through one after another, each from the beginning.
	s.sort()
	if s.t.json {
		s.insideStrings()
	}
	// Passes may have found the same place.
	out := s.spans[:0]
	for _, p := range s.spans {
		if n := len(out); n > 0 && p.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, p.end)
			continue
		}
		out = append(out, p)
	}
	s.spans = out
}

// decodedStrings runs the exact layer on the strings that hold a part of a
// secret, decoded; on all with an escape when the redactor is blind.
func (s *scan) decodedStrings() {
	slices.Sort(s.probes)
	probes := s.probes
	for at := range jsonscan.Strings(s.t.b) {
		var before []int
		before, probes = split(probes, at.To, func(place int) int { return place })
		some := len(before) > 0 && before[len(before)-1] >= at.From
		if leaf := s.t.b[at.From:at.To]; (some || s.r.blind) && bytes.IndexByte(leaf, '\\') >= 0 {
			s.buf = appendDecoded(s.buf[:0], leaf)
			sub := s.e.get(s.buf, false, s.r)
			sub.known()
			s.t.toRaw(sub.spans, at.From)
			s.spans = append(s.spans, sub.spans...)
			s.e.put(sub)
		}
		if !s.r.blind && len(probes) == 0 {
			return
		}
	}
}

// insideStrings drops the spans that are not whole characters of one string:
// digits of a number, parts of an escape.
func (s *scan) insideStrings() {
	rest, out := s.spans, s.spans[:0]
	for at := range jsonscan.Strings(s.t.b) {
		var before []span
		before, rest = split(rest, at.To, spanStart)
		for _, p := range before {
			if p.start >= at.From && p.end <= at.To && !s.t.insideEscape(p.start) {
				out = append(out, p)
			}
		}
		if len(rest) == 0 {
			break
		}
	}
	s.spans = out
}

// insideEscape reports whether an escape begins before i and ends behind it.
func (t *text) insideEscape(i int) bool {
	// The longest escape has six bytes.
	for k := 1; k <= 5 && k <= i; k++ {
		if t.b[i-k] == '\\' && !t.escaped(i-k) {
			// The first backslash backwards that begins an escape decides: escapes do not overlap.
			_, n := unescape(t.b[i-k:])
			return n > k
		}
	}
	return false
}

// percents finds secrets in which more is percent-encoded than any encoder
// would: characters that RFC 3986 leaves as they are. Only the surroundings of
// such places are decoded.
func (s *scan) percents(add found) {
	b := s.t.b
	// Percent-encoded, each byte of a secret takes three.
	reach := 3 * s.r.longest
	for at := 0; ; {
		i := nextPercent(b, at)
		if i < 0 {
			return
		}
		// A secret that holds this character begins and ends within reach of it.
		from, to := max(i-reach, 0), i+3+reach
		for { // neighbours belong to the same region
			j := nextPercent(b[:min(to+3, len(b))], i+3)
			if j < 0 {
				break
			}
			i, to = j, j+3+reach
		}
		to = min(to, len(b))
		s.percentRegion(from, to, add)
		at = to
	}
}

// nextPercent returns the first place at or after i where an unreserved
// character is percent-encoded, -1 without one.
func nextPercent(b []byte, i int) int {
	for i < len(b) {
		k := bytes.IndexByte(b[i:], '%')
		if k < 0 {
			return -1
		}
		i += k
		if c, n := unpercent(b[i:]); n == 3 && unreserved(c) {
			return i
		}
		i++
	}
	return -1
}

// unpercent returns the byte that b begins with, which may be percent-encoded, and how many
// bytes it takes: 1 or 3.
func unpercent(b []byte) (c byte, n int) {
	if len(b) < 3 || b[0] != '%' || jsonscan.Hex(b[1]) < 0 || jsonscan.Hex(b[2]) < 0 {
		return b[0], 1
	}
	return byte(jsonscan.Hex(b[1]))<<4 | byte(jsonscan.Hex(b[2])), 3
}

// percentRegion runs the exact layer on b[from:to] decoded once. Encodings of
// several levels are among the needles, see nestedForms.
func (s *scan) percentRegion(from, to int, add found) {
	raw := s.t.b[from:to]
	s.buf = s.buf[:0]
	for i := 0; i < len(raw); {
		c, n := unpercent(raw[i:])
		s.buf = append(s.buf, c)
		i += n
	}
	var offsets []int32 // of decoded bytes in raw, made when there is a hit
	offset := func(target int) int {
		for i, n := 0, 0; i < len(raw) && len(offsets) < len(s.buf); i += n {
			offsets = append(offsets, int32(i))
			_, n = unpercent(raw[i:])
		}
		if target == len(s.buf) { // the end of the last one
			return to
		}
		return from + int(offsets[target])
	}
	for i := range s.r.passes {
		s.r.passes[i].find(s.buf, false, func(start, end int, probe bool) { add(offset(start), offset(end), probe) })
	}
}
