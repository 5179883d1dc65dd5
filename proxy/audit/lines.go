package audit

import (
	"bufio"
	"errors"
	"io"
)

// lines reads a log line by line in constant memory.
type lines struct {
	r *bufio.Reader
	// n is the number of the line that next returned last, from 1.
	n int64
	// end is the offset behind the last line that had its end.
	end int64
	// skipped is how many lines record found to be none.
	skipped int
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
	}
	switch {
	case err == nil:
		l.end += int64(len(b))
		return b[:len(b)-1], nil
	case errors.Is(err, io.EOF) && len(b) > 0:
		return b, errTorn
	case errors.Is(err, bufio.ErrBufferFull):
		size := len(b)
		for errors.Is(err, bufio.ErrBufferFull) {
			b, err = l.r.ReadSlice('\n')
			size += len(b)
		}
		if err == nil {
			l.end += int64(size)
		} else if !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, errLong
	}
	return nil, err
}

// record returns the next line that is a record, which is valid until the next call. It is
// for readers that want what is there: [Verify], which says what is wrong, asks for lines.
func (l *lines) record() (head, error) {
	for ; ; l.skipped++ {
		line, err := l.next()
		if errors.Is(err, errLong) || errors.Is(err, errTorn) {
			continue
		}
		if err != nil {
			return head{}, err
		}
		if h, err := parseHead(line); err == nil {
			return h, nil
		}
	}
}
