package audit

import "fmt"

// lost is how a file is missing that what lies beside it knows of.
type lost uint8

const (
	present        lost = iota
	lostLog             // the file that is written to
	lostAll             // the log with all of its rotated files
	lostCheckpoint      // the checkpoint beside a log that has a key
	lostKey             // the key beside a log that has a checkpoint
)

// lack says that a file of the log is missing. Sources of this kind come last.
func (v *verifier) lack(s Source) {
	v.file0, v.line = s.Name, 0
	known := ""
	if p := v.newestPin(); p != 0 {
		known = fmt.Sprintf("; a signed checkpoint knows records up to %d", p)
	}
	switch {
	// The other files have been verified by now; only the newest records are gone.
	case s.lost == lostLog:
		// Between two steps of a rotation this is so for a moment.
		v.report.Torn = true
		v.problem(v.last.seq+1, "the newest file of the log is missing: it was removed, "+
			"or Aegis was killed in the middle of a rotation (it makes the file when it starts)%s", known)
	case s.lost == lostAll:
		v.problem(1, "the log is missing with all of its files, and what lies beside it says that there was one: "+
			"it was removed%s", known)
	case s.lost == lostKey && len(v.o.Keys) == 0:
		v.problem(0, "the public key is missing beside a log that has a checkpoint, so no signature can be checked: "+
			"give the key that was kept with --key, or let Aegis start, which writes the file")
	case s.lost == lostCheckpoint && len(v.o.Checkpoints) == 0 && !v.o.Part:
		v.problem(0, "the checkpoint is missing, which Aegis writes at every start, so a cut tail would not show: "+
			"give one that was kept with --checkpoint")
	}
}

// newestPin returns the newest record that a checkpoint from outside knows and
// that was not read; 0 for none. The pins of records that were read are gone.
func (v *verifier) newestPin() uint64 {
	if len(v.pins) == 0 {
		return 0
	}
	return v.pins[len(v.pins)-1].seq
}
