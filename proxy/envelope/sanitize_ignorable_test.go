package envelope_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"aegis/proxy/envelope"
)

// TestNothingThatUnicodeDrawsAsNothingPasses: every code point with the property
// Default_Ignorable_Code_Point (Unicode 16), but the soft hyphen, between letters
// that have no use for it, as it is and as a JSON escape.
func TestNothingThatUnicodeDrawsAsNothingPasses(t *testing.T) {
	t.Parallel()
	for _, span := range [][2]rune{
		{0x034F, 0x034F}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200D}, {0x202A, 0x202E}, {0x2060, 0x206F},
		{0x3164, 0x3164}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
	} {
		for r := span[0]; r <= span[1]; r++ {
			in := "a" + strings.Repeat(string(r), 2) + "b"
			if out, n := envelope.SanitizeText([]byte(in), false); string(out) != "ab" || n != 1 {
				t.Fatalf("%U in text: %q, %d", r, out, n)
			}
			doc, err := json.Marshal(map[string]string{"body": in})
			if err != nil {
				t.Fatal(err)
			}
			escaped := strings.ReplaceAll(string(doc), string(r), escape(r))
			for _, d := range []string{string(doc), escaped} {
				if out, n := envelope.SanitizeJSON([]byte(d), false); string(out) != `{"body":"ab"}` || n != 1 {
					t.Fatalf("%U in %s: %q, %d", r, d, out, n)
				}
			}
		}
	}
}

// escape spells a character as JSON escapes.
func escape(r rune) string {
	const hex = "0123456789abcdef"
	units := []rune{r}
	if r > 0xFFFF {
		a, b := utf16.EncodeRune(r)
		units = []rune{a, b}
	}
	var out strings.Builder
	for _, u := range units {
		out.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			out.WriteByte(hex[u>>shift&15])
		}
	}
	return out.String()
}

func TestMongolianVariantsStay(t *testing.T) {
	t.Parallel()
	const word = "\u182D\u180B\u1820 \u182D\u180C"
	if out, n := envelope.SanitizeText([]byte(word), false); string(out) != word || n != 0 {
		t.Errorf("%q", out)
	}
}
