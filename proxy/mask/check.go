package mask

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"math"
)

// validators are the checks that a rule may name; each judges the span that
// would be replaced.
var validators = map[string]func([]byte) bool{
	"luhn":    luhn,
	"iso7064": iso7064,
	"crc32":   githubCRC,
}

// luhn checks the check digit of ISO/IEC 7812-1, as on payment cards. Blanks
// and hyphens between digits are ignored.
func luhn(b []byte) bool {
	sum, n := 0, 0
	// From the right: the check digit is the last one, and every second digit is doubled.
	for i := len(b) - 1; i >= 0; i-- {
		c := b[i]
		if c == ' ' || c == '-' {
			continue
		}
		if c < '0' || c > '9' {
			return false
		}
		d := int(c - '0')
		if n&1 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
		n++
	}
	return n >= 2 && sum%10 == 0
}

// iso7064 checks the two check digits of MOD 97-10 (ISO/IEC 7064). In an IBAN
// they are behind the country's two letters (ISO 13616), elsewhere at the
// end. Blanks and hyphens are ignored.
func iso7064(b []byte) bool {
	var room [64]byte
	v := room[:0]
	for _, c := range b {
		switch {
		case c == ' ' || c == '-':
		case !isAlnum[c] || len(v) == cap(v):
			return false
		default:
			v = append(v, c)
		}
	}
	if len(v) < 4 {
		return false
	}
	if iban := v[0] > '9' && v[1] > '9' && v[2] <= '9' && v[3] <= '9'; iban {
		return mod97(v[4:], v[:4]) == 1
	}
	return mod97(v) == 1
}

// mod97 returns the remainder of the number that the parts, one after another, are
// when A is 10 and Z 35. It goes digit by digit: the number has up to 128 digits.
func mod97(parts ...[]byte) int {
	m := 0
	for _, p := range parts {
		for _, c := range p {
			if c <= '9' {
				m = (m*10 + int(c-'0')) % 97
				continue
			}
			m = (m*100 + int(lower(c)-'a') + 10) % 97
		}
	}
	return m
}

// base62 has the digits in the order of GitHub, which is not that of base64.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// githubCRC checks the checksum of a GitHub (or npm) token: behind the last
// underscore are 30 random characters and the CRC-32 (IEEE) of them in base
// 62, six digits.
func githubCRC(b []byte) bool {
	body := b[bytes.LastIndexByte(b, '_')+1:]
	if len(body) != 36 {
		return false
	}
	// The checksum has its least significant digit last.
	sum := crc32.ChecksumIEEE(body[:30])
	for i := 35; i >= 30; i-- {
		if body[i] != base62[sum%62] {
			return false
		}
		sum /= 62
	}
	return true
}

// entropy returns the Shannon entropy of b in bits per byte. Of more than
// 1024 bytes it takes the first ones.
func entropy(b []byte) float64 {
	b = b[:min(len(b), len(nLogN)-1)]
	if len(b) == 0 {
		return 0
	}
	// H = log n - (sum of c log c)/n over the counts c.
	// Counted in 16 bits: there are 1024 bytes at most.
	var count [256]uint16
	sum := 0.0
	for _, c := range b {
		k := count[c]
		sum += nLogN[k+1] - nLogN[k]
		count[c] = k + 1
	}
	n := float64(len(b))
	return (nLogN[len(b)] - sum) / n
}

// nLogN holds n log2 n.
var nLogN = func() *[1025]float64 {
	t := new([1025]float64)
	for n := range t[1:] {
		t[n+1] = float64(n+1) * math.Log2(float64(n+1))
	}
	return t
}()

// userPass reports whether b is the base64 of a name and a password with a
// colon between, as in basic authentication (RFC 7617), and not a manual's.
func userPass(b []byte) bool {
	var room [192]byte
	// Names and passwords of basic authentication are short; the room for them stays on the stack.
	if len(b) > 256 {
		return false
	}
	n, err := base64.StdEncoding.Decode(room[:], b)
	if err != nil {
		n, err = base64.RawStdEncoding.Decode(room[:], b)
	}
	if err != nil {
		return false
	}
	for _, c := range room[:n] {
		// Random text that happens to be base64 has control characters in it.
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	name, pass, colon := bytes.Cut(room[:n], []byte(":"))
	return colon && len(pass) > 0 && !isDocumentation(name, pass)
}

// isForgeToken reports whether v has the shape of a token of Gitea or Forgejo:
// 20 random bytes in hexadecimal. A commit's name looks the same, so the rule goes by what a
// token is behind.
func isForgeToken(v []byte) bool {
	return len(v) == 40 && run(v, isLowerHex, unbounded) == 40 && entropy(v) >= shapeEntropy
}

var isLowerHex = newClass("0-9a-f")
