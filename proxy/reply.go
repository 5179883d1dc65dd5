package proxy

import "slices"

// Reply is the answer to the client, as far as the caller of the chain has begun it. The
// stage that renders a result appends the text to it as a JSON string, which spares large
// answers a copy: their bytes go from Gitea's body into the answer in one pass. A Reply
// belongs to one call and to one goroutine at a time.
type Reply struct {
	begun   []byte // what the caller wrote
	written []byte // the same, and the text behind it; nil while there is none
	size    int
	grow    func(n int) []byte
	sent    func()
	later   []func()
}

// NewReply returns a reply that goes on behind begun. grow makes room for n bytes behind
// it, which may move it, and returns it; nil: append does.
func NewReply(begun []byte, grow func(n int) []byte) *Reply {
	return &Reply{begun: begun, grow: grow}
}

// Begin returns what the text is to be appended to, with room for n bytes.
func (r *Reply) Begin(n int) []byte {
	if r.grow != nil {
		r.begun = r.grow(n)
	}
	return slices.Grow(r.begun, n)
}

// End takes what Begin returned, with a JSON string behind it whose value has size bytes.
func (r *Reply) End(written []byte, size int) { r.written, r.size = written, size }

// Bytes returns the reply, text included.
func (r *Reply) Bytes() []byte { return r.written }

// Text returns the text as a JSON string.
func (r *Reply) Text() []byte { return r.written[len(r.begun):] }

// Size returns how many bytes the text has, before it was escaped. A nil Reply has none.
func (r *Reply) Size() int {
	if r == nil {
		return 0
	}
	return r.size
}

// OnSent takes what lets the memory of the result's body serve another call. Nothing of
// the body may be used once it has run. A nil Reply forgets it, and the memory goes to the
// garbage collector.
func (r *Reply) OnSent(f func()) {
	if r != nil {
		r.sent = f
	}
}

// Later takes what can wait until the answer has gone out, such as a line of the log: a
// client next door would wait for it. It runs in any case, see [Reply.Close]; at once when
// the Reply is nil.
func (r *Reply) Later(f func()) {
	if r == nil {
		f()
		return
	}
	r.later = append(r.later, f)
}

// Close runs what was left for later. The maker of the Reply calls it last.
func (r *Reply) Close() {
	for _, f := range r.later {
		f()
	}
	r.later = nil
}

// Sent says that the answer has gone out and nothing of the body is needed any more.
func (r *Reply) Sent() {
	if r.sent != nil {
		r.sent()
	}
}
