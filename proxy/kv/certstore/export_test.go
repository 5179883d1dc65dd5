package certstore

// Freeze ends the renewal of a lock as the end of the process would.
func Freeze(s *Storage, name string) {
	s.mu.Lock()
	l := s.locks[name]
	s.mu.Unlock()
	l.stop()
	<-l.done
}
