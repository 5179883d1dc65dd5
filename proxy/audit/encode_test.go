package audit_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"aegis/proxy/audit"
)

// fill sets every field of a struct to something, or sometimes leaves it out.
func fill(rng *rand.Rand, v reflect.Value) {
	texts := []string{"", "alice", "acme-infra.2", `a "b" \\ <c> & d`, "é\u2028\xff", "tab\there", "\x7f", "[masked]"}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Set(reflect.Zero(v.Type())); rng.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(rng, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Detail" && v.Type().Field(i).Type.String() != "time.Time" {
				fill(rng, v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(texts[rng.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -7, 1 << 53, rng.Int64()}[rng.IntN(5)])
	case reflect.Uint64:
		v.SetUint([]uint64{0, 1, rng.Uint64()}[rng.IntN(3)])
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Slice:
		for range rng.IntN(4) {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(rng, e)
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rng.IntN(4) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(rng, k)
			fill(rng, e)
			v.SetMapIndex(k, e)
		}
	}
}

// TestEncodingIsThatOfJSON: what is written is the JSON of the record with every field
// that it has, in their order, without the four that the chain adds.
func TestEncodingIsThatOfJSON(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var r audit.Record
		fill(rng, reflect.ValueOf(&r).Elem())
		r.Seq, r.Prev, r.Hash = 1, "p", "h"
		written, err := audit.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(whole), `"prev":"p",`)
		if want := "{" + strings.TrimSuffix(rest, `,"hash":"h"}`) + "}"; string(written) != want {
			t.Fatalf("written:\n%s\nwant:\n%s", written, want)
		}
	}
}
