package envelope_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
)

// TestReplyIsText: what a call with a Reply gets is what one without it does, as a JSON
// string behind what was begun.
func TestReplyIsText(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	bits := []string{"plain words ", "\"quoted\" ", `back\slash `, "\n", "\t", "é", "😀", "\u2028", "<&>", "\x01"}
	for i := range 400 {
		var text strings.Builder
		for range rng.IntN(60) {
			text.WriteString(bits[rng.IntN(len(bits))])
		}
		asJSON, err := json.Marshal([]any{text.String(), map[string]any{"body": text.String(), "n": i}, i})
		if err != nil {
			t.Fatal(err)
		}
		kind := []proxy.BodyKind{proxy.BodyJSON, proxy.BodyText, proxy.BodyBinary, proxy.BodyEmpty}[i%4]
		body := []byte(text.String())
		if kind == proxy.BodyJSON {
			body = asJSON
		}
		cfg := config.Results{MaxItems: 1 + rng.IntN(4), MaxChars: 100 + rng.IntN(700), TextBlocks: i%5 == 0, Structured: i%11 == 0}
		h := newHarness(t, cfg, kind, body)
		plain, err := h.stage.Handle(context.Background(), &h.call)
		if err != nil {
			t.Fatal(err)
		}
		wired := h.call
		wired.Reply = proxy.NewReply(append(make([]byte, 0, rng.IntN(4000)+10), "before:"...), nil)
		got, err := h.stage.Handle(context.Background(), &wired)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Structured { // those are not for the wire
			if got.Reply != nil || string(got.Text) != string(plain.Text) {
				t.Fatalf("%d: a structured result was rendered as %q", i, wired.Reply.Bytes())
			}
			continue
		}
		rest, ok := strings.CutPrefix(string(got.Reply.Bytes()), "before:")
		var back string
		if err := json.Unmarshal([]byte(rest), &back); !ok || err != nil {
			t.Fatalf("%d: %q is no JSON string: %v", i, got.Reply.Bytes(), err)
		}
		if diff := cmp.Diff(string(plain.Text), back); diff != "" || got.Text != nil {
			t.Fatalf("%d: (-text +wire):\n%s", i, diff)
		}
		if got.Reply.Size() != len(plain.Text) || got.Size() != plain.Size() || string(got.TextBlock) != string(plain.TextBlock) {
			t.Errorf("%d: size %d (%d), want %d", i, got.Reply.Size(), got.Size(), len(plain.Text))
		}
		if diff := cmp.Diff(plain.Truncation, got.Truncation, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Cursor" }, cmp.Ignore())); diff != "" {
			t.Errorf("%d: truncation (-text +wire):\n%s", i, diff)
		}
	}
}

// BenchmarkRender compares the two ways for a page of issues and for a file.
func BenchmarkRender(b *testing.B) {
	page := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"id":12,"title":"A title of usual length","labels":[],"user":{"login":"alice","ok":true}},`, 90), ",") + "]")
	file := []byte(strings.Repeat("func step(left int) (int, error) {\n\treturn left + 1, nil\n}\n", 2000))
	for name, body := range map[string][]byte{"page": page, "file": file} {
		kind := proxy.BodyJSON
		if name == "file" {
			kind = proxy.BodyText
		}
		h := newHarness(&testing.T{}, limits(100, 1_000_000), kind, body)
		for _, wire := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/wire=%v", name, wire), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				var out []byte
				for b.Loop() {
					c := h.call
					if wire {
						c.Reply = proxy.NewReply(out[:0:cap(out)], nil)
					}
					res, err := h.stage.Handle(context.Background(), &c)
					if err != nil {
						b.Fatal(err)
					}
					if res.Reply != nil {
						out = res.Reply.Bytes()
					}
				}
			})
		}
	}
}
