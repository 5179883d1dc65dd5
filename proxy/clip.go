package proxy

import "unicode/utf8"

// Clip returns s cut to at most n bytes, between two characters, with "…" behind them when
// some are missing.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Shorten returns s cut to at most n characters, at least one, the last of them "…" when some
// are missing.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	end := 0
	for range n - 1 {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end] + "…"
}
