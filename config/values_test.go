package config_test

import (
	"strings"
	"testing"
	"time"

	"aegis/config"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	keys := []string{"timeout", "max_items", "max_chars", "url", "read_only", "listen", "rules", "name"}
	for word, want := range map[string]string{
		"timout": "timeout", "time_out": "timeout", "TimeOut": "timeout", "maxItems": "max_items", "max-items": "max_items", "max_itmes": "max_items",
		"readonly": "read_only", "rule": "rules", "nam": "name", "uri": "url", "x": "", "": "", "max": "", "colour": "", "listn": "listen",
	} {
		if got := config.Nearest(word, keys); got != want {
			t.Errorf("%q means %q, want %q", word, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"plain":                 `"plain"`,
		"line\nbreak\x1b[31m":   "\"line\uFFFDbreak\uFFFD[31m\"",
		"bad \xff byte":         "\"bad \uFFFD byte\"",
		strings.Repeat("ä", 41): `"` + strings.Repeat("ä", 39) + `…"`,
	} {
		if got := config.Quote(s); got != want {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestByteSizeAndDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.ByteSize{"0": 0, "1": 1, "1023": 1023, "1KiB": 1 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30, "1025KiB": 1025 << 10} {
		var b config.ByteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q is %d, %v; want %d", text, int64(b), err, int64(want))
		}
		if b.String() != text {
			t.Errorf("%q prints as %q", text, b)
		}
	}
	for _, text := range []string{"", "-1", "+1", "KiB", "1 KiB", "1kb", "1.5MiB", "0x10", "99999999999999999999", "9999999999999GiB"} {
		var b config.ByteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %d", text, int64(b))
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", time.Second: "1s", 5 * time.Minute: "5m", time.Hour: "1h", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 1500 * time.Millisecond: "1.5s"} {
		if got := config.Duration(d).String(); got != want {
			t.Errorf("%v prints as %q, want %q", d, got, want)
		}
		var back config.Duration
		if err := back.UnmarshalText([]byte(want)); err != nil || back.Std() != d {
			t.Errorf("%q reads as %v, %v", want, back, err)
		}
	}
}
