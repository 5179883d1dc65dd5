package envelope

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"aegis/proxy"
)

// contentMember is the member of a binary result that has the bytes. It is no unknown field
// where the bytes are left out.
const contentMember = "content_base64"

// binaryData returns the object that carries bytes which are no text: whole where their
// base64 fits, else what they are, without them. A model can do nothing with half an image,
// and the whole may be millions of characters; who needs the bytes gets them in ranges, with
// the cursor.
func (e *Envelope) binaryData(res *proxy.Result, at place) []byte {
	facts := appendMember(nil, `"content_type":`, res.ContentType)
	facts = strconv.AppendInt(append(facts, `,"size":`...), int64(len(res.Body)), 10)
	room := e.cfg.MaxChars - len(facts) - slack
	if at.pos == (position{}) && base64.StdEncoding.EncodedLen(len(res.Body)) <= room {
		return binaryObject(res.Body, facts)
	}
	// Of what comes back, not of what Gitea has: the digest of a passage that was masked would
	// let a client try guesses of it.
	sum := sha256.Sum256(res.Body)
	facts = fmt.Appendf(facts, `,"sha256":"%x"`, sum)
	next := position{digest: [8]byte(sum[:8])}
	if at.pos == (position{}) {
		if paths := at.fields.Paths(); len(paths) == 0 || slices.Contains(paths, contentMember) {
			e.noteCut(res, bounded{next: &next, truncation: &proxy.Truncation{Reason: "chars", Available: len(res.Body)}}, at)
			res.Warnings = append(res.Warnings, binaryWarning)
		}
		return append(append([]byte{'{'}, facts...), '}')
	}
	return e.binaryRange(res, at, facts, next)
}

const binaryWarning = "the content is binary and longer than a result may be, so it is left out; most tasks need " +
	"only its size, type and SHA-256; if the bytes are needed, repeat the call with truncation.cursor, which returns " +
	"them in ranges of base64, or have a person download the file from Gitea's web pages"

// binaryRange returns the range of the bytes that begins at the cursor's position. next has the
// digest of the bytes.
func (e *Envelope) binaryRange(res *proxy.Result, at place, facts []byte, next position) []byte {
	from := min(at.pos.item, uint64(len(res.Body)))
	facts = strconv.AppendUint(append(facts, `,"offset":`...), from, 10)
	room := e.cfg.MaxChars - len(facts) - slack
	// Whole groups of three bytes, so that the pieces of base64 can also be joined as text.
	part := res.Body[from:]
	part = part[:min(len(part), max(room/4, 1)*3)]
	cut := bounded{changed: at.pos.digest != next.digest}
	cut.truncation = &proxy.Truncation{Reason: "chars", Returned: len(part), Available: len(res.Body)}
	if next.item = from + uint64(len(part)); next.item < uint64(len(res.Body)) {
		cut.next = &next
	}
	e.noteCut(res, cut, at)
	return binaryObject(part, facts)
}

// binaryObject returns the object of bytes and of the members about them.
func binaryObject(content, facts []byte) []byte {
	const before, between = `{"` + contentMember + `":"`, `",`
	b := make([]byte, 0, len(before)+base64.StdEncoding.EncodedLen(len(content))+len(between)+len(facts)+1)
	b = base64.StdEncoding.AppendEncode(append(b, before...), content)
	return append(append(append(b, between...), facts...), '}')
}
