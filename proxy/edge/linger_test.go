package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy/edge"
)

// TestEarlyAnswersArrive: a client that wants its connection closed has time to read an
// answer to a body that was not read: a reset in its place loses it. Where the body was
// read whole nobody waits.
func TestEarlyAnswersArrive(t *testing.T) {
	t.Parallel()
	answers := map[string]http.HandlerFunc{
		"unread": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"in part": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 10))
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		},
		"closed": func(w http.ResponseWriter, r *http.Request) {
			_ = r.Body.Close()
			w.WriteHeader(http.StatusForbidden)
		},
		"whole": func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
	}
	for name, answer := range answers {
		for _, head := range []string{
			"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 1000",
			"POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked",
			"POST / HTTP/1.0\r\nContent-Length: 1000",
		} {
			synctest.Test(t, func(t *testing.T) {
				e := edge.Edge{Hosts: hosts(t), Linger: 1, Log: zerolog.Nop()}
				c := inMemory(t, httptest.NewUnstartedServer(e.Wrap(answer)), false)()
				body := strings.Repeat("x", 1000)
				if strings.Contains(head, "chunked") {
					body = "3e8\r\n" + body + "\r\n0\r\n\r\n"
				}
				go fmt.Fprintf(c, "%s\r\nHost: localhost\r\n\r\n%s", head, body)
				in := bufio.NewReader(c)
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, _ = io.Copy(io.Discard, in)
				if waits := time.Since(began) > 0; waits == (res.StatusCode == http.StatusOK) {
					t.Errorf("%s, %s: %s; the connection is kept for the answer: %v", name, head, res.Status, waits)
				}
				_ = c.Close()
			})
		}
	}
}

// TestLingeringIsBounded: clients that leave bodies unread hold few connections open, and
// those that come once the time of the others is over get theirs.
func TestLingeringIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := edge.Edge{Hosts: hosts(t), Linger: 2, Log: zerolog.Nop()}
		dial := inMemory(t, httptest.NewUnstartedServer(e.Wrap(http.NotFoundHandler())), false)
		ask := func() *bufio.Reader {
			c := dial()
			go fmt.Fprint(c, "POST / HTTP/1.0\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\npart")
			in := bufio.NewReader(c)
			if _, err := http.ReadResponse(in, nil); err != nil {
				t.Fatal(err)
			}
			return in
		}
		for range 2 { // the second time those of the first have gone
			_, _, third := ask(), ask(), ask()
			began := time.Now()
			if _, _ = io.Copy(io.Discard, third); time.Since(began) > 0 {
				t.Error("a connection more than may linger does")
			}
			last := ask()
			time.Sleep(time.Second)
			if _, _ = io.Copy(io.Discard, last); e.Lingering() != 0 {
				t.Errorf("%d linger for ever", e.Lingering())
			}
		}
	})
}
