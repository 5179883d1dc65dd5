package jsonscan_test

import (
	"strconv"
	"testing"

	"aegis/proxy/internal/jsonscan"
)

func TestHex(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		want, err := strconv.ParseUint(string([]byte{byte(c)}), 16, 8)
		if got := jsonscan.Hex(byte(c)); err != nil && got != -1 || err == nil && got != int(want) {
			t.Errorf("%#x: %d, want %d, %v", c, got, want, err)
		}
	}
	for text, want := range map[string]rune{"00e9": 0xe9, "D83dx": 0xd83d, "": -1, "00e": -1, "00g9": -1, "+0e9": -1, "0_e9": -1} {
		if got, ok := jsonscan.Hex4([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %x, %v", text, got, ok)
		}
	}
}
