package envelope

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// bounded is data within the bounds and, when something was cut, where to go on. Bounds
// count characters, not bytes: what a model may read is given in characters, and a text in
// another script must not come out a third as long.
type bounded struct {
	data       []byte
	truncation *proxy.Truncation // nil: data is whole
	next       *position         // nil: nothing follows
	changed    bool              // what is before the position has changed
}

// slack is kept free in a bound for brackets, commas and cut marks.
const slack = 64

// bound returns the part of the JSON value data that begins at pos and fits. When
// data is an array it has items elements at most; 0 is unknown.
func (e *Envelope) bound(data []byte, pos position, items int) bounded {
	counted := items > 0 && items <= e.cfg.MaxItems && jsonscan.Kind(data) == '['
	if counted && pos == (position{}) && fits(data, e.cfg.MaxChars) { // spares a walk over the whole
		return bounded{data: data}
	}
	out := e.cut(data, pos)
	if out.truncation != nil && !fits(out.data, e.cfg.MaxChars) {
		// No known shape of data comes here. The bound holds for unknown ones too.
		out.data = []byte("null")
		out.truncation.Returned = 0
		out.truncation.Omitted = []string{"data that cannot be cut; ask for less with fields or a smaller limit"}
	}
	return out
}

// cut cuts by the kind of the value. What it does not know how to cut comes back whole; bound
// has the last word.
func (e *Envelope) cut(data []byte, pos position) bounded {
	switch jsonscan.Kind(data) {
	case '[':
		if pos == (position{}) && fits(data, e.cfg.MaxChars) && atMost(data, e.cfg.MaxItems) {
			return bounded{data: data}
		}
		return e.cutArray(data, pos, e.cfg.MaxChars)
	case '{':
		return e.boundObject(data, pos)
	case '"':
		if pos == (position{}) && fits(data, e.cfg.MaxChars) {
			return bounded{data: data}
		}
		part, cut := boundText([]byte(jsonscan.Unquote(data)), e.cfg.MaxChars, pos)
		cut.data = jsonscan.AppendQuote(nil, part)
		return cut
	}
	return bounded{data: data} // numbers and literals are short
}

// fits reports whether data has at most n characters. No character takes less than a byte,
// so most data needs no counting.
func fits(data []byte, n int) bool {
	return len(data) <= n || utf8.RuneCount(data) <= n
}

// atMost reports whether the array in data has at most n elements. It walks no further than
// that.
func atMost(data []byte, n int) bool {
	if len(data) < 2*n { // an element and its comma take two bytes
		return true
	}
	for range jsonscan.Elements(data) {
		if n--; n < 0 {
			return false
		}
	}
	return true
}

// cutArray takes whole elements from pos on while they fit into chars and
// MaxItems. A first element that alone does not fit has its strings cut: an answer
// without any element would leave a client at the same cursor for ever.
//
// It walks to the end in any case, as the truncation says how many there are, and it
// copies once, at the end, the one span of bytes that holds all elements taken.
func (e *Envelope) cutArray(data []byte, pos position, chars int) bounded {
	var out bounded
	room := chars - slack
	first, total, taken := pos.item, uint64(0), 0
	from, to := 0, 0 // the span of the elements taken
	full := false
	for at, el := range jsonscan.Elements(data) {
		i := total
		total++
		if full || i < first { // goes on: total counts them all
			continue
		}
		if i == first {
			from, to = at, at
			out.changed = changed(data, at, len(el), pos)
			if pos.chars > 0 || !fits(el, room) {
				out = e.cutElement(data, jsonscan.Span{From: at, To: at + len(el)}, pos, room)
				full = true
				continue
			}
		}
		n := utf8.RuneCount(el) + 1
		if taken >= e.cfg.MaxItems || room < n {
			full = true
			out.next = &position{item: i, list: true, digest: digestOf(data[:at])}
			continue
		}
		room -= n
		taken++
		to = at + len(el)
	}
	if out.data == nil {
		out.data = slices.Concat([]byte{'['}, data[from:to], []byte{']'})
		out.truncation = &proxy.Truncation{Reason: "chars", Returned: taken}
		if taken >= e.cfg.MaxItems {
			out.truncation.Reason = "items"
		}
	}
	if out.next != nil && out.next.item >= total { // the element that was cut was the last
		out.next = nil
	}
	out.changed = out.changed || total < first
	out.truncation.Available = int(total)
	return out
}

// changed reports whether what pos says was returned before differs from what
// is there now: everything before the element at at, and the element's own
// length bytes when pos is inside it.
func changed(data []byte, at, length int, pos position) bool {
	if pos.chars > 0 {
		at += length
	}
	return pos.list && digestOf(data[:at]) != pos.digest
}

// cutElement returns an array of the part of one element of data that fits: with its
// strings cut the first time, an object of the rests of its strings from then on.
func (e *Envelope) cutElement(data []byte, el jsonscan.Span, pos position, room int) bounded {
	part := e.cutStrings(data[el.From:el.To], pos.chars, room)
	out := bounded{changed: changed(data, el.From, el.To-el.From, pos)}
	out.truncation = &proxy.Truncation{Reason: "chars", Omitted: part.omitted}
	out.data = append(append([]byte{'['}, part.data...), ']')
	out.next = &position{item: pos.item, chars: part.next, list: true, digest: digestOf(data[:el.To])}
	if part.next == 0 { // the element is done: go on with the one behind it
		rest := bytes.TrimLeft(data[el.To:], " \t\r\n,")
		out.truncation.Returned = 1
		out.next = &position{item: pos.item + 1, list: true, digest: digestOf(data[:len(data)-len(rest)])}
	}
	return out
}

// boundObject cuts the one long list of an object, if it has one, and long strings otherwise.
func (e *Envelope) boundObject(data []byte, pos position) bounded {
	name, list := dominant(data)
	if value := data[list.From:list.To]; len(value) > 0 && (pos.list || pos == position{}) {
		// The list is cut where that makes room: the rest must leave it half of the bound.
		makesRoom := !fits(data, e.cfg.MaxChars) && 2*(len(data)-len(value)) < e.cfg.MaxChars
		if pos.list || makesRoom || !atMost(value, e.cfg.MaxItems) {
			return e.cutMember(data, name, list, pos)
		}
	}
	if pos.chars == 0 && fits(data, e.cfg.MaxChars) {
		return bounded{data: data, changed: pos != position{}}
	}
	if pos.list { // there is no list any more
		pos = position{}
	}
	part := e.cutStrings(data, pos.chars, e.cfg.MaxChars)
	out := bounded{data: part.data, truncation: &proxy.Truncation{
		Reason: "chars", Returned: part.returned, Available: part.available, Omitted: part.omitted}}
	if part.next > 0 {
		out.next = &position{chars: part.next, digest: digestOf(data)}
	}
	out.changed = pos.chars > 0 && pos.digest != digestOf(data)
	return out
}

// dominant returns the object's longest array member, when it is more than half
// of the object: the list in {"ok":true,"data":[…]} or {"tree":[…]}. The span is empty when
// there is none.
func dominant(data []byte) (name string, list jsonscan.Span) {
	var key []byte
	for k, at := range jsonscan.MemberSpans(data) {
		if data[at.From] == '[' && at.To-at.From > list.To-list.From {
			key, list = k, at
		}
	}
	if 2*(list.To-list.From) < len(data) {
		return "", jsonscan.Span{}
	}
	return showName(key), list
}

// cutMember cuts one array inside an object and keeps the rest. Where the rest
// leaves the array less than half of the room, its long strings are cut too, and
// the truncation says so: the cursor goes on with the array alone.
func (e *Envelope) cutMember(data []byte, name string, list jsonscan.Span, pos position) bounded {
	head, value, tail := data[:list.From], data[list.From:list.To], data[list.To:]
	room := e.cfg.MaxChars - utf8.RuneCount(head) - utf8.RuneCount(tail)
	out := e.cutArray(value, pos, max(room, e.cfg.MaxChars/2))
	out.data = slices.Concat(head, out.data, tail)
	out.truncation.At = name
	if !fits(out.data, e.cfg.MaxChars) {
		part := e.cutStrings(out.data, 0, e.cfg.MaxChars)
		out.data = part.data
		out.truncation.Omitted = boundNames(append([]string{"the rest of long texts"}, part.omitted...))
	}
	return out
}

// boundText returns the part of text that begins at pos and has at most max
// characters, cut behind a line end where there is one, never inside a rune. A cursor
// counts bytes here: the position is found without reading what comes before it, but
// for the digest that shows whether that is still the same.
func boundText(text []byte, maxChars int, pos position) ([]byte, bounded) {
	var out bounded
	rest := text
	if pos.item > 0 {
		if pos.item > uint64(len(text)) {
			out.changed = true
			rest = nil
		} else {
			out.changed = digestOf(text[:pos.item]) != pos.digest
			rest = text[pos.item:]
		}
	}
	part := rest
	if !fits(rest, maxChars) {
		part = rest[:runeIndex(rest, maxChars)]
		if nl := bytes.LastIndexByte(part, '\n'); nl >= 0 {
			part = part[:nl+1]
		}
	}
	if len(part) == len(text) {
		return part, out
	}
	out.truncation = &proxy.Truncation{Reason: "chars", Returned: utf8.RuneCount(part), Available: utf8.RuneCount(text)}
	if len(part) < len(rest) {
		end := pos.item + uint64(len(part))
		out.next = &position{item: end, digest: digestOf(text[:end])}
	}
	return part, out
}

// runeIndex returns the byte index of the n-th character of b, its length when there are
// fewer.
func runeIndex(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}
