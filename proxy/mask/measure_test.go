package mask

import (
	"slices"
	"time"
)

// Runner is something to measure, such as a loop that only looks for one byte: the
// speeds of a shared machine mean little but as ratios to what ran in the same rounds.
type Runner struct {
	Run func(doc []byte)
	// Limit is how many bytes of a corpus it is given; 0 is all.
	Limit int
}

// Interleave runs every runner once a round on doc and returns, by runner, the
// speeds in bytes per second of all rounds.
func Interleave(rounds int, doc []byte, runners []Runner) [][]float64 {
	speeds := make([][]float64, len(runners))
	for range rounds {
		for i, e := range runners {
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
