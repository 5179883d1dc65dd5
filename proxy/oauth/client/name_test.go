package client_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/proxy/oauth/client"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Claude Code":                         "Claude Code",
		"  Claude \t\r\n  Code \u2028x\u0085": "Claude Code x",
		"Bücher 書籍":                           "Bücher 書籍",
		"e\u0301te\u0301":                     "e\u0301te\u0301",
		"evil\u202egnp.exe":                   "evilgnp.exe",
		"a\u200bb\u200dc\u2060d\ufeff":        "abcd",
		"\u2066x\u2069\u200e\u200f\u061c":     "x",
		"soft\u00adhyphen":                    "softhyphen",
		"\x00\x1b[31mred\x7f\u009b":           "[31mred",
		"tag\U000e0041\U000e007f":             "tag",
		"pri\ue000vate\U000f0000\U0010fffd":   "private",
		"blank\u3164\u115f\u1160\uffa0\u2800": "blank",
		"join\u034fer\ufe0f\U000e0100":        "joiner",
		"bad\xff\xfeutf8":                     "badutf8",
		"z" + strings.Repeat("\u0300", 50):    "z\u0300\u0300",
		"\u0300x":                             "x",
		"<script>alert(1)</script>":           "<script>alert(1)</script>", // the page escapes it
		"🤖 bot":                               "🤖 bot",
		"":                                    "",
		" \t\n":                               "",
		"\u202e\u200b":                        "",
		"!!! ---":                             "",
		strings.Repeat("x", 5000):             strings.Repeat("x", 60),
		strings.Repeat("ü", 61):               strings.Repeat("ü", 60),
		strings.Repeat("x", 59) + " y":        strings.Repeat("x", 59),
		strings.Repeat("x", 58) + " y":        strings.Repeat("x", 58) + " y",
	} {
		got := client.CleanName(in)
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if again := client.CleanName(got); again != got {
			t.Errorf("%q: cleaned twice is %q", got, again)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("a\u202eb \u0300\u0301\u0302")
	f.Add(strings.Repeat("x ", 60))
	f.Fuzz(func(t *testing.T, in string) {
		got := client.CleanName(in)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 60 || strings.TrimSpace(got) != got || strings.ContainsAny(got, "\r\n\t\u202e\u200b\u2028") {
			t.Errorf("%q became %q", in, got)
		}
		if again := client.CleanName(got); again != got {
			t.Errorf("%q cleaned twice is %q", got, again)
		}
	})
}
