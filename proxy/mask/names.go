package mask

import "sync"

// What [Engine.Names] remembers: so many texts of so many bytes.
const (
	maxNames = 1024
	maxName  = 128
)

// Names returns a function that masks plain texts as [Engine.Bytes] does and remembers short
// ones: calls repeat the names of owners, repositories and clients. It is safe for concurrent
// use.
func (e *Engine) Names() func(text string) string {
	var mu sync.RWMutex
	done := map[string]string{}
	return func(text string) string {
		mu.RLock()
		out, ok := done[text]
		mu.RUnlock()
		if ok {
			return out
		}
		masked, _ := e.Bytes([]byte(text))
		out = string(masked)
		if len(text) <= maxName {
			mu.Lock()
			if len(done) >= maxNames { // strangers choose some names, so there may be any number
				clear(done)
			}
			done[text] = out
			mu.Unlock()
		}
		return out
	}
}
