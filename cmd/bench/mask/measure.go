package maskbench

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"time"
)

// The references are loops over eight bytes at a time (SIMD within a
// register). They count the blocks that hold a certain byte.
const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// SWAR looks for one byte that text does not have.
func SWAR(b []byte) int {
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

// SWAR2 looks for the two bytes that every reader of JSON must find: the quote
// and the backslash.
func SWAR2(b []byte) int {
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

// Engine is something to measure.
type Engine struct {
	Name string
	Run  func(doc []byte)
	// Limit is how many bytes of a corpus the engine is given; 0 is all.
	Limit int
}

// Interleave runs every engine once a round on doc and returns, by engine, the
// speeds in bytes per second of all rounds.
func Interleave(rounds int, doc []byte, engines []Engine) [][]float64 {
	speeds := make([][]float64, len(engines))
	for range rounds {
		for i, e := range engines {
			d := doc
			if e.Limit > 0 && len(d) > e.Limit {
				d = d[:e.Limit]
			}
			start := cpuTime()
			e.Run(d)
			speeds[i] = append(speeds[i], float64(len(d))/max(cpuTime()-start, time.Microsecond).Seconds())
		}
	}
	return speeds
}

// Ratio returns the median over rounds of a/b.
func Ratio(a, b []float64) float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return Median(r)
}

// Median returns the median of v, which is left as it is.
func Median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}
