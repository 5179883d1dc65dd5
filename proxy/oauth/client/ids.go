package client

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"aegis/config"
)

// A registered client's id is
//
//	aegis_dc1.<key id>.<base64url(packed || mac)>
//
// where packed holds everything that was registered and mac is the first 16
// bytes of HMAC-SHA256 over all that comes before it. Its characters need no
// escaping in a form, a URL or Basic authentication. The secret of a
// confidential client is an HMAC over the id under a key of its own. The packed
// data has random bytes: two clients that register the same have different ids,
// and so different secrets.
const (
	idPrefix     = "aegis_dc1."
	secretPrefix = "aegis_cs_"
	macSize      = 16
	nonceSize    = 8
	// maxPacked bounds what an id holds, and so the id's length to 2,800.
	maxPacked = 2 << 10
	maxID     = len(idPrefix) + 9 + (maxPacked+macSize+2)/3*4
	// maxRedirects bounds the redirect URIs of a registered client.
	maxRedirects = 10
)

// The labels that keys of the ring are derived by.
const (
	labelID     = "oauth client id"
	labelSecret = "oauth client secret"
)

var errForged = errors.New("the id was not made here, or by a key that is gone")

// issuer makes and reads ids. The first key makes, all read.
type issuer struct{ keys []issuerKey }

// issuerKey is what one key of the ring gives.
type issuerKey struct {
	name       string // 8 characters that say which key it is; no secret
	id, secret []byte
}

// newIssuer returns the issuer of the ring that derive belongs to.
func newIssuer(derive func(label string) [][]byte) (*issuer, error) {
	ids, secrets := derive(labelID), derive(labelSecret)
	if len(ids) == 0 || len(ids) != len(secrets) {
		return nil, errors.New("client: the key ring has no keys, or not one for each label")
	}
	s := &issuer{}
	for i := range ids {
		if len(ids[i]) < sha256.Size || len(secrets[i]) < sha256.Size {
			return nil, errors.New("client: the key ring derives keys that are shorter than 32 bytes")
		}
		name := base64.RawURLEncoding.EncodeToString(mac(ids[i], "name of the key")[:6])
		s.keys = append(s.keys, issuerKey{name: name, id: ids[i], secret: secrets[i]})
	}
	return s, nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text)) // a hash never fails to write
	return h.Sum(nil)
}

// registration is what an id holds.
type registration struct {
	method string
	issued time.Time // whole seconds
	name   string
	uris   []string
}

var errTooLarge = errors.New("name and redirect URIs are longer than 2 KB together")

// sign makes the id that holds packed.
func (s *issuer) sign(packed []byte) string {
	k := s.keys[0]
	sum := mac(k.id, idPrefix+k.name+"."+string(packed))
	return idPrefix + k.name + "." + base64.RawURLEncoding.EncodeToString(append(packed, sum[:macSize]...))
}

// open returns what id holds and the secret of its client. Its error is
// errForged.
func (s *issuer) open(id string) (reg registration, secret config.Secret, err error) {
	name, text, _ := strings.Cut(strings.TrimPrefix(id, idPrefix), ".")
	i := slices.IndexFunc(s.keys, func(k issuerKey) bool { return k.name == name })
	if i < 0 || len(id) > maxID || !strings.HasPrefix(id, idPrefix) || strings.ContainsAny(text, "\r\n") {
		return reg, secret, errForged
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) < macSize {
		return reg, secret, errForged
	}
	k, packed, sum := s.keys[i], data[:len(data)-macSize], data[len(data)-macSize:]
	if subtle.ConstantTimeCompare(mac(k.id, idPrefix+name+"."+string(packed))[:macSize], sum) != 1 {
		return reg, secret, errForged
	}
	if reg, err = unpack(packed); err != nil {
		return reg, secret, err
	}
	return reg, k.secretOf(id, reg.method), nil
}

// secretOf returns the secret of a client; none for public ones.
func (k issuerKey) secretOf(id, method string) config.Secret {
	if method == AuthNone {
		return config.Secret{}
	}
	return config.NewSecret(secretPrefix + base64.RawURLEncoding.EncodeToString(mac(k.secret, id)))
}

// methods are the ways to authenticate, at the numbers that ids hold.
var methods = []string{AuthNone, AuthBasic, AuthPost}

// starts are beginnings that many redirect URIs share, at the numbers that ids
// hold; the empty one comes first. They only ever grow, and keep ids short.
var starts = []string{
	"", "https://", "http://localhost:", "http://127.0.0.1:", "http://localhost/", "http://127.0.0.1/",
	"http://[::1]:", "cursor://",
}

// pack writes: method, time of issue, nonce, name, count of URIs, and each URI
// as the number of its start and the rest. Texts have their length before them.
func (r registration) pack() ([]byte, error) {
	b := []byte{byte(max(slices.Index(methods, r.method), 0))}
	b = binary.BigEndian.AppendUint32(b, uint32(r.issued.Unix())) // good until 2106
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // it never fails; it ends the process instead
	b = append(b, nonce[:]...)
	b = appendText(b, r.name)
	b = append(b, byte(len(r.uris)))
	for _, uri := range r.uris {
		best := 0
		for i, s := range starts {
			if strings.HasPrefix(uri, s) && len(s) > len(starts[best]) {
				best = i
			}
		}
		b = appendText(append(b, byte(best)), uri[len(starts[best]):])
	}
	if len(b) > maxPacked || len(r.uris) > maxRedirects {
		return nil, errTooLarge
	}
	return b, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// unpack reads what pack wrote. Data with a good mac is still read with
// care: a later version may have written it.
func unpack(b []byte) (registration, error) {
	if len(b) < 1+4+nonceSize || int(b[0]) >= len(methods) {
		return registration{}, errForged
	}
	r := registration{method: methods[b[0]], issued: time.Unix(int64(binary.BigEndian.Uint32(b[1:])), 0).UTC()}
	b = b[1+4+nonceSize:]
	var ok bool
	if r.name, b, ok = takeText(b); !ok || len(b) == 0 || b[0] > maxRedirects {
		return registration{}, errForged
	}
	count := int(b[0])
	b = b[1:]
	for range count {
		if len(b) == 0 || int(b[0]) >= len(starts) {
			return registration{}, errForged
		}
		start := starts[b[0]]
		var rest string
		if rest, b, ok = takeText(b[1:]); !ok {
			return registration{}, errForged
		}
		r.uris = append(r.uris, start+rest)
	}
	if len(b) > 0 {
		return registration{}, errForged
	}
	return r, nil
}

func takeText(b []byte) (s string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	b = b[size:]
	return string(b[:n]), b[n:], true
}
