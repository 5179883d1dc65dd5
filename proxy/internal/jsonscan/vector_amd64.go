//go:build !purego

package jsonscan

import "golang.org/x/sys/cpu"

// vectors reports whether this processor has what escapeVector needs, as all have
// that were made since 2009. markVector needs what every amd64 has.
var vectors = cpu.X86.HasSSSE3 && cpu.X86.HasPOPCNT

// escapeVector escapes blocks of 16 bytes from src to dst with a backslash before
// each quote and each backslash, up to the first block that holds anything but
// printable ASCII. dst must have room for 32 bytes for each block.
//
//go:noescape
func escapeVector(dst, src *byte, blocks int, spreads *[256][16]byte) (read, written int)

// markVector is [markBlock] for blocks of 64 bytes.
//
//go:noescape
func markVector(dst *uint64, src *byte, blocks int)
