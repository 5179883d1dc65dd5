// Package server joins the parts of Aegis: it is the only package that names two
// of its siblings. [Open] makes a [Process], which lives as long as the process and
// holds what no reload may lose; [Dry] makes one that touches nothing. [New] builds a
// generation of the server of a configuration on either, so that checking a
// configuration and serving it take the same path. [Live] serves one generation after
// another until it is told to stop, and lets calls in flight finish.
package server

//go:generate go test -run TestWayIsDocumented -count=1 . -args -update
