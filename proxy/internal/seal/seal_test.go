package seal_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"aegis/proxy/internal/seal"
)

const (
	keyA = "first-key-0123456789-0123456789-abcdef"
	keyB = "other-key-0123456789-0123456789-abcdef"
)

func ring(t testing.TB, keys ...string) *seal.Ring {
	t.Helper()
	var secrets [][]byte
	for _, k := range keys {
		secrets = append(secrets, []byte(k))
	}
	r, err := seal.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sealed(t testing.TB, r *seal.Ring, context, plain string) []byte {
	t.Helper()
	out, err := r.Seal(context, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	r := ring(t, keyA)
	for _, plain := range []string{"", "x", "a token", strings.Repeat("long ", 20000)} {
		s := sealed(t, r, "cred/1", plain)
		got, stale, err := r.Open("cred/1", s)
		if err != nil || stale || string(got) != plain || got == nil {
			t.Errorf("%d bytes: %v, stale %v", len(plain), err, stale)
		}
		if len(s) != len(plain)+seal.Overhead || !bytes.HasPrefix(s, []byte("v1."+r.KeyIDs()[0]+".")) {
			t.Errorf("form: %d bytes over, %.12q", len(s)-len(plain), s)
		}
		if len(plain) > 1 && bytes.Contains(s, []byte(plain)) {
			t.Error("the plain text shows")
		}
		if bytes.Equal(s, sealed(t, r, "cred/1", plain)) {
			t.Error("sealed twice, it is the same")
		}
	}
}

func TestOnlyInItsContext(t *testing.T) {
	t.Parallel()
	r := ring(t, keyA)
	s := sealed(t, r, "cred/1", "a token")
	for _, context := range []string{"", "cred/", "cred/2", "cred/1 ", "Cred/1", "v1|cred/1"} {
		if got, _, err := r.Open(context, s); !errors.Is(err, seal.ErrDamaged) || got != nil {
			t.Errorf("context %q: %q, %v", context, got, err)
		}
	}
}

func TestEveryBitCounts(t *testing.T) {
	t.Parallel()
	r := ring(t, keyA)
	s := sealed(t, r, "c", "a token")
	for i := range len(s) * 8 {
		bad := slices.Clone(s)
		bad[i/8] ^= 1 << (i % 8)
		got, _, err := r.Open("c", bad)
		if got != nil || !errors.Is(err, seal.ErrDamaged) && !errors.Is(err, seal.ErrKey) {
			t.Errorf("bit %d: %q, %v", i, got, err)
		}
	}
	for n := range s {
		if got, _, err := r.Open("c", s[:n]); got != nil || !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("%d bytes of %d: %q, %v", n, len(s), got, err)
		}
	}
	if _, _, err := r.Open("c", append(slices.Clone(s), 0)); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestOldKeysOpenAndSaySo(t *testing.T) {
	t.Parallel()
	old := sealed(t, ring(t, keyA), "c", "kept")
	both := ring(t, keyB, keyA)
	got, stale, err := both.Open("c", old)
	if err != nil || !stale || string(got) != "kept" {
		t.Errorf("%q, stale %v, %v", got, stale, err)
	}
	if _, stale, err := both.Open("c", sealed(t, both, "c", "new")); err != nil || stale {
		t.Errorf("stale %v, %v", stale, err)
	}
	if _, _, err := ring(t, keyA).Open("c", sealed(t, both, "c", "new")); !errors.Is(err, seal.ErrKey) {
		t.Errorf("the second key sealed: %v", err)
	}
}

func TestMissingKeyIsNamed(t *testing.T) {
	t.Parallel()
	a, b := ring(t, keyA), ring(t, keyB)
	s := sealed(t, a, "c", "a token")
	_, _, err := b.Open("c", s)
	if !errors.Is(err, seal.ErrKey) || !strings.Contains(err.Error(), a.KeyIDs()[0]) {
		t.Errorf("%v; want the name of key %s", err, a.KeyIDs()[0])
	}
	if id, err := seal.KeyID(s); err != nil || id != a.KeyIDs()[0] || !a.Has(id) || b.Has(id) {
		t.Errorf("KeyID %q, %v", id, err)
	}
}

// What was sealed and derived with keyA once.
const (
	recordedID      = "c19a2195"
	recorded        = "76312e63313961323139352e66ff14df2abc80cf57207aa3844e55932dacb6ac75e9579b6d08df253596c6ded9c12c4728175703d6e056f0ccafedbecf05b64e"
	recordedDerived = "9d7daa5e8b420af6b631a13e5d5125c1f3d2d74d5478caa8bd7b6a1c4e7fb491"
)

// TestFormIsKept: what this version has written, later ones open.
func TestFormIsKept(t *testing.T) {
	t.Parallel()
	r := ring(t, keyA)
	if id := r.KeyIDs()[0]; id != recordedID {
		t.Errorf("key id %s, was %s", id, recordedID)
	}
	raw, err := hex.DecodeString(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := r.Open("cred/1", raw); err != nil || string(got) != "recorded" {
		t.Errorf("%q, %v", got, err)
	}
	if got := hex.EncodeToString(r.Derive("label")[0]); got != recordedDerived {
		t.Errorf("derived %s, was %s", got, recordedDerived)
	}
}

func TestDerive(t *testing.T) {
	t.Parallel()
	a, both := ring(t, keyA), ring(t, keyB, keyA)
	if d := both.Derive("x"); len(d) != 2 || !bytes.Equal(d[1], a.Derive("x")[0]) || bytes.Equal(d[0], d[1]) || len(d[0]) != 32 {
		t.Error("a key of 32 bytes for each of the ring, in its order")
	}
	if bytes.Equal(a.Derive("x")[0], a.Derive("y")[0]) {
		t.Error("two labels, one key")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	short := []byte("short-secret-key")
	for name, keys := range map[string][][]byte{
		"none":  nil,
		"short": {[]byte(keyA), short},
		"empty": {{}},
		"long":  {bytes.Repeat([]byte("x"), seal.MaxKey+1)},
		"twice": {[]byte(keyA), []byte(keyB), []byte(keyA)},
		"many":  make([][]byte, seal.MaxKeys+1),
	} {
		r, err := seal.New(keys...)
		if err == nil || r != nil || strings.Contains(err.Error(), string(short)) || strings.Contains(err.Error(), keyA) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

func TestRingNeverPrintsItself(t *testing.T) {
	t.Parallel()
	r := ring(t, keyA, keyB)
	type holder struct {
		R *seal.Ring
		V seal.Ring
		r seal.Ring
	}
	h := holder{r, *r, *r}
	var out bytes.Buffer
	for _, v := range []any{r, *r, h, &h, []seal.Ring{*r}, map[string]any{"r": *r}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		out.Write(text)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
	}
	_, _, err := r.Open("c", []byte("x"))
	fmt.Fprint(&out, err)
	for name, secret := range secrets(r) {
		for form, s := range map[string]string{
			"bytes": string(secret), "hex": hex.EncodeToString(secret), "HEX": strings.ToUpper(hex.EncodeToString(secret)),
			"decimal": strings.Trim(fmt.Sprint(secret), "[]"), "Go": strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret), "[]byte{"), "}"),
		} {
			if strings.Contains(out.String(), s) {
				t.Errorf("the %s shows as %s", name, form)
			}
		}
	}
	if !strings.Contains(out.String(), "<key ring>") {
		t.Error("nothing was printed")
	}
}

func secrets(r *seal.Ring) map[string][]byte {
	return map[string][]byte{"key": []byte(keyA), "second key": []byte(keyB), "stretched key": seal.Master(r, 0), "second stretched key": seal.Master(r, 1)}
}

func FuzzOpen(f *testing.F) {
	r := ring(f, keyA, keyB)
	// Not sealed here: each process of a fuzzing run would make another one.
	good, err := hex.DecodeString(recorded)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("cred/1", good)
	f.Add("cred/2", good)
	f.Add("cred/1", good[:len(good)-1])
	f.Add("", []byte("v1.00000000."))
	f.Add("c", []byte{})
	f.Fuzz(func(t *testing.T, context string, data []byte) {
		plain, _, err := r.Open(context, data)
		if err == nil && (context != "cred/1" || !bytes.Equal(data, good) || string(plain) != "recorded") {
			t.Errorf("a forgery opens: %q", plain)
		}
		if err != nil && (plain != nil || !errors.Is(err, seal.ErrDamaged) && !errors.Is(err, seal.ErrKey)) {
			t.Errorf("%q, %v", plain, err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	r := ring(b, keyA)
	s := sealed(b, r, "cred/1", strings.Repeat("x", 500))
	for b.Loop() {
		if _, _, err := r.Open("cred/1", s); err != nil {
			b.Fatal(err)
		}
	}
}
