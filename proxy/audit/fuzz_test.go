package audit_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"aegis/proxy/audit"
)

// FuzzParseLine holds that a line whose hash fits is JSON with the members that
// the chain is made of, and that no line ends the process.
func FuzzParseLine(f *testing.F) {
	g, _, err := audit.NewGenerator(20, 5, bodies())
	if err != nil {
		f.Fatal(err)
	}
	text, err := io.ReadAll(g)
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		f.Add(line)
	}
	f.Add([]byte(`{"seq":1,"time":"","prev":"","event":"","hash":""}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, _, err := audit.ParseLine(line)
		if err != nil {
			return
		}
		if !json.Valid(line) || r.Seq == 0 || r.Event == "" || len(r.Hash) != 64 || len(r.Prev) != 64 {
			t.Errorf("accepted %q as %+v", line, r)
		}
	})
}

// FuzzVerify holds that no bytes end the process, and that what is accepted
// without any complaint about the chain is whole lines.
func FuzzVerify(f *testing.F) {
	g, key, err := audit.NewGenerator(6, 3, bodies())
	if err != nil {
		f.Fatal(err)
	}
	text, err := io.ReadAll(g)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := audit.Verify([]audit.Source{source("x", data)}, audit.VerifyOptions{Keys: []string{key}, Part: true})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Problem == nil && uint64(bytes.Count(data, []byte("\n"))) != rep.Records {
			t.Errorf("%d records in %q", rep.Records, data)
		}
		var out bytes.Buffer
		if _, err := audit.Show([]audit.Source{source("x", data)}, audit.Filter{}, &audit.Printer{W: &out}); err != nil {
			t.Fatal(err)
		}
	})
}
