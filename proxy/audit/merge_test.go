package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aegis/proxy/audit"
)

// replicas writes logs of three replicas in turn, each over several files, and
// returns their folders. The clock of the second one is set back once.
func replicaLogs(t *testing.T) (dirs []string, calls int) {
	t.Helper()
	at := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	var rigs []*rig
	for i := range 3 {
		cfg := settings()
		cfg.RotateSize = 4 << 10
		r := newRig(t, cfg)
		r.o.Now, r.o.Replica = at.now, fmt.Sprintf("aegis-%d", i+1)
		r.open()
		rigs = append(rigs, r)
		dirs = append(dirs, filepath.Dir(r.path))
	}
	for i := range 30 {
		_ = guarded(rigs[i%3].chain(found, answered), newCall())
		at.add(time.Minute)
		if i == 10 {
			at.add(-30 * time.Second)
		}
	}
	for _, r := range rigs {
		r.log.Close()
	}
	return dirs, 30
}

func merged(t *testing.T, dirs []string, f audit.Filter, asJSON bool) (string, int) {
	t.Helper()
	var chains []audit.Chain
	for _, d := range dirs {
		at, err := audit.Locate([]string{d}, false)
		if err != nil {
			t.Fatal(err)
		}
		chains = append(chains, audit.Chain{Name: d, Sources: at.Sources})
	}
	var out bytes.Buffer
	skipped, err := audit.Merge(chains, f, &audit.Printer{W: &out, JSON: asJSON})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), skipped
}

func TestMerge(t *testing.T) {
	t.Parallel()
	dirs, calls := replicaLogs(t)
	text, skipped := merged(t, dirs, audit.Filter{}, true)
	if skipped != 0 {
		t.Errorf("%d lines skipped", skipped)
	}
	seq, done := map[string]uint64{}, map[string]int{}
	var last time.Time
	for line := range strings.Lines(text) {
		var r struct {
			Replica string
			audit.Record
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Seq != seq[r.Replica]+1 {
			t.Fatalf("%s: record %d after %d", r.Replica, r.Seq, seq[r.Replica])
		}
		seq[r.Replica] = r.Seq
		if r.Time.Before(last.Add(-time.Minute)) { // the clock was set back by less
			t.Errorf("%v after %v", r.Time, last)
		}
		last = r.Time
		if r.Event == audit.ToolInvocation {
			done[r.Replica]++
		}
	}
	if len(done) != 3 || done["aegis-1"]+done["aegis-2"]+done["aegis-3"] != calls || done["aegis-2"] != calls/3 {
		t.Errorf("calls by replica: %v", done)
	}
	// Without the name each line is that of the log.
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1] // its file is not compressed
	_, rest, _ := strings.Cut(line, ",")
	if !strings.Contains(line, `{"replica":"aegis-`) {
		t.Errorf("no name: %s", line)
	}
	found := false
	for _, d := range dirs {
		files, _ := filepath.Glob(filepath.Join(d, "*.jsonl*"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(b, []byte("{"+rest+"\n"))
		}
	}
	if !found {
		t.Errorf("the line is in no log: %s", line)
	}
	table, _ := merged(t, dirs, audit.Filter{Event: "tool_invocation"}, false)
	if !strings.HasPrefix(table, "REPLICA") || strings.Count(table, "\n") != calls+1 ||
		!strings.Contains(table, "\naegis-3 ") {
		t.Errorf("%s", table)
	}
}

func TestMergeSkipsDamage(t *testing.T) {
	t.Parallel()
	dirs, _ := replicaLogs(t)
	whole, _ := merged(t, dirs, audit.Filter{}, true)
	live, err := filepath.Glob(filepath.Join(dirs[1], "*.jsonl"))
	if err != nil || len(live) == 0 {
		t.Fatal(live, err)
	}
	f, err := os.OpenFile(live[len(live)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("no record\n" + strings.Repeat("x", 1<<20) + "\ntorn"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	text, skipped := merged(t, dirs, audit.Filter{}, true)
	if skipped != 3 || text != whole {
		t.Errorf("%d skipped; %d bytes, want %d", skipped, len(text), len(whole))
	}
}
