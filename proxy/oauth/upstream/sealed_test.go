package upstream_test

import (
	"bytes"
	"testing"
	"time"

	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/oauth/upstream"
)

// sealedLab is a lab whose store seals, and one person in it.
func sealedLab(t testing.TB) (l *lab, g *upstream.Gitea, id int64, bare kv.Store) {
	l = newLab(t, true)
	ring, err := seal.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	bare = l.store
	l.store = kv.Sealed(bare, ring)
	g = l.replica(nil)
	return l, g, l.signIn(g, "alice").ID, bare
}

// TestSealedStore: behind a store that seals all works the same, and nothing of
// the credential can be read beside it.
func TestSealedStore(t *testing.T) {
	t.Parallel()
	l, g, id, bare := sealedLab(t)
	c := l.must(g, id)
	l.clock.add(2 * time.Hour)
	d := l.must(g, id)
	for key, err := range bare.Keys(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		entry, err := bare.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{c.Token.Secret(), d.Token.Secret(), "alice", "eyJ", "repository"} {
			if bytes.Contains(entry.Value, []byte(s)) {
				t.Errorf("%s holds %.5q… in the clear", key, s)
			}
		}
	}
}

// BenchmarkCredential is what every call of a person pays: one sealed record.
func BenchmarkCredential(b *testing.B) {
	_, g, id, _ := sealedLab(b)
	for b.Loop() {
		if _, err := g.Credential(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
