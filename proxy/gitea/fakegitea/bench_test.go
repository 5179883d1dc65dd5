package fakegitea_test

import (
	"testing"

	"aegis/proxy/gitea/fakegitea"
)

// BenchmarkServe measures typical answers, so that the double stays far faster
// than what is tested against it.
func BenchmarkServe(b *testing.B) {
	s := newBenchServer()
	token := s.Token("alice")
	for _, target := range []string{
		"/version", "/repos/acme/issues-lab/issues?limit=50&state=all", "/repos/acme/issues-lab/issues/11",
		"/repos/acme/pulls-lab/pulls?limit=15", "/repos/acme/paths-lab/contents", "/repos/acme/paths-lab/raw/big%2F3mib.txt",
		"/repos/search?limit=50", "/notifications",
	} {
		b.Run(target, func(b *testing.B) {
			for b.Loop() {
				get(s, token, target)
			}
			s.ResetRequests()
		})
	}
}

// newBenchServer serves the lab world.
func newBenchServer() *fakegitea.Server {
	return fakegitea.New(fakegitea.Options{Seed: fakegitea.SeedLab})
}
