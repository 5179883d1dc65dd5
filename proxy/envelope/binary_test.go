package envelope_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"aegis/proxy"
)

// binaryResult is the data of a binary result.
type binaryResult struct {
	Content *string `json:"content_base64"`
	Size    int     `json:"size"`
	Offset  *int    `json:"offset"`
	SHA256  string  `json:"sha256"`
}

func binaryOf(t *testing.T, a answer) (out binaryResult) {
	t.Helper()
	if err := json.Unmarshal(a.Data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func randomBytes(n int) []byte {
	rng := rand.New(rand.NewPCG(13, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestBinaryIsBoundedLikeText: no answer about a file is longer than a text could be, and its
// ranges are the file whose digest the first answer gives.
func TestBinaryIsBoundedLikeText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ size, chars int }{
		{4 << 20, 60000}, {200_000, 1000}, {800, 1000}, {1000, 1000}, {3001, 1001}, {3002, 1002}, {60000, 1003},
	} {
		t.Run(fmt.Sprintf("%d bytes in %d", tc.size, tc.chars), func(t *testing.T) {
			t.Parallel()
			raw := randomBytes(tc.size)
			h := newHarness(t, limits(10, tc.chars), proxy.BodyBinary, raw)
			all := h.walk()
			sum := sha256.Sum256(raw)
			var got []byte
			for i, a := range all {
				if n := utf8.RuneCount(a.Data); n > tc.chars {
					t.Fatalf("answer %d has %d characters of data, the bound is %d", i, n, tc.chars)
				}
				b := binaryOf(t, a)
				if b.Size != tc.size || b.SHA256 != hex.EncodeToString(sum[:]) {
					t.Fatalf("answer %d: size %d, digest %q", i, b.Size, b.SHA256)
				}
				if i == 0 {
					if b.Content != nil || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "truncation.cursor") {
						t.Fatalf("the first answer: %.300s, warnings %q", a.Data, a.Warnings)
					}
					continue
				}
				part, err := base64.StdEncoding.DecodeString(*b.Content)
				if err != nil || *b.Offset != len(got) || a.Truncation.Returned != len(part) || a.Truncation.Available != tc.size {
					t.Fatalf("answer %d: %v, offset %d after %d bytes, %+v", i, err, *b.Offset, len(got), a.Truncation)
				}
				got = append(got, part...)
			}
			if !bytes.Equal(got, raw) {
				t.Errorf("the ranges are %d bytes and not the file's", len(got))
			}
		})
	}
	small := newHarness(t, limits(10, 1000), proxy.BodyBinary, randomBytes(600)).do("")
	if b := binaryOf(t, small); b.Content == nil || small.Truncation != nil || b.SHA256 != "" {
		t.Errorf("a small file: %s", small.Data)
	}
}

// TestBinaryRangeOfAChangedFile says so, also when the file is shorter now than the offset.
func TestBinaryRangeOfAChangedFile(t *testing.T) {
	t.Parallel()
	h := newHarness(t, limits(10, 1000), proxy.BodyBinary, randomBytes(9000))
	cursor := h.do("").Truncation.Cursor
	if a := h.do(cursor); len(a.Warnings) != 0 {
		t.Errorf("nothing has changed: %q", a.Warnings)
	}
	cursor = h.do(cursor).Truncation.Cursor
	for _, size := range []int{9001, 10, 1} {
		h.body = randomBytes(size)
		if a := h.do(cursor); len(a.Warnings) != 1 || binaryOf(t, a).Size != size {
			t.Errorf("%d bytes now: %.300s, warnings %q", size, a.Data, a.Warnings)
		}
	}
}

// TestFieldsOfALongFile: who asks for its size alone misses nothing; who asks for the content
// learns why it is not there.
func TestFieldsOfALongFile(t *testing.T) {
	t.Parallel()
	h := newHarness(t, limits(10, 1000), proxy.BodyBinary, randomBytes(9000))
	h.call.Options.Fields = []string{"size"}
	if a := h.do(""); string(a.Data) != `{"size":9000}` || a.Truncation != nil || len(a.Warnings) != 0 {
		t.Errorf("size: %s, %+v, %q", a.Data, a.Truncation, a.Warnings)
	}
	h.call.Options.Fields = []string{"content_base64"}
	a := h.do("")
	if string(a.Data) != `{}` || a.Truncation.Cursor == "" || len(a.Truncation.UnknownFields) != 0 || len(a.Warnings) != 1 {
		t.Errorf("content: %s, %+v, %q", a.Data, a.Truncation, a.Warnings)
	}
	if b := binaryOf(t, h.do(a.Truncation.Cursor)); b.Content == nil {
		t.Error("the cursor gives no content")
	}
}
