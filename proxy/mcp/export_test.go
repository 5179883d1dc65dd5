package mcp

import "strings"

// Splice builds a message from parts, with a marker for texts[i] between parts
// i and i+1, and splices the texts in. The token is known to the test.
func Splice(token string, parts []string, texts [][]byte) ([]byte, error) {
	ps := newPayloads(&marks{})
	ps.token = token
	var markers []string
	for _, text := range texts {
		markers = append(markers, `"`+ps.text(text)+`"`)
	}
	var msg strings.Builder
	for i, part := range parts {
		msg.WriteString(part)
		if i < len(parts)-1 {
			msg.WriteString(markers[i])
		}
	}
	return ps.splice(nil, []byte(msg.String()))
}

// Functions of foreign bytes, for the fuzz tests.
var (
	Lift         = lift
	Tame         = tame
	Clean        = clean
	EncodeCursor = encodeCursor
	DecodeCursor = decodeCursor
)

// Bounds that tests go up to.
const (
	MaxBatch = maxBatch
	MaxDepth = maxDepth
	MaxRest  = maxRest
	LiftFrom = liftFrom
)
