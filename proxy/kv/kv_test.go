package kv_test

import (
	"testing"

	"aegis/proxy/internal/seal"
	"aegis/proxy/kv"
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
