package kv_test

import (
	"errors"
	"testing"

	"aegis/proxy/kv"
)

// TestSwitchIsThrown: what begins after it meets the new store, and the one before it
// stays open.
func TestSwitchIsThrown(t *testing.T) {
	t.Parallel()
	first, second := kv.NewMemory(nil), kv.NewMemory(nil)
	s := kv.NewSwitch(first)
	if err := s.Put(t.Context(), "a/1", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	s.Use(second)
	if _, err := s.Get(t.Context(), "a/1"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the new store has it: %v", err)
	}
	if e, err := first.Get(t.Context(), "a/1"); err != nil || string(e.Value) != "x" {
		t.Errorf("the old store: %q, %v", e.Value, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := second.Put(t.Context(), "a/2", nil, 0); err != nil {
		t.Errorf("closing the switch closed the store: %v", err)
	}
}
