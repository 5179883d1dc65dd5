package audit

import (
	"fmt"
	"time"
)

// Report is what [Verify] found. The log is good when Problem is nil.
type Report struct {
	// Records is how many were read, First and Last are their sequence numbers.
	Records, First, Last uint64
	// Begin and End are the times of the first and the last record.
	Begin, End time.Time
	// Checkpoints is how many were checked against a key; Covered is the last
	// record that one of them, in the log or outside, vouches for.
	Checkpoints int
	Covered     uint64
	// Unfinished is how many calls have no result, because the process ended in
	// their middle.
	Unfinished int
	// Notes are what a reader should know and what is no proof of tampering; at
	// most 100, More counts the rest.
	Notes []Place
	More  int
	// Problem is the first thing that is wrong.
	Problem *Place
	// Torn is set when the problem is a last line without its end or a newest
	// file that is missing, as a reader may see it while Aegis is writing.
	Torn bool
}

// Place is something about a line of a log.
type Place struct {
	File string
	Line int64
	// Seq is the record's sequence number as far as it is known, else 0.
	Seq uint64
	// What says what is wrong.
	What string
}

// String returns file:line: what.
func (p Place) String() string {
	if p.File == "" {
		return p.What
	}
	if p.Line == 0 {
		return p.File + ": " + p.What
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
}
