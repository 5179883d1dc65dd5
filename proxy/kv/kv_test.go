package kv_test

import (
	"path/filepath"
	"testing"
	"time"

	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
	"aegis/proxy/kv/kvtest"
)

func openFile(t testing.TB, path string, o kv.FileOptions) *kv.File {
	t.Helper()
	f, err := kv.OpenFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func newRing(t testing.TB, keys ...string) *seal.Ring {
	t.Helper()
	var secrets [][]byte
	for _, k := range keys {
		secrets = append(secrets, []byte(k))
	}
	r, err := seal.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	keyA = "first-key-0123456789-0123456789-abcdef"
	keyB = "other-key-0123456789-0123456789-abcdef"
	keyC = "third-key-0123456789-0123456789-abcdef"
)

func newFile(t *testing.T, now func() time.Time) kv.Store {
	return openFile(t, filepath.Join(t.TempDir(), "aegis.db"), kv.FileOptions{Now: now})
}

func TestMemory(t *testing.T) {
	kvtest.Run(t, func(_ *testing.T, now func() time.Time) kv.Store { return kv.NewMemory(now) })
}

func TestFile(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, newFile)
}

func TestSealedFile(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T, now func() time.Time) kv.Store {
		return kv.Sealed(newFile(t, now), newRing(t, keyA))
	})
}

// TestSealedFileOfOldKeys runs the table while every read finds a value of an
// old key.
func TestSealedFileOfOldKeys(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T, now func() time.Time) kv.Store {
		f := newFile(t, now)
		return mixed{kv.Sealed(f, newRing(t, keyB, keyA)), kv.Sealed(f, newRing(t, keyA))}
	})
}
