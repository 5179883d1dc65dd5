package proxy_test

import (
	"testing"

	"aegis/proxy"
)

func TestClipAndShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text           string
		n              int
		bytes, letters string
	}{
		{"", 3, "", ""}, {"abc", 3, "abc", "abc"}, {"abcd", 3, "abc…", "ab…"}, {"äöü", 3, "ä…", "äöü"},
		{"äöüß", 3, "ä…", "äö…"}, {"äö", 1, "…", "…"}, {"日本", 6, "日本", "日本"}, {"日本語", 6, "日本…", "日本語"},
	} {
		if got := proxy.Clip(c.text, c.n); got != c.bytes {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.text, c.n, got, c.bytes)
		}
		if got := proxy.Shorten(c.text, c.n); got != c.letters {
			t.Errorf("Shorten(%q, %d) = %q, want %q", c.text, c.n, got, c.letters)
		}
	}
}
