package mask_test

import (
	"context"
	"encoding/binary"
	"math/bits"
	"regexp"
	"testing"

	"aegis/config"
	"aegis/proxy/mask"
)

// expressions returns the built-in rules as regular expressions for the
// standard library, without the guards.
func expressions() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, s := range mask.RuleSpecs() {
		for _, p := range s.Patterns {
			all = append(all, regexp.MustCompile(p))
		}
		for _, k := range s.Keywords {
			for _, v := range s.Values {
				all = append(all,
					regexp.MustCompile(`(?i:`+regexp.QuoteMeta(k)+`)[\w.-]{0,24}["' ]{0,3}[:=>]{1,3}["' ]{0,3}(`+v+`)`))
			}
		}
	}
	return all
}

// The references are loops over eight bytes at a time (SIMD within a
// register). They count the blocks that hold a certain byte.
const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// swar looks for one byte that text does not have.
func swar(b []byte) int {
	const needle = 1 * low
	n := 0
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b) ^ needle
		if (x-low)&^x&high != 0 {
			n++
		}
		b = b[8:]
	}
	return n
}

// swar2 looks for the two bytes that every reader of JSON must find: the quote
// and the backslash.
func swar2(b []byte) int {
	const quote, backslash = '"' * low, '\\' * low
	n := 0
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		x, y := w^quote, w^backslash
		n += bits.OnesCount64(((x-low)&^x | (y-low)&^y) & high)
		b = b[8:]
	}
	return n
}

// BenchmarkRatios measures the masking core and the references in the same
// rounds and reports the core's speed as a part or a multiple of theirs. Run
// it with -benchtime 15x for 15 rounds and GOMAXPROCS=1. The standard library
// is given the first 32 kB only, and needs most of the time all the same.
func BenchmarkRatios(b *testing.B) {
	corpora, err := mask.Corpora(16 << 20)
	if err != nil {
		b.Fatal(err)
	}
	e, err := mask.New(config.Masking{Builtin: true, Mode: "mask"},
		[]string{"6f1ed002ab5595859014ebf0951522d9aabbccdd", "another-configured-secret-value"})
	if err != nil {
		b.Fatal(err)
	}
	exprs := expressions()
	for _, c := range corpora {
		b.Run(c.Name, func(b *testing.B) {
			var buf []byte
			sink := 0
			r := e.Call("d9aabbccdd6f1ed002ab5595859014ebf0951522")
			engines := []mask.Runner{
				{Run: func(d []byte) { sink += swar(d) }},
				{Run: func(d []byte) { sink += swar2(d) }},
				{Run: func(d []byte) {
					out, hits, err := e.JSON(context.Background(), buf, d, r, mask.Options{})
					if err != nil {
						b.Fatal(err)
					}
					if hits != nil {
						buf = out
					}
					sink += len(out)
				}},
				{Limit: 32 << 10, Run: func(d []byte) {
					for _, re := range exprs {
						sink += len(re.FindAllIndex(d, -1))
					}
				}},
			}
			mask.Interleave(1, c.JSON, engines)
			s := mask.Interleave(b.N, c.JSON, engines)
			b.ReportMetric(mask.Ratio(s[2], s[0]), "x-SWAR")
			b.ReportMetric(mask.Ratio(s[2], s[1]), "x-SWAR2")
			b.ReportMetric(mask.Ratio(s[2], s[3]), "x-stdlib")
			b.ReportMetric(mask.Median(s[2])/1e6, "MB/s")
			b.ReportMetric(mask.Median(s[0])/1e6, "SWAR-MB/s")
			b.ReportMetric(mask.Median(s[1])/1e6, "SWAR2-MB/s")
			b.ReportMetric(0, "ns/op")
			_, hits, _ := e.JSON(context.Background(), nil, c.JSON, r, mask.Options{})
			b.Logf("%s: %d bytes, hits %v", c.Name, len(c.JSON), hits)
		})
	}
}
