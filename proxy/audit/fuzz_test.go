package audit_test

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
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
	// Whole logs as inputs would take the fuzzer a minute each to make smaller, and few
	// of its bytes would get past the hashes. So an input says what is put in place of
	// which bytes of a good log, and 0 and all of them is any text.
	f.Add(uint16(0), uint16(0), []byte{})
	f.Add(uint16(0), uint16(len(text)), []byte("{}\n"))
	f.Add(uint16(len(text)/2), uint16(len(text)), []byte{})
	f.Add(uint16(len(text)), uint16(0), []byte(`{"seq":7,"time":"2030`))
	f.Add(uint16(bytes.IndexByte(text, '\n')+8), uint16(1), []byte("3"))
	f.Fuzz(func(t *testing.T, at, n uint16, put []byte) {
		from := min(int(at), len(text))
		data := slices.Concat(text[:from], put, text[min(from+int(n), len(text)):])
		rep, err := audit.Verify([]audit.Source{source("x", data)},
			audit.VerifyOptions{Keys: []string{key}, Part: true})
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
