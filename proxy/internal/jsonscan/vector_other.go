//go:build !amd64 || purego

package jsonscan

// vectors is false where there is no code of this kind.
const vectors = false

func escapeVector(_, _ *byte, _ int, _ *[256][16]byte) (read, written int) { return 0, 0 }

func markVector(_ *uint64, _ *byte, _ int) {}
