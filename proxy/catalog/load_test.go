package catalog_test

import (
	"testing"

	"aegis/proxy/catalog"
	"aegis/spec"
)

// builtin loads the embedded catalog.
func builtin(tb testing.TB) *catalog.Set {
	tb.Helper()
	cat, err := spec.Builtin()
	if err != nil {
		tb.Fatal(err)
	}
	set, err := catalog.Load(cat)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		builtin(b)
	}
}

func BenchmarkBuiltin(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := spec.Builtin(); err != nil {
			b.Fatal(err)
		}
	}
}
