package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Every line begins with the members seq, time, prev and event, in this order
// and without spaces, and ends with hash. What is hashed is the line without
// the hash member and the line end: the bytes themselves, so nothing about JSON
// has to be canonical.
const (
	seqMember   = `{"seq":`
	timeMember  = `,"time":"`
	prevMember  = `","prev":"`
	eventMember = `","event":"`
	hashMember  = `,"hash":"`
	startMember = `,"started":`

	hashLen   = 2 * sha256.Size
	tailLen   = len(hashMember) + hashLen + len(`"}`)
	timeForm  = "2006-01-02T15:04:05.000000000Z"
	zeroHash  = "0000000000000000000000000000000000000000000000000000000000000000"
	maxLine   = 64 << 10 // bytes, line end included
	maxEvent  = 64
	maxDetail = 500 // bytes of a text in Detail
)

// digest is a record's hash.
type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// position is a place in the chain: the last record and its hash.
type position struct {
	seq  uint64
	hash digest
}

// appendLine appends the record after p with an encoded body, and returns its
// own position. The line is made by hand, since its bytes are what is hashed.
func appendLine(b []byte, p position, at time.Time, body []byte) ([]byte, position) {
	begin := len(b)
	b = append(b, seqMember...)
	b = strconv.AppendUint(b, p.seq+1, 10)
	b = append(b, timeMember...)
	b = at.UTC().AppendFormat(b, timeForm)
	b = append(b, prevMember...)
	b = hex.AppendEncode(b, p.hash[:])
	b = append(b, `",`...)
	b = append(b, body[1:]...)
	next := position{p.seq + 1, sha256.Sum256(b[begin:])}
	b = b[:len(b)-1]
	b = append(b, hashMember...)
	b = hex.AppendEncode(b, next.hash[:])
	return append(b, `"}`+"\n"...), next
}

// head is what the chain is made of, read from a line without decoding it.
type head struct {
	seq     uint64
	time    time.Time
	prev    digest
	hash    digest // as the line states it
	sum     digest // as it is
	event   Event
	started uint64
	line    []byte // without line end; only until the next one is read
}

// errForm is what is wrong with any line that Aegis did not write.
var errForm = errors.New("it is not an audit record")

// parseHead reads the chain's members of a line without its line end. The error
// is errForm, or says that the line is too long. A line whose hash does not fit
// is no error here.
func parseHead(line []byte) (head, error) {
	if len(line) >= maxLine {
		return head{}, errors.New("it is longer than a record can be")
	}
	h := head{line: line}
	c := cursor{rest: line}
	seq := c.until(seqMember, timeMember)
	at := c.until("", prevMember)
	prev := c.until("", eventMember)
	event := c.until("", `"`)
	if len(c.rest) < tailLen && len(line) < tailLen || c.bad || len(line) < tailLen {
		return head{}, errForm
	}
	var err error
	if h.seq, err = parseSeq(seq); err != nil {
		return head{}, errForm
	}
	if h.time, err = time.Parse(timeForm, string(at)); err != nil {
		return head{}, errForm
	}
	body, tail := line[:len(line)-tailLen], line[len(line)-tailLen:]
	if !parseHash(&h.prev, prev) || len(event) == 0 || len(event) > maxEvent ||
		!bytes.HasPrefix(tail, []byte(hashMember)) || !bytes.HasSuffix(tail, []byte(`"}`)) ||
		!parseHash(&h.hash, tail[len(hashMember):len(hashMember)+hashLen]) {
		return head{}, errForm
	}
	h.event = Event(event)
	if rest, ok := bytes.CutPrefix(c.rest, []byte(startMember)); ok {
		end := bytes.IndexAny(rest, ",}")
		if end < 0 {
			return head{}, errForm
		}
		if h.started, err = parseSeq(rest[:end]); err != nil {
			return head{}, errForm
		}
	}
	// The members were found by place; the rest must be JSON too, or a reader of the line could
	// see other members than those that count here.
	if !json.Valid(line) {
		return head{}, errForm
	}
	sum := sha256.New()
	sum.Write(body)
	sum.Write([]byte{'}'})
	sum.Sum(h.sum[:0])
	return h, nil
}

// record decodes the whole line.
func (h head) record() (*Record, error) {
	var r Record
	if err := json.Unmarshal(h.line, &r); err != nil {
		return nil, errForm
	}
	return &r, nil
}

// cursor walks through a line's fixed members.
type cursor struct {
	rest []byte
	bad  bool
}

// until skips prefix and returns what is before the next end, which it
// skips too.
func (c *cursor) until(prefix, end string) []byte {
	rest, ok := bytes.CutPrefix(c.rest, []byte(prefix))
	i := bytes.Index(rest, []byte(end))
	if !ok || i < 0 || i > 2*hashLen {
		c.bad = true
		return nil
	}
	c.rest = rest[i+len(end):]
	return rest[:i]
}

// parseSeq reads a sequence number, written in the one way that Aegis writes it.
func parseSeq(b []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil || n == 0 || b[0] == '0' || b[0] == '+' {
		return 0, errForm
	}
	return n, nil
}

// parseHash reads lower-case hexadecimal, the one form that Aegis writes: a hash that may be
// written in two ways could make two lines of one record.
func parseHash(d *digest, b []byte) bool {
	if len(b) != hashLen || bytes.ContainsAny(b, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(d[:], b)
	return err == nil
}
