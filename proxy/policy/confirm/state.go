package confirm

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aegis/proxy"
)

// state is what a question remembers of its call.
type state struct {
	id      string
	expires time.Time
	digest  []byte
	retype  string
}

const (
	idSize     = 16
	stateFixed = 1 + idSize + 8 + sha256.Size // version, id, expiry, digest
	maxState   = 1024
)

// errState is one error for all that can be wrong with a state: which check failed
// would help somebody who forges one.
var errState = errors.New("confirm: malformed or forged state")

// newState returns the sealed state of a question.
func (c *Confirm) newState(digest []byte, retype string) string {
	b := make([]byte, 1+idSize, stateFixed+len(retype)+sha256.Size)
	// The version of the form, so that a later one is not taken for this.
	b[0] = 1
	_, _ = rand.Read(b[1:]) // never fails: it ends the process instead
	b = binary.BigEndian.AppendUint64(b, uint64(c.o.Now().Add(c.rules.TTL.Std()).Unix()))
	b = append(append(b, digest...), retype...)
	return base64.RawURLEncoding.EncodeToString(append(b, c.mac(b)...))
}

// openState reads what a client brought back.
func (c *Confirm) openState(text string) (*state, error) {
	if len(text) > maxState {
		return nil, errState
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < stateFixed+sha256.Size || b[0] != 1 {
		return nil, errState
	}
	body, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	// Before anything is read: until here the bytes are the client's.
	if !hmac.Equal(mac, c.mac(body)) {
		return nil, errState
	}
	return &state{
		id:      hex.EncodeToString(body[1 : 1+idSize]),
		expires: time.Unix(int64(binary.BigEndian.Uint64(body[1+idSize:])), 0),
		digest:  body[1+idSize+8 : stateFixed],
		retype:  string(body[stateFixed:]),
	}, nil
}

// mac authenticates a state. The label keeps the key's other uses apart from this one.
func (c *Confirm) mac(b []byte) []byte {
	m := hmac.New(sha256.New, c.o.Key)
	m.Write([]byte("aegis confirmation v1\x00"))
	m.Write(b)
	return m.Sum(nil)
}

// boundTo reports whether the question was about the call with this digest.
func (s *state) boundTo(digest []byte) bool { return subtle.ConstantTimeCompare(s.digest, digest) == 1 }

// digestOf binds to who calls, where, what and with which arguments. Arguments
// are validated values, and encoding/json sorts the names of objects.
func digestOf(c *proxy.Call) []byte {
	args, err := json.Marshal(c.Args)
	if err != nil { // validated arguments always marshal
		args = []byte(rand.Text()) // equal to no other call
	}
	h := sha256.New()
	for _, part := range []string{
		string(c.Identity.Mode), c.Identity.TokenName, fmt.Sprint(c.Identity.UserID), strings.ToLower(c.Identity.Login),
		c.Team, c.Tool.Name, c.Tool.Method, c.Tool.Path, c.Options.Sudo, string(args),
	} {
		// Lengths before the parts, so that no two calls can give the same bytes.
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes every write
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}
