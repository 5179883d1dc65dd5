package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// direct shares no connection with another request: httptest closes the idle ones of
// http.DefaultTransport whenever a test's server is closed, and a test beside it fails.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// TestMain makes the test binary serve as the aegis command of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"aegis": main})
}

// TestScripts runs the real program as its users do.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"freeport": freePort,
			"waitfor":  waitFor,
			"waitexec": waitExec,
			"post":     post,
			"get":      get,
			"field":    field,
		},
		RequireExplicitExec: true,
	})
}

// freePort sets the variable to a loopback address that nothing listens on.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	addr, err := freeAddr()
	ts.Check(err)
	ts.Setenv(args[0], addr)
}

// waitFor polls a URL until it answers with the status.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	var last string
	if !eventually(func() bool {
		res, err := direct.Get(args[0])
		if err != nil {
			last = err.Error()
			return false
		}
		_ = res.Body.Close()
		last = fmt.Sprint(res.StatusCode)
		return last == args[1]
	}) {
		ts.Fatalf("%s does not answer %s: %s", args[0], args[1], last)
	}
}

// waitExec runs a command until it succeeds: "aegis health" does not wait long for
// an answer, which a slow machine may need.
func waitExec(ts *testscript.TestScript, _ bool, args []string) {
	var err error
	if !eventually(func() bool { err = ts.Exec(args[0], args[1:]...); return err == nil }) {
		ts.Fatalf("%v", err)
	}
}

// post sends a file as JSON-RPC with a bearer token; the answer becomes stdout.
// Its status must be 200, or with "!" must not.
func post(ts *testscript.TestScript, neg bool, args []string) {
	req, err := http.NewRequest(http.MethodPost, args[0], strings.NewReader(ts.ReadFile(args[2])))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if args[1] != "" {
		req.Header.Set("Authorization", "Bearer "+args[1])
	}
	do(ts, neg, req)
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	ts.Check(err)
	if len(args) > 1 {
		req.Host = args[1]
	}
	do(ts, neg, req)
}

func do(ts *testscript.TestScript, neg bool, req *http.Request) {
	res, err := direct.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	if (res.StatusCode == http.StatusOK) == neg {
		ts.Fatalf("%s: %s", res.Status, body)
	}
	ts.Check(os.WriteFile(ts.MkAbs("answer"), fmt.Appendf(nil, "%s\n%s\n", res.Status, body), 0o600))
}

// field sets a variable from the line of a file that begins with a prefix.
func field(ts *testscript.TestScript, _ bool, args []string) {
	for line := range strings.SplitSeq(ts.ReadFile(args[1]), "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), args[2]); ok {
			ts.Setenv(args[0], strings.TrimSpace(rest))
			return
		}
	}
	ts.Fatalf("no line in %s begins with %s", args[1], args[2])
}

func TestRunIsAShell(t *testing.T) {
	t.Parallel()
	// A second use in one process must see nothing of the first.
	for range 2 {
		var out, errs strings.Builder
		if code := run(context.Background(), []string{"tools", "--json"}, &out, &errs); code != 0 {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		var list []toolJSON
		if err := json.Unmarshal([]byte(out.String()), &list); err != nil {
			t.Fatal(err)
		}
		if len(list) != 538 {
			t.Errorf("%d tools, want 537 operations and the raw tool", len(list))
		}
	}
}
