package mask_test

import (
	"encoding/json"
	"hash/crc32"
	"os"
	"regexp"
	"strings"
	"testing"

	"aegis/proxy/mask"
)

// TestSequencesAreTheirExpressions holds the compiled sequences of every
// built-in rule against RE2 on matches, broken matches and noise.
func TestSequencesAreTheirExpressions(t *testing.T) {
	t.Parallel()
	r := newRand(21)
	compared, each := 0, 100
	if os.Getenv("AEGIS_TEST_WHOLE") == "1" {
		each = 300
	}
	for _, s := range mask.RuleSpecs() {
		for _, expr := range append(s.Patterns, s.Values...) {
			re := regexp.MustCompile("^(?:" + expr + ")")
			re.Longest()
			for range each {
				b := []byte(generate(t, r, expr) + random(r, r.IntN(6), alnum+".-_/=+ "))
				for range r.IntN(3) {
					b[r.IntN(len(b))] = (alnum + ".-_ ")[r.IntN(len(alnum)+4)]
				}
				want := -1
				if loc := re.FindIndex(b); loc != nil {
					want = loc[1]
				}
				got, err := mask.Longest(expr, string(b))
				if err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Fatalf("%s on %q: %d, RE2 says %d", expr, b, got, want)
				}
				compared++
			}
		}
	}
	t.Logf("%d texts compared", compared)
}

func TestSequencesRefuseWhatTheyCannotDo(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{`[a-z]*abc`, `(?:ab){2,3}`, `a.b`, `[^a]b`, `a"b|[ -~]{3}`, `\bab`, `^a`, `é`,
		`[a-z]{2,5}[a-f]{3}`, `(`} {
		if n, err := mask.Longest(expr, "abcabc"); err == nil {
			t.Errorf("%s was accepted and matches %d bytes", expr, n)
		}
	}
}

func TestValidators(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{"4111111111111111": true, "4111 1111-1111 1111": true,
		"4111111111111112": false, "": false, "0": false, "41a1": false} {
		if got := mask.Luhn([]byte(in)); got != want {
			t.Errorf("luhn(%q) = %v", in, got)
		}
	}
	for in, want := range map[string]bool{"GB82 WEST 1234 5698 7654 32": true, "DE89370400440532013000": true, "DE88370400440532013000": false, "": false, "!!": false, "794": false, "123482": true, "123483": false, strings.Repeat("1", 80): false} {
		if got := mask.ISO7064([]byte(in)); got != want {
			t.Errorf("iso7064(%q) = %v", in, got)
		}
	}
	body := random(newRand(1), 30, alnum)
	good := "gh" + "p_" + body + base62(crc32.ChecksumIEEE([]byte(body)))
	if !mask.CRC32([]byte(good)) || mask.CRC32([]byte(good[:39]+"!")) || mask.CRC32([]byte("short")) ||
		mask.CRC32([]byte("ghp_x"+good[5:])) {
		t.Error("crc32 is wrong")
	}
	if h := mask.Entropy([]byte("abababab")); h != 1 {
		t.Errorf("entropy %v, want 1", h)
	}
}

func base62(n uint32) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	b := []byte("000000")
	for i := 5; i >= 0; i-- {
		b[i] = digits[n%62]
		n /= 62
	}
	return string(b)
}

func TestUnescape(t *testing.T) {
	t.Parallel()
	r := newRand(31)
	for range 3000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString([]string{"a", "é", "\"", "\\", "/", "\n", "😀", "\u2028", "\x01", "日"}[r.IntN(10)])
		}
		q := escaping(r, b.String(), 1+r.IntN(3))
		var want string
		if err := json.Unmarshal([]byte(q), &want); err != nil {
			t.Fatal(err)
		}
		if got := mask.Unescape(q[1 : len(q)-1]); got != want || got != b.String() {
			t.Fatalf("%s: %q, want %q", q, got, want)
		}
	}
	for in, want := range map[string]string{`\ud800x`: "\ufffdx", `\ud800\u0041`: "\ufffdA", `\udc00`: "\ufffd",
		`\`: `\`, `\q`: "q", `\u12`: "u12", `\ud83d\ude0`: "\ufffdude0"} {
		if got := mask.Unescape(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
