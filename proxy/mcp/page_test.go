package mcp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"aegis/proxy/mcp"
)

func TestTakesGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"":                              false,
		"gzip":                          true,
		"GZip":                          true,
		"x-gzip":                        true,
		"br, gzip":                      true,
		"br;q=1.0, gzip;q=0.8":          true,
		"gzip;q=0":                      false,
		"gzip; q=0.000":                 false,
		"gzip;q=0.001":                  true,
		"*":                             true,
		"*;q=0":                         false,
		"gzip;q=0, *":                   false,
		"identity":                      false,
		"identity, gzip;q=0.5":          false,
		"identity;q=0.5, gzip":          true,
		"deflate, br":                   false,
		"gzip;q=2":                      false,
		"gzip;q=x":                      false,
		"gzip;level=9":                  false,
		"gzipped":                       false,
		" gzip ;q=1 , identity; q=0.1":  true,
		"identity;q=0.2, *;q=0.2":       true,
		"gzip;q=0.1;x=1, identity;q=.2": false,
	} {
		if got := mcp.TakesGzip([]string{header}); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
	if !mcp.TakesGzip([]string{"br", "gzip"}) || mcp.TakesGzip(nil) {
		t.Error("several lines, or none")
	}
}

// TestCompressedLists: a list is the same compressed and not, whatever the id, and
// caches are told that it depends on what was asked for.
func TestCompressedLists(t *testing.T) {
	t.Parallel()
	o := settings(textChain("{}"))
	o.Tools = toolSet(100)
	srv := serve(t, o)
	get := func(version, id, encoding string) (*http.Response, []byte) {
		r := newRequest(t, srv.URL, version, "tools/list", "{}")
		body, _ := io.ReadAll(r.Body)
		body = bytes.Replace(body, []byte(`"id":7`), []byte(`"id":`+id), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Accept-Encoding", encoding)
		res, err := asSent.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err != nil || res.ContentLength != int64(len(got)) || res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%v, %d bytes of %d, Vary %q", err, len(got), res.ContentLength, res.Header.Get("Vary"))
		}
		return res, got
	}
	var wg sync.WaitGroup
	for _, version := range []string{"2025-06-18", legacy, current} {
		for _, id := range []string{"0", "-1", "999999999999999", `"x"`, strconv.Quote(string(bytes.Repeat([]byte("i"), 250)))} {
			wg.Go(func() {
				plainRes, plain := get(version, id, "identity")
				zipRes, zipped := get(version, id, "br, gzip")
				if plainRes.Header.Get("Content-Encoding") != "" || zipRes.Header.Get("Content-Encoding") != "gzip" || len(zipped) > len(plain)/4 {
					t.Errorf("%s: %q and %q, %d and %d bytes", version, plainRes.Header.Get("Content-Encoding"), zipRes.Header.Get("Content-Encoding"), len(plain), len(zipped))
				}
				z, err := gzip.NewReader(bytes.NewReader(zipped))
				if err != nil {
					t.Error(err)
					return
				}
				z.Multistream(false) // some clients read one file and no more
				back, err := io.ReadAll(z)
				if err != nil || !bytes.Equal(back, plain) {
					t.Errorf("%s, id %s: unpacked differently: %v", version, id, err)
				}
				var m struct{ ID json.RawMessage }
				if err := json.Unmarshal(plain, &m); err != nil || string(m.ID) != id {
					t.Errorf("id %s came back as %s, %v", id, m.ID, err)
				}
			})
		}
	}
	wg.Wait()
}
