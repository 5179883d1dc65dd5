package gitea_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"aegis/proxy"
)

// TestBuffersServeOneCallAtATime: memory that serves again is never that of an
// answer which is still being used, whatever the sizes and whether they are
// announced or not.
func TestBuffersServeOneCallAtATime(t *testing.T) {
	t.Parallel()
	body := func(n int) string { return `["` + strings.Repeat(strconv.Itoa(n%10), 50+n*n*37%90_000) + `"]` }
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(path.Base(r.URL.Path))
		w.Header().Set("Content-Type", "application/json")
		if n%2 == 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(body(n))))
		}
		_, _ = w.Write([]byte(body(n)))
	}))
	defer srv.Close()
	c := client(t, srv.URL)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 40 {
				n := 1 + worker*40 + i
				k := call(get("/things/{n}"), proxy.Arguments{"n": fmt.Sprint(n)})
				k.Reply = proxy.NewReply(nil, nil)
				res, err := c.Handle(t.Context(), k)
				if err != nil {
					t.Error(err)
					return
				}
				if string(res.Body) != body(n) {
					t.Errorf("call %d got the answer of another one", n)
				}
				if i%3 > 0 { // a caller may forget it
					k.Reply.Sent()
					k.Reply.Sent() // or say it twice
				}
			}
		})
	}
	wg.Wait()
}

// TestCutAnswersAreErrors: fewer bytes than announced are no answer.
func TestCutAnswersAreErrors(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte(`[1]`))
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	if res, err := client(t, srv.URL).Handle(t.Context(), call(get("/things"), nil)); err == nil {
		t.Errorf("got %q", res.Body)
	}
}
