package envelope_test

import (
	"context"
	"strings"
	"testing"

	"aegis/proxy"
)

// TestACursorHasOneSpelling: what base64url does not have is refused, line ends among it, which
// the standard library skips, and so are other values of the bits that say nothing.
func TestACursorHasOneSpelling(t *testing.T) {
	t.Parallel()
	h := newHarness(t, limits(10, 1000), proxy.BodyText, []byte(strings.Repeat("line of text\n", 200)))
	cursor := h.do("").Truncation.Cursor
	h.do(cursor)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, cursor[len(cursor)-1])
	bad := []string{cursor[:len(cursor)-1] + string(alphabet[last^1])}
	for _, c := range []string{"\n", "\r", "\r\n", " ", "\t", "=", "+", "/", "\x00", "\u2028", "%0A", "."} {
		bad = append(bad, c+cursor, cursor+c, cursor[:9]+c+cursor[9:])
	}
	for _, text := range bad {
		c := h.call
		c.Options.Cursor = text
		if _, err := h.stage.Handle(context.Background(), &c); err == nil || proxy.AsError(err).Kind != proxy.KindInvalidArguments {
			t.Errorf("%q: %v", text, err)
		}
	}
}
