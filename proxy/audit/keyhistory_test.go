package audit_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"aegis/proxy/audit"
)

// TestCutHiddenByAnotherKey: whoever cuts the log and removes the private key,
// so that the next start makes a new one, hides nothing.
func TestCutHiddenByAnotherKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.calls(5)
	r.log.Close()
	n := len(r.records())
	note, err := os.ReadFile(r.path + ".checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.Join(strings.SplitAfter(r.text(), "\n")[:5], "")
	if err := os.WriteFile(r.path, []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	r.remove(r.o.KeyFile)
	r.open()
	r.calls(1)
	r.log.Close()
	list := r.records()
	if rec := of(list, audit.LogCut); len(rec) != 1 || rec[0].Detail.First != 6 || rec[0].Detail.Last != uint64(n) {
		t.Errorf("records about the cut: %+v", rec)
	}
	kept := ""
	for _, rec := range of(list, audit.LogRecovered) {
		if rec.Detail.File != "" {
			kept = filepath.Join(filepath.Dir(r.path), rec.Detail.File)
		}
	}
	if b, err := os.ReadFile(kept); err != nil || string(b) != string(note) {
		t.Errorf("the old checkpoint is not kept as it was: %q, %v", b, err)
	}
	if p := r.verify().Problem; p == nil || !strings.Contains(p.What, "records 6 to") {
		t.Errorf("problem is %v", p)
	}
	// The folder still is one log.
	if at, err := audit.Locate([]string{filepath.Dir(r.path)}, false); err != nil || len(at.Sources) != 1 ||
		len(at.Keys) != 2 {
		t.Errorf("%+v, %v", at, err)
	}
}

// TestUselessCheckpointIsKeptAside: what cannot be read with any key of the log.
func TestUselessCheckpointIsKeptAside(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"foreign": "hello\n", "large": strings.Repeat("x", 10_000)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings())
			r.open()
			r.log.Close()
			if err := os.WriteFile(r.path+".checkpoint", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			r.open()
			r.log.Close()
			r.mustVerify()
			rec := of(r.records(), audit.LogRecovered)
			if len(rec) != 1 {
				t.Fatalf("records are %+v", rec)
			}
			if b, err := os.ReadFile(filepath.Join(filepath.Dir(r.path), rec[0].Detail.File)); err != nil ||
				string(b) != text {
				t.Errorf("kept aside are %d bytes, %v", len(b), err)
			}
		})
	}
}

// TestManyKeys: the .pub file stays readable however often the key is lost, and
// a start without a new key changes nothing in it.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	// As if it had been lost fifty times: nearly all that the file may have.
	var before strings.Builder
	for i := range 50 {
		_, key, err := note.GenerateKey(rand.Reader, fmt.Sprintf("aegis-audit-%08x", i))
		if err != nil {
			t.Fatal(err)
		}
		before.WriteString(key + "\n")
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(r.path), 0o700), os.WriteFile(r.path+".pub", []byte(before.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		r.open()
		r.log.Close()
		r.remove(r.o.KeyFile)
	}
	keys, err := audit.ReadKeys(r.path + ".pub")
	if err != nil || len(keys) < 30 || len(keys) >= 60 || keys[len(keys)-1] != r.log.PublicKey() {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	r = newRig(t, settings())
	for range 3 {
		r.open()
		r.log.Close()
	}
	if keys, err := audit.ReadKeys(r.path + ".pub"); err != nil || len(keys) != 1 ||
		len(of(r.records(), audit.LogRecovered)) != 0 {
		t.Errorf("%d keys, %v, %+v", len(keys), err, r.records())
	}
}

func TestOpenKeyIsWarnedOf(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings())
	r.open()
	r.log.Close()
	if strings.Contains(r.ops.String(), "0600") {
		t.Errorf("a key that is closed is warned of: %s", r.ops.String())
	}
	if err := os.Chmod(r.o.KeyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.log.Close()
	if !strings.Contains(r.ops.String(), "make its mode 0600") || strings.Contains(r.ops.String(), "PRIVATE") {
		t.Errorf("operational log: %s", r.ops.String())
	}
}
