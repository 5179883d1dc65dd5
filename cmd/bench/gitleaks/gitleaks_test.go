// Package gitleaks compares the masking core with the gitleaks library. It is a
// module of its own so that gitleaks and what it needs are no dependencies of
// Aegis; go.work joins the two.
package gitleaks

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/zricethezav/gitleaks/v8/detect"

	maskbench "aegis/cmd/bench/mask"
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
// decoded strings ready-made; the masking core reads and writes the JSON.
func BenchmarkGitleaks(b *testing.B) {
	corpora, err := maskbench.Corpora(16 << 20)
	if err != nil {
		b.Fatal(err)
	}
	e, err := mask.New(config.Masking{Builtin: true, Mode: "mask"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range corpora {
		texts := leaves(c.JSON)
		b.Run(c.Name, func(b *testing.B) {
			findings, hits := 0, 0
			engines := []maskbench.Engine{
				{Name: "gitleaks", Run: func([]byte) {
					findings = 0
					for _, s := range texts {
						findings += len(d.DetectString(s))
					}
				}},
				{Name: "mask", Run: func(doc []byte) {
					_, h, err := e.JSON(context.Background(), nil, doc, nil, mask.Options{})
					if err != nil {
						b.Fatal(err)
					}
					hits = 0
					for _, n := range h {
						hits += n
					}
				}},
			}
			s := maskbench.Interleave(b.N, c.JSON, engines)
			b.ReportMetric(maskbench.Ratio(s[1], s[0]), "x-gitleaks")
			b.ReportMetric(maskbench.Median(s[1])/1e6, "mask-MB/s")
			b.ReportMetric(maskbench.Median(s[0])/1e6, "gitleaks-MB/s")
			b.ReportMetric(float64(findings), "findings")
			b.ReportMetric(float64(hits), "hits")
			b.ReportMetric(0, "ns/op")
		})
	}
}
