package audit

import (
	"bufio"
	"errors"
	"io"
)

// lines reads a log line by line in constant memory.
type lines struct {
	r *bufio.Reader
	// n is the number of the line that next returned last, from 1; end is the
	// offset behind it.
	n, end int64
}

var (
	errLong = errors.New("a line is longer than a record can be")
	errTorn = errors.New("the last line does not end")
)

// newLines takes a reader's buffer of the longest line: what does not fit is no record.
func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine)} }

// next returns the next line without its end; it is valid until the next call.
// After errLong the reader is behind the line; with errTorn the line is
// what there is of it. The error is io.EOF at the end.
func (l *lines) next() ([]byte, error) {
	b, err := l.r.ReadSlice('\n')
	if len(b) > 0 {
		l.n++
		l.end += int64(len(b))
	}
	switch {
	case err == nil:
		return b[:len(b)-1], nil
	case errors.Is(err, io.EOF) && len(b) > 0:
		return b, errTorn
	case errors.Is(err, bufio.ErrBufferFull):
		for errors.Is(err, bufio.ErrBufferFull) {
			b, err = l.r.ReadSlice('\n')
			l.end += int64(len(b))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, errLong
	}
	return nil, err
}
