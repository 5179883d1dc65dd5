package audit

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Filter selects records; its zero value selects all. Texts are compared
// exactly, Tool may be a glob.
type Filter struct {
	Since, Until                   time.Time
	Identity, Tool, Outcome, Event string
}

// match reports whether the filter selects r. Identity is a login, the name of
// a token or a user that was acted as.
func (f *Filter) match(r *Record) bool {
	switch {
	case !f.Since.IsZero() && r.Time.Before(f.Since), !f.Until.IsZero() && !r.Time.Before(f.Until):
		return false
	case f.Event != "" && string(r.Event) != f.Event:
		return false
	case f.Outcome != "" && (r.Result == nil || r.Result.Outcome != f.Outcome):
		return false
	}
	if id := r.Identity; f.Identity != "" &&
		(id == nil || !slices.Contains([]string{id.Login, id.Token, id.Sudo}, f.Identity)) {
		return false
	}
	if f.Tool != "" {
		if r.Call == nil {
			return false
		}
		// A malformed glob selects nothing.
		// Names of tools have no slash, so that * matches any part of one.
		ok, err := path.Match(f.Tool, r.Call.Tool)
		return ok && err == nil
	}
	return true
}

// Printer writes records: as a table, or each line as it is in the log.
type Printer struct {
	W    io.Writer
	JSON bool
	// Quiet leaves the table's head out.
	Quiet bool
	// Replica is printed before each record, unless it is empty.
	Replica string
	began   bool
}

// tableForm has widths that hold most names of Gitea; longer ones shift their line.
const tableForm = "%-10s %-23s %-18s %-14s %-34s %-26s %-20s %6s %9s\n"

// print writes one record, and the table's head before the first. JSON is the line as
// it is: encoding it again would change bytes that the hash is over.
func (p *Printer) print(r *Record, line []byte) error {
	if p.JSON {
		if p.Replica != "" {
			line = withReplica(p.Replica, line)
		}
		_, err := p.W.Write(append(line, '\n'))
		return err
	}
	if !p.began && !p.Quiet {
		if err := p.column("REPLICA"); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.W, tableForm,
			"SEQ", "TIME", "EVENT", "IDENTITY", "TOOL", "TARGET", "OUTCOME", "STATUS", "TOTAL")
		if err != nil {
			return err
		}
	}
	p.began = true
	who, tool, target, outcome, status, total := "-", "-", "-", "-", "-", "-"
	if r.Identity != nil {
		who = r.Identity.Login
	}
	if r.Call != nil {
		tool, target = r.Call.Tool, r.Call.Target.String()
	}
	if r.Result != nil {
		outcome, status = r.Result.Outcome, strconv.Itoa(r.Result.Status)
		// Finer than that no two calls are alike, and the column would be hard to read.
		total = (time.Duration(r.Result.Total) * time.Microsecond).Round(100 * time.Microsecond).String()
	}
	// Such events have no target, and its column is wide.
	if r.Detail != nil && r.Detail.Reason != "" {
		target = r.Detail.Reason
	}
	if err := p.column(p.Replica); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.W, tableForm, strconv.FormatUint(r.Seq, 10), r.Time.Format("2006-01-02T15:04:05.000"),
		r.Event, who, tool, target, outcome, status, total)
	return err
}

// gap says that records could not be read, in a line of its own. It is no record, so its JSON
// has none of a record's members.
func (p *Printer) gap(first, last uint64) error {
	if p.JSON {
		_, err := fmt.Fprintf(p.W, `{"missing":{"first":%d,"last":%d}}`+"\n", first, last)
		return err
	}
	_, err := fmt.Fprintf(p.W, "records %d to %d are missing: their file was removed, or they were\n", first, last)
	return err
}

// String returns a target as people write it: owner/repo#12.
func (t *Target) String() string {
	if t == nil {
		return "-"
	}
	var b strings.Builder
	b.WriteString(t.Owner)
	if t.Repo != "" {
		b.WriteString("/" + t.Repo)
	}
	for _, s := range []string{t.Org, t.User} {
		if s != "" {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(s)
		}
	}
	if t.Index != 0 {
		b.WriteString("#" + strconv.FormatInt(t.Index, 10))
	}
	if t.ID != 0 {
		b.WriteString(" id " + strconv.FormatInt(t.ID, 10))
	}
	return strings.TrimSpace(b.String())
}

// Show prints the records of a log that a filter selects. Lines that are no
// records are counted, not shown: [Verify] is for them.
func Show(sources []Source, f Filter, p *Printer) (skipped int, err error) {
	return Merge([]Chain{{Sources: sources}}, f, p)
}

// showHead prints a record when the filter selects it; bad says that it cannot be
// decoded.
func showHead(h head, f Filter, p *Printer) (bad bool, err error) {
	if f.Event != "" && string(h.event) != f.Event || !f.Since.IsZero() && h.time.Before(f.Since) {
		return false, nil // without decoding the rest
	}
	r, err := h.record()
	if err != nil {
		return true, nil
	}
	if !f.match(r) {
		return false, nil
	}
	return false, p.print(r, h.line)
}
