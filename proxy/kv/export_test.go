package kv

// Count returns how many keys and how many expiries the file holds.
func Count(f *File) (data, expiry int) {
	_ = f.view(func(t tx) error {
		_ = t.data.ForEach(func(_, _ []byte) error { data++; return nil })
		return t.expiry.ForEach(func(_, _ []byte) error { expiry++; return nil })
	})
	return data, expiry
}

// Held returns how many entries are in memory, expired ones among them.
func Held(m *Memory) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}
