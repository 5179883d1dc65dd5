package seal

// Master returns what the ring's key at index i was stretched to.
func Master(r *Ring, i int) []byte { return r.in()[i].master }

// Parse reads the text of a key file.
func Parse(text []byte) (*Ring, error) { return parse("file", text) }
