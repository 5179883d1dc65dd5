package mask

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"aegis/proxy/internal/jsonscan"
)

// appendDecoded appends what the inside of a JSON string stands for. Lone
// surrogates become U+FFFD; broken escapes and invalid UTF-8 stay as they are.
func appendDecoded(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			n := bytes.IndexByte(raw[i:], '\\')
			if n < 0 {
				n = len(raw) - i
			}
			dst = append(dst, raw[i:i+n]...)
			i += n
			continue
		}
		var n int
		dst, n = appendEscape(dst, raw[i:])
		i += n
	}
	return dst
}

// appendEscape appends the character of the escape that raw begins with and
// returns the escape's length.
func appendEscape(dst, raw []byte) ([]byte, int) {
	c, n := unescape(raw)
	if n != 6 {
		return append(dst, c), n
	}
	r, _ := jsonscan.Hex4(raw[2:])
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), 6
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if low, ok := jsonscan.Hex4(raw[8:]); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return utf8.AppendRune(dst, full), 12
			}
		}
	}
	return utf8.AppendRune(dst, utf8.RuneError), 6
}

// advance returns where in the document n decoded bytes behind raw are. An
// offset inside a character is moved to its beginning.
func (t *text) advance(raw, n int) int {
	var room [utf8.UTFMax]byte
	for n > 0 && raw < len(t.b) {
		if t.b[raw] != '\\' {
			k := bytes.IndexByte(t.b[raw:], '\\')
			if k < 0 || k > n {
				k = n
			}
			raw, n = raw+k, n-k
			continue
		}
		ch, k := appendEscape(room[:0], t.b[raw:])
		// The rest is inside this character, which is masked or kept whole.
		if len(ch) > n {
			break
		}
		raw, n = raw+k, n-len(ch)
	}
	return raw
}

// toRaw translates spans of the decoded string whose raw form begins at start
// into spans of the document. The spans are in the order of their beginnings.
func (t *text) toRaw(spans []span, start int) {
	raw, decoded := start, 0
	for i := range spans {
		p := &spans[i]
		if p.start < decoded {
			raw, decoded = start, 0 // out of order: once more from the beginning
		}
		raw = t.advance(raw, p.start-decoded)
		decoded = p.start
		keep := t.advance(raw, int(p.keep))
		end := t.advance(raw, p.end-p.start)
		p.start, p.end, p.keep = raw, end, int32(keep-raw)
	}
}

// decodeLeaf scans the string around i in its decoded form and lets the pass
// go on behind it. What the pass had found in the string is dropped.
func (s *scan) decodeLeaf(i int) {
	start, end := s.t.begin(i), s.t.end(i)
	s.decodedFrom = append(s.decodedFrom, start)
	s.decoded, s.pos = end, end
	// They were found before the escape; the decoded string is scanned as a whole.
	n := len(s.spans)
	for n > 0 && s.spans[n-1].start >= start {
		n--
	}
	s.spans = s.spans[:n]
	s.leafFrom, s.leafEnd, s.leafKey = start, end, s.t.isKey(end)

	s.buf = appendDecoded(s.buf[:0], s.t.b[start:end])
	sub := s.sub(s.buf, s.patterns && !s.leafKey) // object keys pass the exact layer only
	defer s.e.put(sub)
	sub.all()
	sub.sort()
	s.t.toRaw(sub.spans, start)
	s.spans = append(s.spans, sub.spans...)
}

// wasDecoded reports whether the string at start was scanned decoded: its custom
// rules have run then.
func (s *scan) wasDecoded(start int) bool {
	_, found := slices.BinarySearch(s.decodedFrom, start)
	return found
}
