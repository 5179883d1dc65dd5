package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"aegis/proxy"
	"aegis/proxy/mcp"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*mcp.Options)
		want   string
	}{
		"no handler":      {func(o *mcp.Options) { o.Handler = nil }, "no handler"},
		"no name":         {func(o *mcp.Options) { o.Name = "" }, "no name or version"},
		"no version":      {func(o *mcp.Options) { o.Version = "" }, "no name or version"},
		"page size":       {func(o *mcp.Options) { o.PageSize = -1 }, "negative"},
		"TTL":             {func(o *mcp.Options) { o.ListTTL = -1 }, "negative"},
		"body bound":      {func(o *mcp.Options) { o.MaxBodyBytes = -1 }, "negative"},
		"nameless tool":   {func(o *mcp.Options) { o.Tools[0] = &proxy.Tool{} }, "no name"},
		"same name twice": {func(o *mcp.Options) { o.Tools[1] = o.Tools[0] }, "two tools are named"},
		"no schema": {func(o *mcp.Options) { o.Tools[0] = &proxy.Tool{Name: "x"} },
			"tool x: the input schema is not an object"},
		"broken schema": {func(o *mcp.Options) { o.Tools[0] = &proxy.Tool{Name: "x", InputSchema: json.RawMessage(`{"a":`)} },
			"tool x: encode JSON"},
	}
	for name, c := range cases {
		o := settings(textChain(""))
		c.change(&o)
		if _, err := mcp.New(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestBrokenSudoTools: a list that cannot be made is an internal error, on the fast path and
// on the SDK's, and no list of other tools.
func TestBrokenSudoTools(t *testing.T) {
	t.Parallel()
	o := settings(textChain(""))
	o.SudoTools = func() []*proxy.Tool { return []*proxy.Tool{{}} }
	h := newHandler(t, o)
	for _, protocol := range []string{legacy, oldest} {
		r := newRequest(t, "http://127.0.0.1/mcp", protocol, "tools/list", `{}`)
		x := &proxy.RequestInfo{RequestID: "r", Identity: &proxy.Identity{Login: "root", AllowSudo: true}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(proxy.WithRequestInfo(r.Context(), x)))
		if body := w.Body.String(); !strings.Contains(body, "internal error") || strings.Contains(body, `"tools"`) {
			t.Errorf("%s: %d %s", protocol, w.Code, body)
		}
	}
}

// TestNoIdentity shows that a forgotten authentication opens nothing.
func TestNoIdentity(t *testing.T) {
	t.Parallel()
	called := false
	h := newHandler(t, settings(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		called = true
		return &proxy.Result{}, nil
	}))
	for _, x := range []*proxy.RequestInfo{nil, {RequestID: "r"}} {
		for _, method := range []string{"tools/call", "tools/list"} {
			r := newRequest(t, "http://127.0.0.1/mcp", legacy, method, `{"name":"a"}`)
			if x != nil {
				r = r.WithContext(proxy.WithRequestInfo(r.Context(), x))
			}
			if w := answer(t, h, r); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "gitea") {
				t.Errorf("info %v, %s: %d %s", x, method, w.Code, w.Body)
			}
		}
	}
	if called {
		t.Error("the chain was called")
	}
}

// TestEveryNameReachesChain: the chain alone decides which tools exist.
func TestEveryNameReachesChain(t *testing.T) {
	t.Parallel()
	var got string
	srv := serve(t, settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		got = c.Name
		return &proxy.Result{Text: []byte("{}")}, nil
	}))
	for _, name := range []string{"gitea_issue_action_001", "nope", "aegis", "", " ", "GITEA", "a\tb", "é\u2028", strings.Repeat("n", 300)} {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		got = "unset"
		callTool(t, srv.URL, legacy, `{"name":`+string(quoted)+`}`)
		if got != name {
			t.Errorf("the chain saw %q, want %q", got, name)
		}
	}
}

// patience is how long the tests wait for what must come. It costs nothing when all
// is well.
const patience = 2 * time.Minute

func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	for _, v := range generations {
		for _, accept := range []string{"application/json, text/event-stream", "text/event-stream"} {
			t.Run(v+" "+accept, func(t *testing.T) { testClientGoesAway(t, v, accept) })
		}
	}
}

// testClientGoesAway has a handler that waits for its context alone.
func testClientGoesAway(t *testing.T, version, accept string) {
	t.Helper()
	entered, left, served := make(chan struct{}), make(chan struct{}), make(chan struct{})
	giveUp := make(chan struct{})
	h := identified(newHandler(t, settings(func(ctx context.Context, _ *proxy.Call) (*proxy.Result, error) {
		close(entered)
		select {
		case <-ctx.Done():
			close(left)
		case <-giveUp:
		}
		return nil, proxy.NewError(proxy.KindCancelled, "cancelled", ctx.Err())
	})))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	defer close(giveUp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRequest(t, srv.URL, version, "tools/call", `{"name":"slow"}`).WithContext(ctx)
	r.Header.Set("Accept", accept)
	go func() {
		<-entered
		cancel()
	}()
	if res, err := direct.Do(r); err == nil {
		res.Body.Close()
	}
	for _, end := range []struct {
		of string
		c  chan struct{}
	}{{"the call's context", left}, {"the HTTP handler", served}} {
		select {
		case <-end.c:
		case <-time.After(patience):
			t.Fatalf("%s did not end", end.of)
		}
	}
}

// TestCancelInBatch: within a batch the protocol's own cancellation works too.
func TestCancelInBatch(t *testing.T) {
	t.Parallel()
	h := identified(newHandler(t, settings(func(ctx context.Context, _ *proxy.Call) (*proxy.Result, error) {
		select {
		case <-ctx.Done():
			return nil, proxy.NewError(proxy.KindCancelled, "cancelled", ctx.Err())
		case <-time.After(patience):
			return &proxy.Result{Text: []byte("too late")}, nil
		}
	})))
	// The pings give the call time to begin: cancelled earlier, it never does.
	body := `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}},` +
		strings.Repeat(`{"jsonrpc":"2.0","id":2,"method":"ping"},`, mcp.MaxBatch-2) +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]`
	if w := post(t, h, oldest, body); strings.Contains(w.Body.String(), "too late") {
		t.Errorf("the call was not cancelled: %s", w.Body)
	}
}

// TestEventsHaveNoLineEnds: JSON that comes with line ends fits an event.
func TestEventsHaveNoLineEnds(t *testing.T) {
	t.Parallel()
	srv := serve(t, settings(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Text: []byte("a\r\nb"), Structured: []byte("{\r\n\t\"a\": [\n]}\n")}, nil
	}))
	r := newRequest(t, srv.URL, legacy, "tools/call", `{"name":"a"}`)
	r.Header.Set("Accept", "text/event-stream")
	body := string(do(t, r).body)
	if !strings.Contains(body, `"structuredContent":{"a":[]}`) || strings.Count(body, "\n") != 3 || strings.Contains(body, "\r") {
		t.Errorf("%q", body)
	}
}

// TestDeadlineReachesChain: a deadline of the server's bounds the call, also
// in the protocols where the SDK detaches it.
func TestDeadlineReachesChain(t *testing.T) {
	t.Parallel()
	h := identified(newHandler(t, settings(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
		_, ok := ctx.Deadline()
		x := proxy.RequestInfoFrom(ctx)
		return &proxy.Result{Text: fmt.Appendf(nil, "%v %v", ok, x != nil && x.RequestID == c.RequestID)}, nil
	})))
	for _, v := range generations {
		r := newRequest(t, "http://127.0.0.1/mcp", v, "tools/call", `{"name":"a"}`)
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		if body := answer(t, h, r.WithContext(ctx)).Body.String(); !strings.Contains(body, `"true true"`) {
			t.Errorf("%s: %s", v, body)
		}
	}
}

// TestPanics shows that a panic ends neither the process nor says anything.
func TestPanics(t *testing.T) {
	t.Parallel()
	values := map[string]func(){
		"string":  func() { panic("hunter2") },
		"error":   func() { panic(errTest) },
		"runtime": func() { _ = []int{}[len("hunter2")] },
		"nil":     func() { panic(nil) }, //nolint:govet // the point of the test
		"abort":   func() { panic(http.ErrAbortHandler) },
	}
	for name, f := range values {
		t.Run(name, func(t *testing.T) {
			var log logBuffer
			o := settings(func(context.Context, *proxy.Call) (*proxy.Result, error) { f(); return nil, nil })
			o.Log = zerolog.New(&log)
			srv := serve(t, o)
			for _, v := range generations {
				res := callTool(t, srv.URL, v, `{"name":"a","arguments":{"token":"hunter2"}}`)
				want := `{"error":{"status":null,"kind":"internal","message":"internal error; the request id names it in the server's log","request_id":"req-1","retry_after":null}}`
				if !res.IsError || res.Content[0].Text != want {
					t.Errorf("result: %+v", res)
				}
			}
			if s := log.String(); strings.Contains(s, "hunter2") || !strings.Contains(s, "req-1") || !strings.Contains(s, "TestPanics") {
				t.Errorf("log: %s", s)
			}
		})
	}
}

// TestSenselessAnswers are answers that only a defect makes.
func TestSenselessAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]proxy.HandlerFunc{
		"neither result nor error": func(context.Context, *proxy.Call) (*proxy.Result, error) { return nil, nil },
		"both": func(context.Context, *proxy.Call) (*proxy.Result, error) {
			return &proxy.Result{Text: []byte("hunter2")}, errTest
		},
		"broken structured content": func(context.Context, *proxy.Call) (*proxy.Result, error) {
			return &proxy.Result{Text: []byte("hunter2"), Structured: []byte(`{"a":`)}, nil
		},
	} {
		var log logBuffer
		o := settings(f)
		o.Log = zerolog.New(&log)
		srv := serve(t, o)
		res := callTool(t, srv.URL, current, `{"name":"a"}`)
		if !res.IsError || len(res.Content) != 1 || !strings.Contains(res.Content[0].Text, `"internal"`) || strings.Contains(res.Content[0].Text, "hunter2") {
			t.Errorf("%s: %+v", name, res)
		}
		if !strings.Contains(log.String(), `"request_id":"req-1"`) {
			t.Errorf("%s: log %s", name, log.String())
		}
	}
}

// TestConcurrentCalls has each client get its own answer.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	srv := serve(t, settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		text := strings.Repeat(c.Name+`"`, 2000)
		return &proxy.Result{Text: []byte(text), TextBlock: c.RawArgs}, nil
	}))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 10 {
				v := generations[(i+j)%len(generations)]
				name := fmt.Sprintf("tool-%d-%d", i, j)
				args := `{"x":"` + strings.Repeat(name, 1+(i+j)%2*200) + `"}`
				rep := do(t, newRequest(t, srv.URL, v, "tools/call", `{"name":"`+name+`","arguments":`+args+`}`))
				var res toolResult
				if err := json.Unmarshal(rep.Result, &res); err != nil || len(res.Content) != 2 {
					t.Errorf("%s: %v %.200s", name, err, rep.body)
					return
				}
				if res.Content[0].Text != strings.Repeat(name+`"`, 2000) || res.Content[1].Text != args {
					t.Errorf("%s got another's answer", name)
				}
			}
		})
	}
	wg.Wait()
}

// TestBatchAnswers has every message of a batch get its own answer, whatever
// their order.
func TestBatchAnswers(t *testing.T) {
	t.Parallel()
	o := settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		return &proxy.Result{Text: []byte("text of " + c.Name), TextBlock: []byte("block of " + c.Name), Structured: []byte(`{"of":"` + c.Name + `"}`)}, nil
	})
	srv := serve(t, o)
	var messages []string
	for i := range mcp.MaxBatch {
		method, params := "tools/call", fmt.Sprintf(`{"name":"n%d"}`, i)
		if i%4 == 3 {
			method, params = "tools/list", `{}`
		}
		messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i, method, params))
	}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		r := newRequest(t, srv.URL, oldest, "x", "{}")
		r.Body = http.NoBody
		body := "[" + strings.Join(messages, ",") + "]"
		r.Body, r.ContentLength = readCloser(body), int64(len(body))
		r.Header.Set("Accept", accept)
		seen := map[int]bool{}
		for _, m := range batchReplies(t, do(t, r)) {
			seen[m.ID] = true
			if m.ID%4 == 3 {
				if len(m.Result.Tools) != len(o.Tools) {
					t.Errorf("message %d: %d tools", m.ID, len(m.Result.Tools))
				}
				continue
			}
			name := fmt.Sprintf("n%d", m.ID)
			want := []struct{ Text string }{{"text of " + name}, {"block of " + name}}
			if diff := cmp.Diff(want, m.Result.Content); diff != "" || m.Result.Struct.Of != name {
				t.Errorf("message %d: %s %+v", m.ID, diff, m.Result.Struct)
			}
		}
		if len(seen) != mcp.MaxBatch {
			t.Errorf("%s: %d answers", accept, len(seen))
		}
	}
}

type batchReply struct {
	ID     int
	Result struct {
		Tools   []json.RawMessage
		Content []struct{ Text string }
		Struct  struct{ Of string } `json:"structuredContent"`
	}
}

func batchReplies(t *testing.T, rep reply) (out []batchReply) {
	t.Helper()
	if strings.HasPrefix(rep.header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(rep.body, &out); err != nil {
			t.Fatalf("%v: %.300s", err, rep.body)
		}
		return out
	}
	for line := range strings.Lines(string(rep.body)) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var m batchReply
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%v: %.300s", err, data)
		}
		out = append(out, m)
	}
	return out
}

// TestNothingStays counts goroutines after many requests.
func TestNothingStays(t *testing.T) {
	h := identified(newHandler(t, settings(textChain("{}"))))
	run := func(n int) {
		for i := range n {
			answer(t, h, newRequest(t, "http://127.0.0.1/mcp", generations[i%4], "tools/call", `{"name":"a"}`))
		}
	}
	run(20)
	before := runtime.NumGoroutine()
	run(400)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if runtime.NumGoroutine() <= before+2 {
			return
		}
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestClientWordsAreCleaned(t *testing.T) {
	t.Parallel()
	calls := make(chan proxy.Client, 1)
	h := identified(newHandler(t, settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		calls <- c.Client
		return &proxy.Result{Text: []byte("{}")}, nil
	})))
	r := newRequest(t, "http://127.0.0.1/mcp", legacy, "tools/call", `{"name":"a"}`)
	r.Header.Set("User-Agent", "\x1b[31mclient\u202e/"+strings.Repeat("9", 100)+" (linux)")
	answer(t, h, r)
	want := proxy.Client{Name: "[31mclient", Version: strings.Repeat("9", 32), Addr: "192.0.2.7", Protocol: legacy}
	if diff := cmp.Diff(want, <-calls); diff != "" {
		t.Errorf("client (-want +got):\n%s", diff)
	}
	if got := mcp.Clean(" \xffa\nb\u200b"+strings.Repeat("é", 80), 64); got != "ab"+strings.Repeat("é", 61) {
		t.Errorf("%q", got)
	}
}
