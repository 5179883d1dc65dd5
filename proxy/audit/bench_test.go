package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/proxy"
)

// BenchmarkCalls measures whole calls, two records each, with sync always. It
// reports calls per second, and their ratio to the bare rate of fsync and to
// concurrency 1, all on the same disk in the same run.
func BenchmarkCalls(b *testing.B) {
	bare := fsyncRate(b)
	single := 0.0
	for _, workers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("concurrency=%d", workers), func(b *testing.B) {
			rate := callRate(b, workers)
			if workers == 1 {
				single = rate
			}
			b.ReportMetric(rate, "calls/s")
			b.ReportMetric(bare, "fsync/s")
			b.ReportMetric(rate/bare, "calls/fsync")
			if single > 0 {
				b.ReportMetric(rate/single, "x-single")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func callRate(b *testing.B, workers int) float64 {
	cfg := settings()
	cfg.Sync = "always"
	r := newRig(b, cfg)
	r.open()
	h := r.chain(found, proxy.HandlerFunc(answered).Handle)
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	began := time.Now()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := h.Handle(context.Background(), newCall()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	b.StopTimer()
	r.log.Close()
	r.mustVerify()
	return float64(b.N) / took.Seconds()
}

// fsyncRate is how often a second the disk takes a write the size of a record
// and flushes it.
func fsyncRate(b *testing.B) float64 {
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 700)
	n, began := 0, time.Now()
	for time.Since(began) < time.Second {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkRecord is what a record costs without a disk's flush.
func BenchmarkRecord(b *testing.B) {
	r := newRig(b, settings())
	r.open()
	h := r.chain(found, answered)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Handle(context.Background(), newCall()); err != nil {
			b.Fatal(err)
		}
	}
}
