package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
	"aegis/proxy/mcp"
)

func readCloser(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

// post sends a raw body of the given version.
func post(t testing.TB, h http.Handler, version, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := newRequest(t, "http://127.0.0.1/mcp", version, "tools/call", "{}")
	r.Body, r.ContentLength = readCloser(body), int64(len(body))
	return answer(t, h, r)
}

// TestBodyBound tries bodies around the bound, above the SDK's own of 4 MiB.
func TestBodyBound(t *testing.T) {
	t.Parallel()
	var size int
	o := settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		size = len(c.RawArgs)
		return &proxy.Result{Text: []byte("{}")}, nil
	})
	h := identified(newHandler(t, o)) // the default bound
	frame := len(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":""}}}`)
	for _, v := range []string{legacy, oldest} {
		for over, want := range map[int]int{0: http.StatusOK, 1: http.StatusRequestEntityTooLarge} {
			for _, chunked := range []bool{false, true} {
				fill := 8<<20 - frame + over
				body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"` + strings.Repeat("y", fill) + `"}}}`
				r := newRequest(t, "http://127.0.0.1/mcp", v, "tools/call", "{}")
				r.Body, r.ContentLength = readCloser(body), int64(len(body))
				if chunked {
					r.ContentLength = -1
				}
				size = 0
				if w := answer(t, h, r); w.Code != want {
					t.Errorf("%s, chunked %v, %d over: status %d: %s", v, chunked, over, w.Code, w.Body)
				}
				if want == http.StatusOK && size != fill+len(`{"x":""}`) {
					t.Errorf("%d bytes of arguments arrived", size)
				}
			}
		}
	}
}

// TestOuterBound: a smaller bound before the endpoint is answered the same way.
func TestOuterBound(t *testing.T) {
	t.Parallel()
	inner := identified(newHandler(t, settings(textChain("{}"))))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 100)
		inner.ServeHTTP(w, r)
	})
	w := post(t, h, legacy, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("y", 100)+`"}}`)
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "100 bytes") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// TestHostileBodies are bodies made to cost more than they are.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":`
	cases := map[string]struct {
		body string
		want int
	}{
		"deep arguments":        {call + deep(mcp.MaxDepth) + `}}`, http.StatusBadRequest},
		"very deep":             {deep(4 << 20), http.StatusBadRequest},
		"unclosed":              {strings.Repeat("[", 4<<20), http.StatusBadRequest},
		"deep enough":           {call + deep(900) + `}}`, http.StatusOK},
		"a million pings":       {"[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 1<<16) + "1]", http.StatusBadRequest},
		"a large _meta":         {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"` + strings.Repeat("x", mcp.MaxRest) + `"}}}`, http.StatusRequestEntityTooLarge},
		"many members":          {`{` + strings.Repeat(`"a":1,`, 1000) + `"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusOK},
		"invalid UTF-8":         {call + "{\"a\":\"\xff\"}}}", http.StatusBadRequest},
		"a control character":   {call + "{\"a\":\"\n\"}}}", http.StatusBadRequest},
		"escaped member":        {strings.Replace(call, "arguments", `\u0061rguments`, 1) + `{"a":"` + strings.Repeat("x", 2000) + `"}}}`, http.StatusOK},
		"huge number as id":     {`{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, http.StatusBadRequest},
		"fraction as id":        {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, http.StatusBadRequest},
		"rounded id":            {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, http.StatusBadRequest},
		"negative id":           {`{"jsonrpc":"2.0","id":-12,"method":"ping"}`, http.StatusOK},
		"large name":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("n", 1<<19) + `"}}`, http.StatusOK},
		"arguments given twice": {call + `{"b":"` + strings.Repeat("x", 2000) + `"},"arguments":{}}}`, http.StatusOK},
	}
	h := identified(newHandler(t, settings(textChain("{}"))))
	for name, c := range cases {
		w := post(t, h, oldest, c.body)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %.300s", name, w.Code, c.want, w.Body)
		}
		if w.Body.Len() > 2000 {
			t.Errorf("%s: %d bytes of answer", name, w.Body.Len())
		}
	}
}

// TestLiftedArguments: the chain gets the very bytes that the client sent, on
// whatever path they went.
func TestLiftedArguments(t *testing.T) {
	t.Parallel()
	var got string
	h := identified(newHandler(t, settings(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		got = string(c.RawArgs)
		return &proxy.Result{Text: []byte("{}")}, nil
	})))
	long := strings.Repeat("z", mcp.LiftFrom)
	for _, args := range []string{
		`{}`, `{"a":1.0, "a" : 2}`, `{"a":"` + long + `"}`, `{ "a" : "` + long + `\u00e9\/" , "a":1e2 }`,
		`["` + long + `"]`, `"` + long + `"`, `{"params":{"arguments":"` + long + `"}}`, `null`,
	} {
		for _, v := range generations {
			got = "unset"
			r := newRequest(t, "http://127.0.0.1/mcp", v, "tools/call", `{"name":"a","arguments":`+args+`}`)
			if w := answer(t, h, r); w.Code != http.StatusOK || got != args {
				t.Errorf("%s: status %d, got %.100q, want %.100q", v, w.Code, got, args)
			}
		}
	}
}

// TestOddCallsStayWhole: where two readers could disagree about what the
// arguments are, one reader gets everything.
func TestOddCallsStayWhole(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("p", mcp.LiftFrom)
	for _, s := range []string{
		`{"method":"tools/call","params":{"name":"a","arguments":1,"arguments":"PAD"}}`,
		`{"method":"tools/call","params":{"name":"a","name":"b","arguments":"PAD"}}`,
		`{"method":"tools/call","params":{"name":"a","\u0061rguments":1,"arguments":"PAD"}}`,
		`{"method":"tools/call","params":{"n\u0061me":"a","arguments":"PAD"}}`,
		`{"method":"tools/call","params":{},"params":{"arguments":"PAD"}}`,
		`{"method":"tools/call","p\u0061rams":{},"params":{"arguments":"PAD"}}`,
		`{"method":"ping","method":"tools/call","params":{"arguments":"PAD"}}`,
		`{"method":"tools\/call","params":{"arguments":"PAD"}}`,
		`{"method":"prompts/get","params":{"arguments":"PAD"}}`,
		`{"method":"tools/call","params":{"Arguments":"PAD"}}`,
		`{"method":"tools/call","params":["PAD"]}`,
		`{"method":"tools/call","params":"PAD"}`,
		`{"method":"tools/call","x":"PAD"}`,
		`[{"method":"tools/call","params":{"arguments":"PAD"}}]`,
	} {
		body := []byte(strings.ReplaceAll(s, "PAD", pad))
		if rest, args := mcp.Lift(body); args != nil || !bytes.Equal(rest, body) {
			t.Errorf("%s: lifted", s)
		}
	}
}

// FuzzLift holds what is left and what was lifted equal to the whole.
func FuzzLift(f *testing.F) {
	pad := strings.Repeat("p", mcp.LiftFrom)
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"a":"PAD"}}}`,
		` { "method" : "tools/call" , "params" : { "arguments" : [ "PAD" ] , "name":"a"} } `,
		`{"method":"tools/call","params":{"arguments":1,"arguments":"PAD"}}`,
		`{"method":"tools/call","method":"ping","params":{"arguments":"PAD"}}`,
		`{"method":"tools\/call","params":{"arguments":"PAD"}}`,
		`{"method":"tools/call","params":{"\u0061rguments":1,"arguments":"PAD"}}`,
		`{"method":"tools/call","params":["arguments","PAD"]}`,
		`[{"method":"tools/call","params":{"arguments":"PAD"}}]`,
		`"PAD"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		body := bytes.ReplaceAll(in, []byte("PAD"), []byte(pad))
		if jsonscan.CheckValues(body, mcp.MaxDepth, 1<<62) != nil {
			t.Skip()
		}
		rest, args := mcp.Lift(bytes.Clone(body))
		if args == nil {
			if !bytes.Equal(rest, body) {
				t.Fatalf("changed without lifting: %q", rest)
			}
			return
		}
		var whole, left map[string]any
		if err := json.Unmarshal(body, &whole); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(rest, &left); err != nil {
			t.Fatalf("the rest is not JSON: %v: %q", err, rest)
		}
		if left["method"] != "tools/call" {
			t.Fatalf("lifted out of %v", left["method"])
		}
		var lifted any
		if err := json.Unmarshal(args, &lifted); err != nil {
			t.Fatal(err)
		}
		params := left["params"].(map[string]any)
		if diff := cmp.Diff(map[string]any{}, params["arguments"]); diff != "" {
			t.Fatalf("the rest has arguments: %s", diff)
		}
		params["arguments"] = lifted
		if diff := cmp.Diff(whole, left); diff != "" {
			t.Errorf("(-whole +parts):\n%s", diff)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("", "zzz")
	f.Add("gitea_issue_get", mcp.EncodeCursor("gitea_issue_get"))
	f.Fuzz(func(t *testing.T, name, cursor string) {
		if name != "" && len(name) <= 64 {
			if got, ok := mcp.DecodeCursor(mcp.EncodeCursor(name)); !ok || got != name {
				t.Errorf("%q came back as %q, %v", name, got, ok)
			}
		}
		if got, ok := mcp.DecodeCursor(cursor); ok && mcp.EncodeCursor(got) != cursor {
			t.Errorf("%q is a second spelling of the cursor for %q", cursor, got)
		}
	})
}

// FuzzRequest sends anything at all.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		``, `5`, `[]`, `[[]]`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"cursor":"zzz"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":null}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
	} {
		for i := range generations {
			f.Add([]byte(s), i)
		}
	}
	h := identified(newHandler(f, settings(textChain(`{"a":1}`))))
	f.Fuzz(func(t *testing.T, body []byte, version int) {
		v := generations[uint(version)%uint(len(generations))]
		r := newRequest(t, "http://127.0.0.1/mcp", v, "tools/call", "{}")
		var head struct {
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(body, &head) == nil {
			r.Header.Set("Mcp-Method", head.Method)
			r.Header.Set("Mcp-Name", head.Params.Name)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		w := answer(t, h, r)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		out := w.Body.String()
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid([]byte(out)) {
			t.Errorf("not JSON: %q", out)
		}
		for _, leak := range []string{"*mcp.", "jsonrpc2.", "goroutine ", "unmarshaling \""} {
			if strings.Contains(out, leak) && !bytes.Contains(body, []byte(leak)) {
				t.Errorf("the answer names %q: %s", leak, out)
			}
		}
	})
}

func FuzzScrubSDKError(f *testing.F) {
	f.Add(0, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unmarshaling \"x\" into a *mcp.T"}}`))
	f.Add(1, []byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}\n\n"))
	f.Add(2, []byte("malformed payload: "))
	f.Fuzz(func(t *testing.T, kind int, p []byte) {
		kinds := []string{"application/json", "text/event-stream", "text/plain; charset=utf-8"}
		contentType := kinds[uint(kind)%3]
		out := mcp.ScrubSDKError(contentType, bytes.Clone(p))
		if contentType == kinds[0] && json.Valid(p) && !json.Valid(out) {
			t.Errorf("%q became %q", p, out)
		}
		if contentType == kinds[2] && len(out) > 600 {
			t.Errorf("%d bytes of text", len(out))
		}
	})
}

// TestCursorsSurviveChange: a list that changes between two pages loses and
// doubles nothing that stays.
func TestCursorsSurviveChange(t *testing.T) {
	t.Parallel()
	o := settings(textChain("{}"))
	all := toolSet(20)
	o.Tools, o.PageSize = all, 6
	before := identified(newHandler(t, o))
	o.Tools = nil
	for _, tool := range all {
		if !strings.HasSuffix(tool.Name, "5") { // 005 ends the first page
			o.Tools = append(o.Tools, tool)
		}
	}
	after := identified(newHandler(t, o))
	names, cursor := page(t, before, "")
	for cursor != "" {
		var more []string
		more, cursor = page(t, after, cursor)
		names = append(names, more...)
	}
	seen := map[string]int{}
	for _, n := range names {
		seen[n]++
	}
	for _, tool := range o.Tools {
		if seen[tool.Name] != 1 {
			t.Errorf("%s: listed %d times", tool.Name, seen[tool.Name])
		}
	}
}

func page(t *testing.T, h http.Handler, cursor string) (names []string, next string) {
	t.Helper()
	w := answer(t, h, newRequest(t, "http://127.0.0.1/mcp", legacy, "tools/list", fmt.Sprintf(`{"cursor":%q}`, cursor)))
	var rep struct {
		Result struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	for _, tool := range rep.Result.Tools {
		names = append(names, tool.Name)
	}
	return names, rep.Result.NextCursor
}
