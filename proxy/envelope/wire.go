package envelope

import (
	"slices"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// headRoom is what an envelope has before its data, mostly.
const headRoom = 1024

// renderWire renders into [proxy.Call.Out]: the envelope goes out as a JSON
// string, so that its data, which is JSON in itself, is escaped on the way from
// the body into the answer, and text, which becomes a string in that JSON, twice
// in one pass. Nothing is copied in between.
func (e *Envelope) renderWire(c *proxy.Call, res *proxy.Result, at place) error {
	asText := res.Kind == proxy.BodyText && !e.cfg.TextBlocks
	var data []byte
	var err error
	if asText {
		data = e.textPart(res, at)
	} else if data, err = e.data(res, at); err != nil {
		return err
	}
	var first [headRoom]byte
	head := appendHead(first[:0], c, res)
	out, room := c.Out, len(head)+len(data)+len(data)/4+headRoom
	if c.Grow != nil {
		out = c.Grow(room)
	}
	out = slices.Grow(out, room)
	out = jsonscan.AppendEscaped(append(out, '"'), head)
	size := len(head) + len(data) + 1
	if asText {
		out = append(out, `\"`...)
		out, size = jsonscan.AppendEscapedTwice(out, data)
		out = append(out, `\"`...)
		size += len(head) + 3
	} else {
		out = jsonscan.AppendEscaped(out, data)
	}
	res.Wire, res.WireText = append(out, `}"`...), size
	return nil
}
