package envelope

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"aegis/proxy"
)

// position is where a truncated answer stopped.
type position struct {
	// item is the number of array items already returned whole, or of bytes of
	// a text.
	item uint64
	// chars is how many characters of each long string of the item (or of the
	// object) have been returned; 0 when the item begins afresh.
	chars uint64
	// list: the place is in an array, not in an object's strings.
	list bool
	// digest is of what has been returned, to notice changes.
	digest [8]byte
}

// Cursors seals and opens the cursors of truncated results. A cursor proves
// that this server made it for the same identity, team, tool and arguments; it
// holds a position and nothing else. The zero value does not work; see
// [NewCursors].
type Cursors struct {
	key [sha256.Size]byte
}

// NewCursors returns cursors sealed with a key derived from secret. With an
// empty secret the key is random, and cursors end with the process.
func NewCursors(secret string) (Cursors, error) {
	var c Cursors
	if secret == "" {
		if _, err := rand.Read(c.key[:]); err != nil {
			return Cursors{}, fmt.Errorf("cursor key: %w", err)
		}
		return c, nil
	}
	c.key = sha256.Sum256([]byte("aegis result cursor v1\x00" + secret))
	return c, nil
}

// A cursor is a position and its authentication, in base64: short, since models copy it.
const (
	posLen = 25 // item, chars, list, digest
	macLen = 16 // truncated HMAC-SHA-256 (RFC 2104 section 5)
)

// strictBase64 refuses bits that say nothing: a cursor has one spelling. Line ends, which the
// package skips everywhere, are refused beside it.
var strictBase64 = base64.RawURLEncoding.Strict()

// binding is a digest of everything that decides what a call's data is. It is
// taken before the stages below run, as they may change the arguments.
type binding [sha256.Size]byte

// seal returns the cursor of pos for a call.
func (cs *Cursors) seal(to binding, pos position) string {
	// It fails for types without a fixed size alone. Reading is by hand, as the fields are not exported.
	b, _ := binary.Append(make([]byte, 0, posLen+macLen), binary.BigEndian, pos)
	b = append(b, cs.mac(to, b)...)
	return strictBase64.EncodeToString(b)
}

// open returns the position in a call's cursor: the start when it
// has none.
func (cs *Cursors) open(to binding, cursor string) (position, error) {
	var pos position
	if cursor == "" {
		return pos, nil
	}
	b, err := strictBase64.DecodeString(cursor)
	if err != nil || strings.ContainsAny(cursor, "\r\n") || len(b) != posLen+macLen || !hmac.Equal(cs.mac(to, b[:posLen]), b[posLen:]) {
		return pos, proxy.NewError(proxy.KindInvalidArguments,
			"cursor: not one of this tool, identity and arguments; repeat the call with exactly the arguments "+
				"that returned it, or without cursor to start again", nil)
	}
	pos.item = binary.BigEndian.Uint64(b)
	pos.chars = binary.BigEndian.Uint64(b[8:])
	pos.list = b[16] == 1
	copy(pos.digest[:], b[17:posLen])
	return pos, nil
}

func (cs *Cursors) mac(to binding, pos []byte) []byte {
	h := hmac.New(sha256.New, cs.key[:])
	h.Write(to[:])
	h.Write(pos)
	return h.Sum(nil)[:macLen]
}

// bind returns the binding of a call whose tool and arguments are known. The identity is in
// it, so that a cursor which one caller shows to another opens nothing; the cursor itself is
// no argument, or the second page could not be asked for.
func bind(c *proxy.Call) (out binding, err error) {
	h := sha256.New()
	// Maps marshal with sorted keys and numbers keep their spelling, so equal
	// arguments give equal bytes.
	args, err := json.Marshal(c.Args)
	if err != nil {
		return out, fmt.Errorf("arguments: %w", err)
	}
	var b []byte
	for _, s := range append([]string{
		string(c.Identity.Mode), c.Identity.Login, c.Identity.TokenName, c.Options.Sudo, c.Team,
		c.Tool.Name, c.Tool.Method, c.Tool.Path, string(args),
	}, c.Options.Fields...) {
		// With its length before it, so that no two lists of fields are the same bytes.
		b = binary.BigEndian.AppendUint64(b[:0], uint64(len(s)))
		h.Write(append(b, s...))
	}
	h.Sum(out[:0])
	return out, nil
}

// digestOf returns the first 8 bytes of a SHA-256: they are to notice changes of data, and who
// can make two texts of one digest could as well have written the second from the start.
func digestOf(b []byte) (d [8]byte) {
	sum := sha256.Sum256(b)
	copy(d[:], sum[:])
	return d
}
