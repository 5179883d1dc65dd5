package proxy_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/proxy"
)

func TestShortenCutsOnlyWhatGiteaSaid(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("ü", 700)
	e := &proxy.Error{Public: words + " (what to do)", Quoted: len(words)}
	e.Shorten()
	said, advice, _ := strings.Cut(e.Public, " (")
	if n := utf8.RuneCountInString(said); n != 500 || !strings.HasSuffix(said, "…") || advice != "what to do)" {
		t.Errorf("%d characters of Gitea's, advice %q", n, advice)
	}
	before := e.Public
	e.Shorten()
	if e.Public != before {
		t.Error("a second call changed it")
	}
	for _, e := range []*proxy.Error{{Public: "short", Quoted: 5}, {Public: "short", Quoted: 99}, {Public: strings.Repeat("x", 900)}} {
		want := e.Public
		if e.Shorten(); e.Public != want {
			t.Errorf("changed to %q", e.Public)
		}
	}
}
