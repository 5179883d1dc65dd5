package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Source is one file of a log, in the order of the chain.
type Source struct {
	// Name stands for the file in messages.
	Name string
	// Open returns the uncompressed records.
	Open func() (io.ReadCloser, error)
	// lost is set for a file that should be there and is not.
	lost lost
}

// VerifyOptions say what to hold a log to.
type VerifyOptions struct {
	// Keys are the verifier keys whose checkpoints count. Without one the chain
	// is checked and no signature.
	Keys []string
	// Checkpoints are signed notes that were kept outside the log. A log that
	// lacks one of their records has been cut.
	Checkpoints []string
	// Part accepts files that are not the beginning of the log.
	Part bool
}

// Bounds that keep memory constant whatever the files hold.
const (
	maxNotes = 100
	// maxOpen bounds the calls in flight that verify keeps in mind.
	maxOpen = 1 << 16
	// maxUncovered is the most records that a log which was not rewritten can
	// have after a checkpoint: the largest configurable distance and one write.
	maxUncovered = 10000 + maxBatch + 16
)

// Verify reads a whole log once, in constant memory. The error is about
// reading or about the options; what is wrong with the log is in the report.
func Verify(sources []Source, o VerifyOptions) (*Report, error) {
	v, err := newVerifier(o)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if s.lost != present {
			v.lack(s)
		} else if err := v.file(s); err != nil {
			return nil, err
		}
		if v.report.Problem != nil {
			return &v.report, nil
		}
	}
	v.end()
	return &v.report, nil
}

// verifier is the state between two records.
type verifier struct {
	o      VerifyOptions
	known  note.Verifiers
	pins   []pin // checkpoints from outside, by rising sequence number
	report Report

	file0 string
	line  int64
	last  position
	time  time.Time
	// begin is what the first record follows, when it is not the log's first.
	begin    position
	pruned   bool // a record says that what came before begin was removed
	pinned   uint64
	open     map[uint64]struct{}
	overflow bool
	stopped  bool // the process has ended; the next record is that of a start
	rotated  bool // the file that was read last is a rotated one, by its name
}

// newVerifier refuses keys and checkpoints that do not fit together: verifying without
// them would look like success.
func newVerifier(o VerifyOptions) (*verifier, error) {
	v := &verifier{o: o, open: map[uint64]struct{}{}}
	var list []note.Verifier
	for i, key := range o.Keys {
		if slices.Contains(o.Keys[:i], key) {
			continue // the same key twice would be ambiguous
		}
		k, err := note.NewVerifier(key)
		if err != nil {
			return nil, errors.New("the key is no verifier key of signed notes, " +
				"such as aegis-audit-1a2b3c4d+9f8e7d6c+AbCd…; take the one in the log's .pub file")
		}
		list = append(list, k)
	}
	v.known = note.VerifierList(list...)
	for _, signed := range o.Checkpoints {
		if len(list) == 0 {
			break // nothing to check them with
		}
		p, err := openNote(signed, v.known)
		if err != nil {
			return nil, fmt.Errorf("the checkpoint that is kept beside the log: %s", keyProblem(err))
		}
		v.pins = append(v.pins, p)
	}
	slices.SortFunc(v.pins, func(a, b pin) int { return cmp.Compare(a.seq, b.seq) })
	return v, nil
}

// keyProblem says why a note does not count. A name that is unknown comes first: it is the
// usual case, a key that was not given, and no sign of a forgery.
func keyProblem(err error) string {
	var unknown *note.UnverifiedNoteError
	var bad *note.InvalidSignatureError
	switch {
	case errors.As(err, &unknown) && unknown.Note != nil && len(unknown.Note.UnverifiedSigs) > 0:
		sig := unknown.Note.UnverifiedSigs[0]
		return fmt.Sprintf("it is signed with another key (%s+%08x) than the given one", sig.Name, sig.Hash)
	case errors.As(err, &bad):
		return fmt.Sprintf("its signature by %s is forged or its text was edited", bad.Name)
	}
	return "it is no signed note: " + err.Error()
}

// note adds something that a reader should know and that is no proof of tampering.
func (v *verifier) note(seq uint64, format string, args ...any) {
	if len(v.report.Notes) == maxNotes {
		v.report.More++
		return
	}
	v.report.Notes = append(v.report.Notes, Place{v.file0, v.line, seq, fmt.Sprintf(format, args...)})
}

// problem notes what is wrong. The first finding stays: what follows it in the
// chain is wrong because of it.
func (v *verifier) problem(seq uint64, format string, args ...any) {
	if v.report.Problem == nil {
		v.report.Problem = &Place{v.file0, v.line, seq, fmt.Sprintf(format, args...)}
	}
}

// file verifies one file; the chain runs on from the one before.
func (v *verifier) file(s Source) error {
	in, err := s.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	v.file0 = s.Name
	_, number := logOf(s.Name)
	v.rotated = number != 0
	r := newLines(in)
	for first := true; ; first = false {
		line, err := r.next()
		v.line = r.n
		switch {
		case errors.Is(err, io.EOF):
			v.line = 0
			return nil
		case errors.Is(err, errTorn):
			v.report.Torn = true
			v.problem(v.last.seq+1, "the file ends in the middle of record %d:"+
				" it was cut, or Aegis is writing or was killed (it mends that when it starts)", v.last.seq+1)
		case errors.Is(err, errLong):
			v.problem(v.last.seq+1, "%v; record %d was expected", err, v.last.seq+1)
		case err != nil:
			// A compressed file that was damaged; the place is as good as any.
			v.problem(v.last.seq+1, "the file cannot be read from here on: %v", err)
		default:
			v.record(line, first, r)
		}
		if v.report.Problem != nil {
			return nil
		}
	}
}

// record verifies one line.
func (v *verifier) record(line []byte, first bool, rest *lines) {
	h, err := parseHead(line)
	if err != nil {
		v.problem(v.last.seq+1, "%v; record %d was expected", err, v.last.seq+1)
		return
	}
	// Before the chain: a line that was edited proves nothing about its neighbours.
	if h.sum != h.hash {
		v.problem(h.seq, "record %d was edited: its content does not fit its hash", h.seq)
		return
	}
	if v.report.Records == 0 {
		v.report.First, v.report.Begin, v.last = h.seq, h.time, position{}
		if h.seq != 1 {
			// What came before is taken from the record's own word until the end,
			// where a record about retention must confirm it.
			v.begin = position{h.seq - 1, h.prev}
			v.last = v.begin
		}
	}
	if h.seq != v.last.seq+1 || h.prev != v.last.hash {
		v.broken(h, first, rest)
		return
	}
	v.accept(h)
}

// broken says how a record fails to follow the one before.
func (v *verifier) broken(h head, first bool, rest *lines) {
	want := v.last.seq + 1
	switch {
	// The most specific explanation comes first.
	case h.seq == want:
		v.problem(h.seq, "record %d does not follow record %d: "+
			"one of them was rewritten together with its hash", h.seq, v.last.seq)
	case h.seq == v.last.seq && h.hash == v.last.hash:
		v.problem(h.seq, "record %d stands here twice", h.seq)
	case h.seq < want:
		v.problem(h.seq, "record %d stands after record %d: "+
			"lines were swapped, duplicated or inserted", h.seq, v.last.seq)
	case v.comesLater(want, rest):
		v.problem(want, "record %d stands where record %d belongs, which comes later in the file: "+
			"lines were reordered", h.seq, want)
	case first:
		v.problem(want, "records %d to %d are missing: "+
			"a rotated file is missing or was not named, or the file before was cut", want, h.seq-1)
	default:
		v.problem(want, "records %d to %d are missing: they were removed", want, h.seq-1)
	}
}

// comesLater reports whether the rest of a file has a record.
func (v *verifier) comesLater(seq uint64, rest *lines) bool {
	for {
		h, err := rest.record()
		if err != nil || h.seq == seq {
			return err == nil
		}
	}
}

// accept takes a record that follows the one before.
func (v *verifier) accept(h head) {
	v.report.Records++
	v.report.Last, v.report.End = h.seq, h.time
	if h.time.Before(v.time) {
		v.note(h.seq, "record %d is %v older than the one before: "+
			"the clock was set back", h.seq, v.time.Sub(h.time))
	}
	v.time = h.time
	before := v.last
	v.last = position{h.seq, h.hash}
	// Checkpoints of records before the first one that was read cannot be checked, and go.
	for len(v.pins) > 0 && v.pins[0].seq <= h.seq {
		if p := v.pins[0]; p.seq == h.seq && p.hash != h.hash {
			v.problem(h.seq, "record %d is not the one that a signed checkpoint names: the log was rewritten", h.seq)
			return
		} else if p.seq == h.seq {
			v.report.Covered = max(v.report.Covered, p.seq)
		}
		v.pins = v.pins[1:]
	}
	v.event(h, before)
	if h.seq-max(v.pinned, v.report.First-1) > maxUncovered && v.report.Problem == nil {
		v.problem(h.seq, "there is no checkpoint for more than %d records, and Aegis writes them more often: "+
			"the log was rewritten from record %d on or later", maxUncovered, v.pinned+1)
	}
}

// event looks into the records that say something about the log.
func (v *verifier) event(h head, before position) {
	switch h.event {
	// A process writes what it found wrong with the log before the record of its start.
	case Checkpoint, LogCut, LogRecovered, LogPruned:
	case Start:
		v.stopped = false
	default:
		if v.stopped {
			v.problem(h.seq, "record %d (%s) comes after the log was closed: "+
				"it was added by somebody else", h.seq, h.event)
			return
		}
		v.stopped = h.event == Stop
	}
	switch h.event {
	case Checkpoint:
		v.checkpoint(h, before)
	case Start: // calls that were running when the process ended get no result any more
		v.report.Unfinished += len(v.open)
		clear(v.open)
	case ToolCallStarted:
		// Beyond the bound results are not matched with starts any more.
		if len(v.open) < maxOpen {
			v.open[h.seq] = struct{}{}
		} else {
			v.overflow = true
		}
	case ToolInvocation:
		if _, ok := v.open[h.started]; !ok && h.started != 0 && !v.overflow && h.started >= v.report.First {
			v.note(h.seq, "record %d is the result of a call (record %d) that has one already or did not "+
				"start", h.seq, h.started)
		}
		delete(v.open, h.started)
	case LogPruned, LogCut, LogRecovered, SinkGap:
		v.detail(h)
	}
}

// detail looks into records of the log about itself. Only those that say that records are
// missing are problems; repairs and pauses are notes.
func (v *verifier) detail(h head) {
	r, err := h.record()
	if err != nil || r.Detail == nil {
		v.note(h.seq, "record %d (%s) cannot be read", h.seq, h.event)
		return
	}
	d := r.Detail
	switch h.event {
	case LogPruned:
		if d.Last == v.begin.seq && d.LastHash == v.begin.hash.String() {
			v.pruned = true
		}
	case LogCut:
		v.problem(d.First, "records %d to %d are missing: Aegis found the log shorter than its last checkpoint when "+
			"it started (record %d says so)", d.First, d.Last, h.seq)
	default:
		what := d.Reason
		if d.Count > 0 {
			what += fmt.Sprintf(" (%d refused or missed)", d.Count)
		}
		v.note(h.seq, "record %d, %s: %s", h.seq, h.event, what)
	}
}

// checkpoint checks a signed note against the record before it.
func (v *verifier) checkpoint(h head, before position) {
	r, err := h.record()
	if err != nil || r.Detail == nil {
		v.problem(h.seq, "record %d is a checkpoint without a note", h.seq)
		return
	}
	// Without a key, too: the distance between checkpoints needs no signature.
	v.pinned = h.seq
	if len(v.o.Keys) == 0 { // end says so in a note
		return
	}
	p, err := openNote(r.Detail.Note, v.known)
	if err != nil {
		v.problem(h.seq, "the checkpoint in record %d does not count: %s", h.seq, keyProblem(err))
		return
	}
	if p.position != before {
		v.problem(h.seq, "the checkpoint in record %d is about another record than the one before it: "+
			"it was moved here, or the log was rewritten", h.seq)
		return
	}
	v.report.Checkpoints++
	v.report.Covered = max(v.report.Covered, h.seq-1)
}

// end draws the conclusions that need the whole log.
func (v *verifier) end() {
	r := &v.report
	v.file0, v.line = "", 0
	if p := v.newestPin(); p != 0 && v.o.Part && v.rotated {
		v.note(0, "the part ends with record %d, and a signed checkpoint knows record %d", v.last.seq, p)
	} else if p != 0 {
		v.problem(v.last.seq+1, "the log ends with record %d, and a signed checkpoint knows record %d: "+
			"the tail was cut, or a file was not named", v.last.seq, p)
		return
	}
	if r.Records == 0 {
		v.problem(1, "there are no records, and Aegis writes some at every start: "+
			"they were removed, or it was killed when it started for the first time")
		return
	}
	if v.begin.seq != 0 && !v.pruned && !v.o.Part {
		v.problem(v.begin.seq, "records 1 to %d are missing: "+
			"a rotated file is missing or was not named, and no record says that retention removed it", v.begin.seq)
		return
	}
	if v.begin.seq != 0 && v.pruned {
		v.note(r.First, "retention removed records 1 to %d", v.begin.seq)
	}
	r.Unfinished += len(v.open)
	if r.Unfinished > 0 {
		v.note(0, "%d calls have no result: "+
			"they were running when the process was killed, or still are", r.Unfinished)
	}
	switch {
	case len(v.o.Keys) == 0:
		v.note(0, "no key was given, so no signature was checked: "+
			"whoever can write the files could have written all of this")
	case r.Covered+1 < r.Last: // by one it is behind always: the checkpoint's own record
		v.note(0, "records %d to %d came after the last checkpoint: "+
			"whoever can write the files could have changed or cut them", r.Covered+1, r.Last)
	}
	if len(v.o.Checkpoints) == 0 {
		v.note(0, "no checkpoint from outside the log was given, so a cut tail would not show")
	}
}
