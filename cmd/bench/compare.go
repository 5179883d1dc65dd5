package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// plan is how much is measured: clients at a time, rounds, and calls of a round.
type plan struct{ workers, rounds, calls int }

// tally is what was measured of one target.
type tally struct {
	took []time.Duration // per round
	// The rest is of all rounds together: a tick of processor time is 10 ms, more than many calls
	// of one round take.
	cpu           time.Duration
	calls         int
	allocs, bytes float64
}

// compare measures all targets in turn, round by round, and prints medians and
// their ratios to targets[base] in the same round.
func compare(out io.Writer, job *payload, targets []target, base int, pl plan) error {
	// One pool for all workers and rounds: after the first round nothing is dialled.
	connections := transport()
	defer connections.CloseIdleConnections()
	workers := make([]*worker, pl.workers)
	for i := range workers {
		workers[i] = newWorker(connections)
	}
	all := make([]tally, len(targets))
	for round := -1; round < pl.rounds; round++ { // the first round warms up
		for i, t := range targets {
			if err := all[i].measure(workers, t, job, pl, round >= 0); err != nil {
				return fmt.Errorf("%s, %s: %w", job.name, t.name, err)
			}
		}
	}
	for i, t := range targets {
		all[i].print(out, t.name, job, all[base].took, pl)
	}
	return nil
}

// measure sends one round of calls.
func (a *tally) measure(workers []*worker, t target, job *payload, pl plan, counts bool) error {
	// Each round has the same number of calls per client, so that no client works alone
	// at its end.
	each := max(1, pl.calls/max(1, job.calls)/len(workers))
	count, bytes := t.process.allocated()
	// Of the process alone: its clients run on the same processors.
	cpu := t.process.cpu()
	began := time.Now()
	err := together(len(workers), each, func(i, _ int) error { return t.fetch(workers[i], job) })
	took := time.Since(began)
	if err != nil || !counts {
		return err
	}
	n := each * len(workers)
	// Per request of one client: what a client waits for.
	a.took = append(a.took, took/time.Duration(each))
	a.cpu += t.process.cpu() - cpu
	a.calls += n
	count2, bytes2 := t.process.allocated()
	a.allocs, a.bytes = a.allocs+count2-count, a.bytes+bytes2-bytes
	return nil
}

// together calls do for so many workers at the same time, for each of them again and again
// until it has done its share or failed. All errors are returned.
func together(workers, share int, do func(worker, i int) error) error {
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			for i := 0; i < share && errs[n] == nil; i++ {
				errs[n] = do(n, i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// header begins a table of ratios to base.
func header(out io.Writer, base string) {
	fmt.Fprintf(out, "| answer | concurrency | target | per request | requests/s | latency × %[1]s | "+
		"throughput × %[1]s | spread | CPU per request | allocations | bytes |\n", base)
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
}

// print writes one row. The spread is from the 10th to the 90th percentile of the
// rounds' ratios.
func (a *tally) print(out io.Writer, label string, job *payload, base []time.Duration, pl plan) {
	ratios := make([]float64, len(a.took))
	for r := range ratios {
		ratios[r] = float64(a.took[r]) / float64(base[r])
	}
	// Of the ratios, not of the times: a round that was slow for all targets says nothing of one.
	slices.Sort(ratios)
	per, mid := median(a.took), ratios[len(ratios)/2]
	fmt.Fprintf(out, "| %s | %d | %s | %v | %.0f | %.2f | %.2f | %.2f..%.2f | ", job.name, pl.workers, label,
		per.Round(time.Microsecond), float64(pl.workers)/per.Seconds(), mid, 1/mid,
		ratios[len(ratios)/10], ratios[len(ratios)*9/10])
	// Where the system does not count them, CPU time and memory stay empty.
	calls := max(1, a.calls)
	var cpu, allocs, bytes string
	if a.cpu > 0 {
		cpu = (a.cpu / time.Duration(calls)).Round(time.Microsecond).String()
	}
	if a.allocs > 0 {
		allocs, bytes = fmt.Sprintf("%.0f", a.allocs/float64(calls)), size(a.bytes/float64(calls))
	}
	fmt.Fprintf(out, "%s | %s | %s |\n", cpu, allocs, bytes)
}

// size writes a number of bytes for people.
func size(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", n/1e3)
	}
	return fmt.Sprintf("%.0f B", n)
}

// median of an even number is the upper one of the two in the middle.
func median(d []time.Duration) time.Duration {
	s := slices.Clone(d)
	slices.Sort(s)
	return s[len(s)/2]
}
