package members

// Known returns how many identities are remembered.
func (d *Directory) Known() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.known)
}
