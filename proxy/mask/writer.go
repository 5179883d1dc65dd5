package mask

import (
	"bytes"
	"context"
	"io"
)

// Writer returns a writer that masks each write before it passes it on. A
// write must be one line of a log, or whole lines; lines that begin with a
// brace are taken for JSON. A line that cannot be masked is replaced by a
// notice.
func (e *Engine) Writer(w io.Writer) io.Writer { return &lineWriter{e: e, w: w} }

// lineWriter may be used by several goroutines when the writer below may: it has no
// state of its own.
type lineWriter struct {
	e *Engine
	w io.Writer
}

// unmaskable replaces a line that must not be written as it is.
var unmaskable = []byte(`{"level":"error","message":"a log line was withheld because it could not be masked"}` + "\n")

// Write masks p and reports len(p) on success: the number of bytes written
// below may differ.
func (l *lineWriter) Write(p []byte) (int, error) {
	// A log line has to be written; blocking it would hide what happened from the operator.
	o := Options{neverBlock: true, json: bytes.HasPrefix(p, []byte("{"))}
	out, _, err := l.e.mask(context.Background(), nil, p, nil, o)
	if err != nil {
		out = unmaskable
	}
	if _, err := l.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
