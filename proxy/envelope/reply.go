package envelope

import (
	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// headRoom is what an envelope has before its data, mostly.
const headRoom = 1024

// renderReply renders into [proxy.Call.Reply]: the envelope goes out as a JSON
// string, so that its data, which is JSON in itself, is escaped on the way from
// the body into the answer, and text, which becomes a string in that JSON, twice
// in one pass. Nothing is copied in between.
func (e *Envelope) renderReply(c *proxy.Call, res *proxy.Result, at place) error {
	asText := res.Kind == proxy.BodyText && !e.cfg.TextBlocks
	var data []byte
	var err error
	if asText {
		data = e.textPart(res, at)
	} else if data, err = e.data(res, at); err != nil {
		return err
	}
	// The head is made first, as the room that the whole needs depends on its length. It is
	// short, and stays on the stack.
	var first [headRoom]byte
	head := appendHead(first[:0], c, res)
	// Quotes make JSON longer by a quarter or so when they are escaped.
	out := c.Reply.Begin(len(head) + len(data) + len(data)/4 + headRoom)
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
	c.Reply.End(append(out, `}"`...), size)
	res.Reply = c.Reply
	return nil
}
