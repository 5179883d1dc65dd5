package maskbench

import (
	"slices"
	"time"
)

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
	r := slices.Clone(a)
	for i := range r {
		r[i] /= b[i]
	}
	return Median(r)
}

// Median returns the median of v, which is left as it is.
func Median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
