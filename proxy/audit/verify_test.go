package audit_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aegis/proxy/audit"
)

// lab is a closed log in memory that tests change: its lines, its key and the
// checkpoint that was kept beside it.
type lab struct {
	t     *testing.T
	lines [][]byte
	keys  []string
	pins  []string
}

func newLab(t *testing.T, calls int) *lab {
	t.Helper()
	cfg := settings()
	cfg.CheckpointRecords = 10
	r := newRig(t, cfg)
	r.open()
	r.calls(calls)
	r.log.Close()
	at, err := audit.Locate([]string{r.path}, false)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, keys: at.Keys, pins: at.Checkpoints}
	l.lines = bytes.Split(bytes.TrimSuffix([]byte(r.text()), []byte("\n")), []byte("\n"))
	if rep := l.verify(l.lines); rep.Problem != nil || rep.Checkpoints == 0 || len(rep.Notes) != 0 {
		t.Fatalf("the untouched log: %+v", rep)
	}
	return l
}

func source(name string, text []byte) audit.Source {
	return audit.Source{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }}
}

func (l *lab) verifyText(text []byte) *audit.Report {
	l.t.Helper()
	rep, err := audit.Verify([]audit.Source{source("log", text)},
		audit.VerifyOptions{Keys: l.keys, Checkpoints: l.pins})
	if err != nil {
		l.t.Fatal(err)
	}
	return rep
}

func (l *lab) verify(lines [][]byte) *audit.Report {
	l.t.Helper()
	return l.verifyText(append(bytes.Join(lines, []byte("\n")), '\n'))
}

// found holds that a change is found, at a line that is not before it.
func (l *lab) found(what string, lines [][]byte, at int) {
	l.t.Helper()
	rep := l.verify(lines)
	if rep.Problem == nil {
		l.t.Errorf("%s at line %d is not found", what, at+1)
		return
	}
	if p := rep.Problem; p.Line != 0 && p.Line < int64(at+1) || p.What == "" {
		l.t.Errorf("%s at line %d is reported as %v", what, at+1, p)
	}
}

// TestEveryChangeOfALineIsFound tries each kind of change at each line.
func TestEveryChangeOfALineIsFound(t *testing.T) {
	t.Parallel()
	l := newLab(t, 20)
	n := len(l.lines)
	for i := range n {
		l.found("removal", slices.Concat(l.lines[:i], l.lines[i+1:]), i)
		l.found("duplication", slices.Concat(l.lines[:i+1], l.lines[i:]), i)
		l.found("truncation", l.lines[:i], i)
		l.found("empty line", slices.Concat(l.lines[:i], [][]byte{{}}, l.lines[i:]), i)
		if i+1 < n {
			swapped := slices.Clone(l.lines)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			l.found("swap", swapped, i)
		}
		forged, err := audit.Rehash(l.lines[i], l.lines[(i+3)%n])
		if err != nil {
			t.Fatal(err)
		}
		l.found("insertion of a forged record", slices.Concat(l.lines[:i+1], [][]byte{forged}, l.lines[i+1:]), i)
	}
}

// TestEveryByteIsFound flips a bit, deletes or inserts a byte, or cuts at each place:
// one of these at each, or all.
func TestEveryByteIsFound(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	text := append(bytes.Join(l.lines, []byte("\n")), '\n')
	rng := rand.New(rand.NewPCG(1, 2))
	changes := []struct {
		what string
		make func(text []byte, i int) []byte
	}{
		{"edited", func(text []byte, i int) []byte { text[i] ^= 1 << rng.IntN(8); return text }},
		{"deleted", func(text []byte, i int) []byte { return slices.Delete(text, i, i+1) }},
		{"inserted", func(text []byte, i int) []byte { return slices.Insert(text, i, byte(rng.IntN(256))) }},
		{"cut", func(text []byte, i int) []byte { return text[:i] }},
	}
	whole := os.Getenv("AEGIS_TEST_WHOLE") == "1"
	for i := range text {
		for k, c := range changes {
			if !whole && k != i%len(changes) {
				continue
			}
			if changed := c.make(bytes.Clone(text), i); l.verifyText(changed).Problem == nil {
				t.Fatalf("byte %d (%q) %s is not found: %q", i, text[i], c.what,
					changed[max(0, min(i, len(changed))-20):min(i+20, len(changed))])
			}
		}
	}
}

// rehashed rewrites everything from a line on, as somebody does who can write
// the file and has no key.
func (l *lab) rehashed(lines [][]byte, from int) [][]byte {
	l.t.Helper()
	out := slices.Clone(lines)
	for i := from; i < len(out); i++ {
		var before []byte
		if i > 0 {
			before = out[i-1]
		}
		var err error
		if out[i], err = audit.Rehash(before, out[i]); err != nil {
			l.t.Fatal(err)
		}
	}
	return out
}

// TestForgerWithoutKey: hashes that fit do not help where a checkpoint follows.
func TestForgerWithoutKey(t *testing.T) {
	t.Parallel()
	l := newLab(t, 20)
	n := len(l.lines)
	for i := range n - 1 {
		edited := slices.Clone(l.lines)
		edited[i] = bytes.Replace(edited[i], []byte(`"login":"alice"`), []byte(`"login":"mallo"`), 1)
		if bytes.Equal(edited[i], l.lines[i]) {
			edited = slices.Delete(edited, i, i+1)
		}
		l.found("rewriting with new hashes", l.rehashed(edited, i), i)
		// The checkpoint records alone give it away too.
		alone := *l
		alone.pins = nil
		if i < n-2 {
			alone.found("rewriting with new hashes and no checkpoint outside", l.rehashed(edited, i), i)
		}
		// Without the checkpoint records that give it away, the one beside the log does.
		var quiet [][]byte
		for _, line := range edited {
			if !bytes.Contains(line, []byte(`"event":"checkpoint"`)) {
				quiet = append(quiet, line)
			}
		}
		if rep := l.verify(l.rehashed(quiet, 0)); rep.Problem == nil {
			t.Errorf("a log rewritten from line %d on without checkpoints is not found", i+1)
		}
	}
}

func TestLongRewriteWithoutAnyCheckpoint(t *testing.T) {
	t.Parallel()
	l := newLab(t, 10)
	g, _, err := audit.NewGenerator(30_000, 1<<30, bodies())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(g)
	if err != nil {
		t.Fatal(err)
	}
	l.pins = nil
	if rep := l.verifyText(text); rep.Problem == nil ||
		!strings.Contains(rep.Problem.What, "no checkpoint for more than") {
		t.Errorf("problem is %v", rep.Problem)
	}
}

func TestMessagesNameTheCause(t *testing.T) {
	t.Parallel()
	l := newLab(t, 20)
	other := newLab(t, 20)
	edit := func(i int, from, to string) [][]byte {
		out := slices.Clone(l.lines)
		out[i] = bytes.Replace(out[i], []byte(from), []byte(to), 1)
		return out
	}
	swapped := slices.Clone(l.lines)
	swapped[7], swapped[8] = swapped[8], swapped[7]
	moved := slices.Concat(l.lines[:4], l.lines[6:20], l.lines[4:6], l.lines[20:])
	for name, tc := range map[string]struct {
		lines [][]byte
		line  int64
		want  string
	}{
		"edited":     {edit(4, "alice", "alicf"), 5, "record 5 was edited"},
		"removed":    {slices.Concat(l.lines[:4], l.lines[6:]), 5, "records 5 to 6 are missing: they were removed"},
		"swapped":    {swapped, 8, "record 9 stands where record 8 belongs, which comes later in the file: lines were reordered"},
		"moved":      {moved, 5, "record 7 stands where record 5 belongs, which comes later in the file"},
		"duplicated": {slices.Concat(l.lines[:5], l.lines[4:]), 6, "record 5 stands here twice"},
		"repeated":   {slices.Concat(l.lines[:9], l.lines[3:]), 10, "record 4 stands after record 9"},
		"cut":        {l.lines[:30], 0, "the tail was cut"},
		"beginning":  {l.lines[5:], 0, "records 1 to 5 are missing"},
		"foreign":    {slices.Concat(l.lines[:6], other.lines[6:]), 7, "record 7 does not follow record 6"},
		"no record":  {slices.Concat(l.lines[:6], [][]byte{[]byte("{}")}), 7, "it is not an audit record; record 7 was expected"},
		"long line":  {slices.Concat(l.lines[:6], [][]byte{bytes.Repeat([]byte("x"), 200_000)}, l.lines[6:]), 7, "longer than a record"},
	} {
		t.Run(name, func(t *testing.T) {
			p := l.verify(tc.lines).Problem
			if p == nil || !strings.Contains(p.What, tc.want) || p.Line != tc.line {
				t.Errorf("problem is %v, want line %d and %q", p, tc.line, tc.want)
			}
		})
	}
	t.Run("wrong key", func(t *testing.T) {
		rep, err := audit.Verify([]audit.Source{source("log",
			bytes.Join(append(slices.Clone(l.lines), nil), []byte("\n")))}, audit.VerifyOptions{Keys: other.keys})
		if err != nil || rep.Problem == nil || rep.Problem.Line != 2 ||
			!strings.Contains(rep.Problem.What, "signed with another key") {
			t.Errorf("problem is %v, error %v", rep, err)
		}
		_, err = audit.Verify(nil, audit.VerifyOptions{Keys: other.keys, Checkpoints: l.pins})
		if err == nil || !strings.Contains(err.Error(), "signed with another key") {
			t.Errorf("error is %v", err)
		}
		if _, err := audit.Verify(nil, audit.VerifyOptions{Keys: []string{"nonsense"}}); err == nil {
			t.Error("a key that is none is accepted")
		}
	})
	t.Run("no key", func(t *testing.T) {
		rep, err := audit.Verify([]audit.Source{source("log",
			bytes.Join(append(slices.Clone(l.lines), nil), []byte("\n")))}, audit.VerifyOptions{})
		if err != nil || rep.Problem != nil || rep.Checkpoints != 0 ||
			!strings.Contains(fmt.Sprint(rep.Notes), "no signature was checked") {
			t.Errorf("report is %+v, error %v", rep, err)
		}
	})
	t.Run("cut in a record", func(t *testing.T) {
		text := bytes.Join(l.lines, []byte("\n"))
		rep := l.verifyText(text[:len(text)-40])
		if rep.Problem == nil || !rep.Torn || !strings.Contains(rep.Problem.What, "in the middle of record") {
			t.Errorf("problem is %v", rep.Problem)
		}
	})
	t.Run("part", func(t *testing.T) {
		text := append(bytes.Join(l.lines[5:], []byte("\n")), '\n')
		rep, err := audit.Verify([]audit.Source{source("log", text)},
			audit.VerifyOptions{Keys: l.keys, Checkpoints: l.pins, Part: true})
		if err != nil || rep.Problem != nil || rep.First != 6 {
			t.Errorf("report is %+v, error %v", rep, err)
		}
	})
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	c := &clock{at: time.Unix(1_900_000_000, 0)}
	r.o.Now = c.now
	r.open()
	if _, err := r.log.Append(&audit.Record{Event: audit.Login}, true); err != nil {
		t.Fatal(err)
	}
	c.add(-time.Hour) // while it runs
	if _, err := r.log.Append(&audit.Record{Event: audit.Login}, true); err != nil {
		t.Fatal(err)
	}
	r.log.Close()
	c.add(-time.Hour) // while it does not
	r.open()
	r.log.Close()
	rep := r.mustVerify()
	if len(rep.Notes) != 2 || !strings.Contains(rep.Notes[0].What,
		"older than the one before: the clock was set back") || !strings.Contains(rep.Notes[0].What, "1h0m0s") {
		t.Errorf("notes are %v", rep.Notes)
	}
}

func TestUnfinishedCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	if _, err := r.log.Append(&audit.Record{Event: audit.ToolCallStarted}, false); err != nil {
		t.Fatal(err)
	}
	r.log.Close()
	if rep := r.mustVerify(); rep.Unfinished != 1 ||
		!strings.Contains(fmt.Sprint(rep.Notes), "1 calls have no result") {
		t.Errorf("report is %+v", rep)
	}
}

func bodies() [2]*audit.Record {
	call := &audit.Call{Tool: "gitea_issue_list", Operation: "issueListIssues", Method: "GET",
		Path: "/repos/{owner}/{repo}/issues", Risk: "R0", Target: &audit.Target{Owner: "acme", Repo: "site"}}
	common := audit.Record{RequestID: "AF4TQYSUWQC5EEPQWIR6D2ACSJ", Identity: &audit.Identity{Login: "alice",
		Mode: "static"}, Client: &audit.Client{Name: "probe", Addr: "192.0.2.7"}, Call: call}
	start, end := common, common
	start.Event, end.Event = audit.ToolCallStarted, audit.ToolInvocation
	end.Result = &audit.Result{Outcome: "ok", Status: 200}
	return [2]*audit.Record{&start, &end}
}

// peak reads on and remembers the largest heap that it saw.
type peak struct {
	io.ReadCloser
	reads int
	most  uint64
}

func (p *peak) Read(b []byte) (int, error) {
	if p.reads++; p.reads%256 == 0 {
		p.most = max(p.most, heap())
	}
	return p.ReadCloser.Read(b)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMillionRecords: one pass, and memory that does not grow with the log.
func TestMillionRecords(t *testing.T) {
	n := 100_000
	if os.Getenv("AEGIS_TEST_WHOLE") == "1" && !raced {
		n = 1_000_000
	}
	g, key, err := audit.NewGenerator(n, 1000, bodies())
	if err != nil {
		t.Fatal(err)
	}
	p := &peak{ReadCloser: g}
	before := heap()
	rep, err := audit.Verify([]audit.Source{{Name: "log", Open: func() (io.ReadCloser, error) { return p, nil }}}, audit.VerifyOptions{Keys: []string{key}})
	if err != nil || rep.Problem != nil {
		t.Fatalf("%+v %v", rep, err)
	}
	if rep.Records != uint64(n) || rep.Checkpoints != n/1000 {
		t.Errorf("%d records and %d checkpoints", rep.Records, rep.Checkpoints)
	}
	// The map of calls in flight is the largest part: 65536 entries.
	const bound = 8 << 20
	if grown := int64(p.most) - int64(before); grown > bound || p.most == 0 {
		t.Errorf("the heap grew by %d bytes, more than %d", grown, bound)
	}
}

func TestCompressedFilesCountTheSame(t *testing.T) {
	t.Parallel()
	l := newLab(t, 20)
	dir := t.TempDir()
	pack := func(name string, lines [][]byte) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
		_ = z.Close()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Named in the wrong order, they are read in the right one.
	files := []string{pack("c.gz", l.lines[30:]), pack("a.gz", l.lines[:10]), pack("b.gz", l.lines[10:30])}
	verify := func(files []string) *audit.Report {
		at, err := audit.Locate(files, false)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := audit.Verify(at.Sources, audit.VerifyOptions{Keys: l.keys, Checkpoints: l.pins})
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	if rep := verify(files); rep.Problem != nil {
		t.Errorf("problem: %v", rep.Problem)
	}
	if p := verify([]string{files[0], files[1]}).Problem; p == nil || !strings.Contains(p.What, "records 11 to 30 are missing: a rotated file") || !strings.HasSuffix(p.File, "c.gz") {
		t.Errorf("a missing file in the middle: %v", p)
	}
	if p := verify(files[1:]).Problem; p == nil ||
		!strings.Contains(p.What, "the tail was cut, or a file was not named") {
		t.Errorf("a missing last file: %v", p)
	}
	if p := verify([]string{files[0], files[2]}).Problem; p == nil ||
		!strings.Contains(p.What, "records 1 to 10 are missing") {
		t.Errorf("a missing first file: %v", p)
	}
	data, err := os.ReadFile(files[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[2], data[:len(data)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if p := verify(files).Problem; p == nil || !strings.HasSuffix(p.File, "b.gz") {
		t.Errorf("a cut compressed file: %v", p)
	}
}
