package mask_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy/mask"
)

// hostile are units that, repeated, keep the verifiers busy: beginnings that
// never become a match, runs that go on for ever, escapes and nesting.
var hostile = map[string]string{
	"glpat":           "glpat-",
	"jwt":             "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ.",
	"jwt-dashes":      "-eyJa",
	"assignments":     "token=token:",
	"at-signs":        "aaa@",
	"addresses":       "https://a:b@c:d@",
	"sk-ant":          "sk-ant-a",
	"escaped-quotes":  `"token":"`,
	"keys":            "-----BEGIN PRIVATE KEY-----AAAAAAAAAAAAAAAAAAAA",
	"key-lines":       "-----BEGIN RSA PRIVATE KEY-----\nA: b\n",
	"backslashes":     `\`,
	"backslash-token": `\\\\ghp_`,
	"percent":         "%41",
	"spaces":          "secret                        ",
	"quotes":          `"`,
	"bearer":          "bearer bearer",
	"base64":          "Z2hwX2docF9naHBf",
	"no-base64":       "Z2hwX1!",
	"minified":        `function(e,t){return e.token||t.secret["a"]};`,
}

func adversary(unit string, size int) []byte {
	s := strings.Repeat(unit, size/len(unit)+1)[:size]
	q, err := json.Marshal(s)
	if err != nil {
		return nil // a string always marshals
	}
	return q
}

// BenchmarkAdversarial reports the speed on 1 MB of each, and how much longer
// four times as much takes: about 4 is linear, 16 quadratic.
func BenchmarkAdversarial(b *testing.B) {
	e, err := mask.New(config.Masking{Builtin: true, Mode: "mask"}, []string{"a-configured-secret-value"})
	if err != nil {
		b.Fatal(err)
	}
	docs := map[string]func(size int) []byte{
		"brackets":       func(n int) []byte { return []byte(strings.Repeat("[", n)) },
		"nul":            func(n int) []byte { return make([]byte, n) },
		"surrogates":     func(n int) []byte { return []byte(`"` + strings.Repeat(`\ud800`, n/6) + `"`) },
		"hidden-letters": func(n int) []byte { return []byte(`"` + strings.Repeat(`\u0074oken\u003d`, n/16) + `"`) },
		"hidden-strings": func(n int) []byte { return []byte(`[` + strings.Repeat(`"\u0074","\/",`, n/14) + `""]`) },
		"contents":       func(n int) []byte { return manyContents(n / 63) },
		"footers":        func(n int) []byte { return []byte(`[` + strings.Repeat(`{"footer":"AKIAIOSFODNN"},`, n/26) + `1]`) },
		"base64-strings": func(n int) []byte {
			return []byte(`[` + strings.Repeat(`"IGdocF9hYmNkZWZnaGlqa2xtbm9w",`, n/31) + `1]`)
		},
		"slashes": func(n int) []byte { return []byte(`"` + strings.Repeat(`\/`, n/2) + `"`) },
	}
	for name, unit := range hostile {
		docs[name] = func(n int) []byte { return adversary(unit, n) }
	}
	for name, make := range docs {
		b.Run(name, func(b *testing.B) {
			one, four := make(1<<20), make(4<<20)
			run := func(d []byte) time.Duration {
				s := mask.Interleave(1, d, []mask.Runner{{Run: func(d []byte) {
					if _, _, err := e.JSON(context.Background(), nil, d, nil, mask.Options{}); err != nil {
						b.Fatal(err)
					}
				}}})
				return time.Duration(float64(len(d)) / s[0][0] * 1e9)
			}
			run(one)
			var t1, t4 time.Duration
			for range b.N {
				t1 += run(one)
				t4 += run(four)
			}
			b.ReportMetric(float64(b.N)*float64(len(one))/t1.Seconds()/1e6, "MB/s")
			b.ReportMetric(float64(t4)/float64(t1), "time(4MB)/time(1MB)")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSmall measures documents of 1 kB, the caller's token included.
func BenchmarkSmall(b *testing.B) {
	corpora, err := mask.Corpora(1 << 16)
	if err != nil {
		b.Fatal(err)
	}
	e, err := mask.New(config.Masking{Builtin: true, Mode: "mask"}, []string{"a-configured-secret-value"})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range corpora {
		d, err := json.Marshal(string(c.JSON[1000:2000]))
		if err != nil {
			b.Fatal(err)
		}
		r := e.Call("d9aabbccdd6f1ed002ab5595859014ebf0951522")
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(d)))
			for range b.N {
				if _, _, err := e.JSON(context.Background(), nil, d, r, mask.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("redactor", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			e.Call("d9aabbccdd6f1ed002ab5595859014ebf0951522")
		}
	})
}

// BenchmarkContents measures files in base64: text without a secret, and images.
func BenchmarkContents(b *testing.B) {
	corpora, err := mask.Corpora(4 << 20)
	if err != nil {
		b.Fatal(err)
	}
	e, err := mask.New(config.Masking{Builtin: true, Mode: "mask"}, []string{"a-configured-secret-value"})
	if err != nil {
		b.Fatal(err)
	}
	for name, file := range map[string][]byte{"code": corpora[1].JSON, "logs": corpora[2].JSON,
		"images": junk(1, 4<<20)} {
		d := []byte(`{"encoding":"base64","content":"` + encode(string(file)) + `"}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(d)))
			for b.Loop() {
				if _, hits, err := e.JSON(context.Background(), nil, d, nil, mask.Options{}); err != nil ||
					hits != nil {
					b.Fatal(err, hits)
				}
			}
		})
	}
}
