//go:build !race

package server_test

// raceEnabled: the race detector is on.
const raceEnabled = false
