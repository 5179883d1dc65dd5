package catalog_test

import (
	"sync"
	"testing"

	"aegis/proxy/catalog"
	"aegis/spec"
)

// builtin loads the embedded catalog.
func builtin(tb testing.TB) *catalog.Set {
	tb.Helper()
	set, err := once()
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// once loads the catalog for all tests: none changes it.
var once = sync.OnceValues(load)

func load() (*catalog.Set, error) {
	cat, err := spec.Builtin()
	if err != nil {
		return nil, err
	}
	return catalog.Load(cat)
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := load(); err != nil {
			b.Fatal(err)
		}
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
