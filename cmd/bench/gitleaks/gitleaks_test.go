// Package gitleaks compares the masking core with the gitleaks library. It is a
// module of its own so that gitleaks and what it needs are no dependencies of
// Aegis; go.work joins the two.
package gitleaks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zricethezav/gitleaks/v8/detect"

	"aegis/config"
	"aegis/proxy/mask"
)

// leaves returns the decoded strings of a document, which is what gitleaks is
// given: it knows nothing of JSON.
func leaves(doc []byte) []string {
	var v any
	if json.Unmarshal(doc, &v) != nil {
		return nil
	}
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return all
}

// BenchmarkGitleaks runs both on the same bytes in the same rounds, and
// reports how many times faster the masking core is. Gitleaks is given the
// decoded strings ready-made; the masking core reads and writes the JSON. The texts
// are those that the test of Aegis wrote into the folder $CORPORA.
func BenchmarkGitleaks(b *testing.B) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("CORPORA"), "*.json"))
	if err != nil || len(files) == 0 {
		b.Fatal("no texts in the folder $CORPORA: run make bench-gitleaks, which makes them ", err)
	}
	e, err := mask.New(config.Masking{Builtin: true, Mode: "mask"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		texts := leaves(doc)
		b.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(b *testing.B) {
			findings, hits := 0, 0
			var ratios []float64
			for range b.N {
				start := time.Now()
				findings = 0
				for _, s := range texts {
					findings += len(d.DetectString(s))
				}
				middle := time.Now()
				_, h, err := e.JSON(context.Background(), nil, doc, nil, mask.Options{})
				if err != nil {
					b.Fatal(err)
				}
				ratios = append(ratios, float64(middle.Sub(start))/float64(time.Since(middle)))
				hits = 0
				for _, n := range h {
					hits += n
				}
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "x-gitleaks")
			b.ReportMetric(float64(findings), "findings")
			b.ReportMetric(float64(hits), "hits")
			b.ReportMetric(0, "ns/op")
		})
	}
}
