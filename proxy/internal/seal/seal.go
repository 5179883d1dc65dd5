// Package seal keeps values secret at rest. A [Ring] of keys seals with
// AES-256-GCM under a key of the value's own and derives keys for other uses by
// HKDF-SHA256 (RFC 5869). Its first key seals and every one opens, so that keys
// can be changed while values of the old ones are still there.
//
// A sealed value is bound to the context that it was sealed for: moved to
// another place of a store it does not open. An older value put back in its own
// place does: a writer of the store can turn it back in time, but can
// neither read nor make values.
//
// The form of a sealed value is
//
//	v1.<key id, 8 hexadecimal digits>.<salt, 16 bytes><nonce, 12 bytes><ciphertext><tag, 16 bytes>
//
// with the additional data "v1|" and the context. The value's key is derived
// from the ring's and the salt, so that no count of nonces under one key ever
// grows large.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

const (
	version  = "v1."
	idSize   = 8  // hexadecimal digits
	saltSize = 16 // bytes
	keySize  = 32 // bytes

	headSize  = len(version) + idSize + 1 + saltSize
	minSealed = headSize + 12 + 16
)

// Overhead is how many bytes longer a sealed value is than the plain one.
const Overhead = minSealed

// MinKey is the length in bytes of the shortest key, MaxKey of the longest.
// MaxKeys is how many a ring may have.
const (
	MinKey  = 32
	MaxKey  = 4096
	MaxKeys = 64
)

// The errors that callers may want to distinguish.
var (
	// ErrKey is wrapped by the error of opening a value whose key is not in the
	// ring; its text names the key.
	ErrKey = errors.New("seal: the key of the value is not in the ring")
	// ErrDamaged is wrapped by the error of opening what is no sealed value, was
	// changed, or was sealed for another context.
	ErrDamaged = errors.New("seal: the value is damaged or belongs elsewhere")
)

// Ring is a list of keys, the current one first. It is immutable, safe for
// concurrent use, and cannot print itself.
type Ring struct {
	// A function, since fmt walks through everything else when a Ring is in an
	// unexported field, where it cannot call Format.
	in func() keys
}

type keys []key

type key struct {
	id     string
	master []byte // 32 bytes, stretched from what the operator gave
}

// New returns the ring of these keys, 1 to 64 of them, each 32 to 4096 bytes
// long. The first one seals, all open. Keys are stretched by HKDF, which makes
// no weak passphrase strong: take random ones.
func New(secrets ...[]byte) (*Ring, error) {
	if len(secrets) == 0 || len(secrets) > MaxKeys {
		return nil, fmt.Errorf("seal: a ring has 1 to %d keys, not %d", MaxKeys, len(secrets))
	}
	var in keys
	for i, secret := range secrets {
		if len(secret) < MinKey || len(secret) > MaxKey {
			return nil, fmt.Errorf("seal: key %d is %d bytes long; keys have %d to %d",
				i+1, len(secret), MinKey, MaxKey)
		}
		k, err := newKey(secret)
		if err != nil {
			return nil, err
		}
		if in.find(k.id) != nil {
			return nil, fmt.Errorf("seal: key %d is there twice; remove one", i+1)
		}
		in = append(in, k)
	}
	return &Ring{func() keys { return in }}, nil
}

func newKey(secret []byte) (key, error) {
	master, err := hkdf.Key(sha256.New, secret, nil, "aegis v1 master key", keySize)
	if err != nil {
		return key{}, fmt.Errorf("seal: %w", err)
	}
	id, err := hkdf.Expand(sha256.New, master, "aegis v1 key id", idSize/2)
	if err != nil {
		return key{}, fmt.Errorf("seal: %w", err)
	}
	return key{hex.EncodeToString(id), master}, nil
}

func (k keys) find(id string) *key {
	i := slices.IndexFunc(k, func(one key) bool { return one.id == id })
	if i < 0 {
		return nil
	}
	return &k[i]
}

// KeyIDs returns the ids of the ring's keys, the current one first. They are no
// secrets.
func (r *Ring) KeyIDs() []string {
	ids := make([]string, len(r.in()))
	for i, k := range r.in() {
		ids[i] = k.id
	}
	return ids
}

// Has reports whether the ring has the key with this id.
func (r *Ring) Has(id string) bool { return r.in().find(id) != nil }

// Seal returns plain sealed under the current key, for this context alone.
func (r *Ring) Seal(context string, plain []byte) ([]byte, error) {
	k := &r.in()[0]
	out := make([]byte, headSize, len(plain)+Overhead)
	n := copy(out, version+k.id+".")
	_, _ = rand.Read(out[n:]) // never fails: it ends the process instead
	aead, err := k.aead(out[n:headSize])
	if err != nil {
		return nil, err
	}
	return aead.Seal(out, nil, plain, []byte("v1|"+context)), nil
}

// Open returns what was sealed for this context. stale says that a key other
// than the current one sealed it. The error wraps [ErrKey] when that key is not
// in the ring, otherwise [ErrDamaged]; neither says anything of the content.
func (r *Ring) Open(context string, sealed []byte) (plain []byte, stale bool, err error) {
	id, err := KeyID(sealed)
	if err != nil {
		return nil, false, err
	}
	k := r.in().find(id)
	if k == nil {
		return nil, false, fmt.Errorf("%w: it was sealed with key %s; put that key back behind the current one",
			ErrKey, id)
	}
	aead, err := k.aead(sealed[headSize-saltSize : headSize])
	if err != nil {
		return nil, false, err
	}
	plain, err = aead.Open([]byte{}, nil, sealed[headSize:], []byte("v1|"+context))
	if err != nil { // says nothing more
		return nil, false, ErrDamaged
	}
	return plain, k != &r.in()[0], nil
}

// aead returns the cipher of the value with this salt.
func (k *key) aead(salt []byte) (cipher.AEAD, error) {
	own, err := hkdf.Key(sha256.New, k.master, salt, "aegis v1 seal", keySize)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// KeyID returns the id of the key that a value says it was sealed with. Nothing
// is proved by it until the value has been opened.
func KeyID(sealed []byte) (string, error) {
	head := len(version)
	if len(sealed) < minSealed || !bytes.HasPrefix(sealed, []byte(version)) || sealed[head+idSize] != '.' {
		return "", ErrDamaged
	}
	id := sealed[head : head+idSize]
	if len(bytes.Trim(id, "0123456789abcdef")) > 0 {
		return "", ErrDamaged
	}
	return string(id), nil
}

// Derive returns a key of 32 bytes for each key of the ring, the current one
// first. Other labels give keys that say nothing of each other. What is made
// with the first one is checked with all, so that it outlives a change of keys.
func (r *Ring) Derive(label string) [][]byte {
	out := make([][]byte, len(r.in()))
	for i, k := range r.in() {
		// Expand fails only for outputs longer than 255 hashes.
		out[i], _ = hkdf.Expand(sha256.New, k.master, "aegis v1 derive|"+label, keySize)
	}
	return out
}
