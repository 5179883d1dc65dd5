package gitea_test

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
	"aegis/proxy/mask/match"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	js, any := get("/x"), get("/x")
	any.Produces = ""
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	edge := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, tc := range []struct {
		name       string
		tool       *proxy.Tool
		status     int
		media      string
		body       string
		kind       proxy.BodyKind
		resultType string
	}{
		{"json keeps its bytes", js, 200, "application/json;charset=utf-8", " {\"b\" : 1e2,\"a\":\"\\u00fc\\/\"}\n", proxy.BodyJSON, "application/json"},
		{"null stays null", js, 200, "application/json", "null", proxy.BodyJSON, "application/json"},
		{"problem json", js, 200, "application/problem+json", "{}", proxy.BodyJSON, "application/problem+json"},
		{"no type, json promised", js, 200, "-", "{}", proxy.BodyJSON, ""},
		{"created", js, 201, "application/json", "{}", proxy.BodyJSON, "application/json"},
		{"no content", js, 204, "", "", proxy.BodyEmpty, ""},
		{"empty 200", js, 200, "application/json", "", proxy.BodyEmpty, "application/json"},
		{"depth 100 is json", js, 200, "application/json", edge, proxy.BodyJSON, "application/json"},
		{"depth 5000 is text", js, 200, "application/json", deep, proxy.BodyText, "application/json"},
		{"text", any, 200, "text/plain; charset=utf-8", "diff --git\r\nü\x00", proxy.BodyText, "text/plain"},
		{"html where html is due", any, 200, "text/html", "<p>x</p>", proxy.BodyText, "text/html"},
		{"svg", any, 200, "image/svg+xml", "<svg/>", proxy.BodyText, "image/svg+xml"},
		{"text that is not UTF-8", any, 200, "text/plain", "caf\xe9", proxy.BodyBinary, "text/plain"},
		{"octets that are text", any, 200, "application/octet-stream", "hello\n", proxy.BodyText, "application/octet-stream"},
		{"octets with NUL", any, 200, "application/octet-stream", "hel\x00lo", proxy.BodyBinary, "application/octet-stream"},
		{"octets", any, 200, "application/octet-stream", "\xff\xfe", proxy.BodyBinary, "application/octet-stream"},
		{"zip", any, 200, "application/zip", "PK\x03\x04", proxy.BodyBinary, "application/zip"},
		{"image", js, 200, "image/png", "\x89PNG", proxy.BodyBinary, "image/png"},
		{"log where json was described", js, 200, "text/plain", "log", proxy.BodyText, "text/plain"},
		{"strange type", any, 200, "a b; c", "x", proxy.BodyBinary, "a b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = []string{tc.media}
				if tc.media == "-" {
					w.Header()["Content-Type"] = nil
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			res := must(t, client(t, u.URL), call(tc.tool, nil))
			if res.Kind != tc.kind || string(res.Body) != tc.body || res.ContentType != tc.resultType ||
				res.Status != tc.status {
				t.Errorf("kind %d, %d bytes, type %q, status %d", res.Kind, len(res.Body), res.ContentType, res.Status)
			}
			if tc.kind == proxy.BodyEmpty && res.Body != nil {
				t.Error("an empty body is not nil")
			}
			if res.Source != "gitea" {
				t.Errorf("source %q", res.Source)
			}
		})
	}
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	js := get("/x")
	for _, tc := range []struct{ name, media, body, want string }{
		{"html labelled json", "application/json", "<!DOCTYPE html><title>Login secret-host.internal</title>", "HTML page"},
		{"html where json is due", "text/html; charset=utf-8", "<html>x</html>", "HTML page"},
		{"cut json", "application/json", `{"a": [1, 2`, "cut short"},
		{"two values", "application/json", `{} {}`, "broken"},
		{"not UTF-8", "application/json", "\"\xff\"", "broken"},
		{"plain words", "application/json", "Not found.", "broken"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := serve(t, answer(200, tc.media, tc.body))
			e := fails(t, client(t, u.URL), call(js, nil), proxy.KindUpstreamError)
			if !strings.Contains(e.Public, tc.want) || strings.Contains(e.Public, "secret-host") ||
				len(e.Public) > 300 {
				t.Errorf("message: %s", e.Public)
			}
		})
	}
}

// TestEmptyBodies: a file, a log or a diff without bytes is an empty text, or an empty file, and
// not "no data", which its output schema does not allow. Gitea sends no media type with most.
func TestEmptyBodies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		produces string
		status   int
		media    string
		kind     proxy.BodyKind
	}{
		{"text/plain", 200, "", proxy.BodyText},
		{"text/plain", 200, "text/plain; charset=utf-8", proxy.BodyText},
		{"text/html", 200, "", proxy.BodyText},
		{"text/plain", 200, "application/octet-stream", proxy.BodyText},
		{"application/octet-stream", 200, "text/plain", proxy.BodyText},
		{"application/octet-stream", 200, "image/png", proxy.BodyBinary},
		{"application/octet-stream", 200, "application/octet-stream", proxy.BodyBinary},
		{"application/octet-stream", 200, "", proxy.BodyBinary},
		{"application/zip", 200, "", proxy.BodyBinary},
		{"application/json", 200, "", proxy.BodyEmpty},
		{"application/json", 200, "application/json", proxy.BodyEmpty},
		{"", 200, "", proxy.BodyEmpty},
		{"text/plain", 204, "", proxy.BodyEmpty},
		{"text/plain", 304, "", proxy.BodyEmpty},
	} {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if w.Header()["Content-Type"] = nil; tc.media != "" {
				w.Header().Set("Content-Type", tc.media)
			}
			w.WriteHeader(tc.status)
		})
		tool := get("/x")
		tool.Produces = tc.produces
		if res := must(t, client(t, u.URL), call(tool, nil)); res.Kind != tc.kind || res.Body != nil {
			t.Errorf("%+v: kind %d, %q", tc, res.Kind, res.Body)
		}
	}
}

func TestBodiesOverTheBounds(t *testing.T) {
	t.Parallel()
	bounds := func(cfg *config.Gitea, l *gitea.Limits) { cfg.MaxResponseBytes, l.MaxBinaryBytes = 10_000, 3_000 }
	any := get("/x")
	any.Produces = ""
	list := "[" + strings.Repeat("1,", 20_000) + "1]"
	for _, tc := range []struct {
		name, media string
		size        int
		chunked     bool
		wants       []string
	}{
		{"json", "application/json", 40_000, false, []string{"40000 bytes", "10000 bytes", "gitea.max_response_bytes"}},
		{"json of unknown size", "application/json", 40_000, true, []string{"10000 bytes", "gitea.max_response_bytes"}},
		{"archive", "application/zip", 3_001, false, []string{"application/zip", "3001 bytes", "3000 bytes", "results.max_binary_bytes", "web pages"}},
		{"archive of unknown size", "application/zip", 3_001, true, []string{"3001 bytes", "3000 bytes"}},
		{"octets", "application/octet-stream", 9_000, false, []string{"9000 bytes", "3000 bytes"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := []byte(list)[:tc.size]
			if tc.media != "application/json" {
				body = bytes.Repeat([]byte{0, 0xff}, tc.size)[:tc.size]
			}
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", tc.media)
				if tc.chunked {
					_ = http.NewResponseController(w).Flush()
				} else {
					w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				}
				_, _ = w.Write(body)
			})
			e := fails(t, client(t, u.URL, bounds), call(any, nil), proxy.KindPayloadTooLarge)
			for _, want := range tc.wants {
				if !strings.Contains(e.Public, want) {
					t.Errorf("no %q in: %s", want, e.Public)
				}
			}
		})
	}
	u := serve(t, answer(200, "text/plain", strings.Repeat("x", 9_000)))
	if res := must(t, client(t, u.URL, bounds), call(any, nil)); len(res.Body) != 9_000 {
		t.Errorf("text of %d bytes", len(res.Body)) // text is cut by the envelope, not refused
	}
}

// A server that never stops sending must not fill memory.
func TestEndlessBodyIsBounded(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 404} {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			chunk := bytes.Repeat([]byte("1,"), 32<<10)
			for range 10_000 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			t.Error("600 MB were read")
		})
		k := call(get("/x"), nil)
		kind := proxy.KindPayloadTooLarge
		if status == 404 {
			kind = proxy.KindNotFound
		}
		fails(t, client(t, u.URL), k, kind)
		if k.Stats.BytesIn > 64<<20 {
			t.Errorf("%d bytes came in", k.Stats.BytesIn)
		}
	}
}

func TestCompressionIsNeverAskedFor(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, "{}")
	_ = z.Close()
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped.Bytes())
	})
	fails(t, client(t, u.URL), call(get("/x"), nil), proxy.KindUpstreamError)
	if got := u.requests()[0].Header.Values("Accept-Encoding"); len(got) != 0 {
		t.Errorf("Accept-Encoding: %q", got)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "120834")
	})
	tool := get("/x")
	tool.Method = http.MethodHead
	if res := must(t, client(t, u.URL), call(tool, nil)); res.Kind != proxy.BodyEmpty || res.Status != 200 {
		t.Errorf("kind %d, status %d", res.Kind, res.Status)
	}
}

// Over TLS the request must be as exact as without, in HTTP/2 too, and a
// certificate that nobody vouches for must end the connection.
func TestTLS(t *testing.T) {
	t.Parallel()
	u := &upstream{}
	u.Server = httptest.NewUnstartedServer(u.record(nil))
	u.EnableHTTP2 = true
	u.Config.ErrorLog = log.New(io.Discard, "", 0)
	u.StartTLS()
	t.Cleanup(u.Close)
	tool := get("/repos/{owner}/{repo}/labels/{id}")
	args := proxy.Arguments{"owner": "o", "repo": "r", "id": "a/b 100%"}

	e := fails(t, client(t, u.URL), call(tool, args), proxy.KindUpstreamUnavailable)
	if !strings.Contains(e.Public, "gitea.ca_file") {
		t.Errorf("message: %s", e.Public)
	}
	if n := len(u.requests()); n != 0 {
		t.Fatalf("%d requests over an untrusted connection", n)
	}

	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: u.Certificate().Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	c := client(t, u.URL, func(cfg *config.Gitea, _ *gitea.Limits) { cfg.CAFile = file })
	must(t, c, call(tool, args))
	if got := u.requests()[0]; got.Proto != "HTTP/2.0" || got.URI != "/api/v1/repos/o/r/labels/a%2Fb%20100%25" {
		t.Errorf("sent %s over %s", got.URI, got.Proto)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	var u config.URL
	if err := u.UnmarshalText([]byte("http://127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	for key, cfg := range map[string]config.Gitea{
		"gitea.url":             {},
		"gitea.ca_file":         {URL: &u, CAFile: filepath.Join(t.TempDir(), "missing.pem")},
		"no PEM certificate":    {URL: &u, CAFile: file},
		"gitea.url: required; ": {URL: &config.URL{}},
	} {
		if _, err := gitea.New(cfg, gitea.Limits{Scrub: match.Credentials}, nop()); err == nil ||
			!strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
