// Command conformance runs the official MCP conformance suite against
// "aegis demo" and compares what comes out with scenarios.txt. It starts the demo
// on a free loopback port, puts a proxy before it that adds the bearer token
// (the suite cannot send one), and stops both. The scenarios for authorization
// servers it runs against the demo itself, as a person who signs in.
//
//	npm --prefix cmd/conformance ci && go run ./cmd/conformance
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// token is the demo's bearer token; it is worth nothing outside this run. At least 16
// characters, as the configuration requires.
const token = "conformance-run-token-0001"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run is true when every scenario passed, and at least one did.
func run(ctx context.Context, out io.Writer) (bool, error) {
	list, err := readScenarios("cmd/conformance/scenarios.txt")
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "aegis-conformance-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	// The program is built and run as people run it, not called: the suite speaks to it
	// over HTTP.
	endpoint, stop, err := startDemo(ctx, dir)
	if err != nil {
		return false, err
	}
	defer stop()
	target, closeProxy, err := startProxy(endpoint)
	if err != nil {
		return false, err
	}
	defer closeProxy()
	passed, failed, skipped := 0, 0, 0
	for _, s := range list {
		// They are counted, so that a list that skips more and more is seen.
		if !s.run {
			skipped++
			continue
		}
		check, at := s.check, target
		if s.name == authorization {
			check, at = s.authorize, endpoint
		}
		problems, err := check(ctx, at, filepath.Join(dir, "out"), list)
		if err != nil {
			return false, err
		}
		if len(problems) == 0 {
			passed++
			fmt.Fprintf(out, "ok    %s %s\n", s.version, s.name)
			continue
		}
		failed++
		fmt.Fprintf(out, "FAIL  %s %s\n      %s\n", s.version, s.name, strings.Join(problems, "\n      "))
	}
	fmt.Fprintf(out, "conformance: %d passed, %d failed, %d skipped\n", passed, failed, skipped)
	// Without a scenario that ran, the suite or the list is broken.
	return failed == 0 && passed > 0, nil
}

// scenario is one line of scenarios.txt. What follows the name of one that is skipped
// is the reason, which must be there.
type scenario struct {
	run           bool
	version, name string
}

// readScenarios reads the list. A line that cannot be read is an error: a scenario that
// is silently left out would pass.
func readScenarios(file string) ([]scenario, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w; run from the top of the repository", err)
	}
	defer f.Close()
	var list []scenario
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := sc.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		w := strings.Fields(line)
		if len(w) < 3 || w[0] != "run" && w[0] != "skip" || w[0] == "skip" && len(w) < 4 {
			return nil, fmt.Errorf("%s: cannot read %q", file, line)
		}
		list = append(list, scenario{run: w[0] == "run", version: w[1], name: w[2]})
	}
	return list, nil
}

// check runs one scenario and returns its failed checks, without those that
// scenarios.txt skips.
func (s scenario) check(ctx context.Context, target, out string, list []scenario) ([]string, error) {
	out = filepath.Join(out, s.version, s.name)
	ctx, cancel := context.WithTimeout(ctx, suiteTimeout)
	defer cancel()
	log, err := suite(ctx, out, "server", "--url", target, "--scenario", s.name, "--spec-version", s.version,
		"--timeout", "60000").CombinedOutput()
	if err = started(err); err != nil {
		return nil, err
	}
	return s.results(out, 1, log, list)
}

// results returns the failed checks of a run that wrote to out. It must have a result for each
// of its scenarios: one that did not run would have no failures either. log is what the suite
// said.
func (s scenario) results(out string, scenarios int, log []byte, list []scenario) (problems []string, err error) {
	files, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if err != nil || len(files) < scenarios {
		return []string{fmt.Sprintf("%d results; the suite says:\n%s", len(files), tail(log, 2000))}, err
	}
	for _, file := range files {
		failed, err := failedChecks(file, s, list)
		if err != nil {
			return nil, err
		}
		problems = append(problems, failed...)
	}
	return problems, nil
}

// suiteTimeout bounds one run of the suite, which takes seconds; a broken one hangs.
const suiteTimeout = 10 * time.Minute

// suite returns a command of the suite that writes its results to out. Its own Node.js
// is used, from npm: the one of the machine may be too old.
func suite(ctx context.Context, out string, args ...string) *exec.Cmd {
	const modules = "cmd/conformance/node_modules/"
	args = append([]string{modules + "@modelcontextprotocol/conformance/dist/index.js"}, args...)
	return exec.CommandContext(ctx, modules+".bin/node", append(args, "-o", out)...)
}

// started returns the error of a suite that did not start. Its exit code counts
// nothing: it is 1 for checks that scenarios.txt skips too.
func started(err error) error {
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return nil
	}
	return fmt.Errorf("the suite does not start (run npm --prefix cmd/conformance ci): %w", err)
}

// failedChecks reads the results of one run. At least one check must have succeeded,
// since a scenario that did not run has no failures either.
func failedChecks(file string, s scenario, list []scenario) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var checks []struct {
		ID, Status, ErrorMessage string
	}
	if err := json.Unmarshal(data, &checks); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	// A single check is skipped as scenario:check, so that the rest of the scenario
	// still counts.
	skipped := func(id string) bool {
		return slices.ContainsFunc(list, func(a scenario) bool {
			return a.name == s.name+":"+id && a.version == s.version && !a.run
		})
	}
	var problems []string
	good := 0
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS", "INFO":
			good++
		case "FAILURE", "WARNING":
			if !skipped(c.ID) {
				problems = append(problems, fmt.Sprintf("%s %s: %s", c.Status, c.ID, c.ErrorMessage))
			}
		}
	}
	if good == 0 {
		problems = append(problems, "no check succeeded")
	}
	return problems, nil
}

// tail keeps the end of a log, where the error is.
func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// startDemo builds and starts the demo and returns its endpoint.
func startDemo(ctx context.Context, dir string) (string, func(), error) {
	bin := filepath.Join(dir, "aegis")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/aegis").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, bin, "demo", "--listen", "127.0.0.1:0", "--token", token)
	var log bytes.Buffer
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // it was interrupted, so it may fail
	}
	for sc := bufio.NewScanner(stdout); sc.Scan(); {
		if _, after, ok := strings.Cut(sc.Text(), "MCP endpoint"); ok {
			// Somebody must go on reading, or the demo would block once the pipe is
			// full.
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return strings.TrimSpace(after), stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("the demo did not start: %s", log.String())
}

// startProxy serves the endpoint with the token added. The client's Host stays,
// since one scenario is about it.
func startProxy(endpoint string) (string, func(), error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	origin := &url.URL{Scheme: u.Scheme, Host: u.Host}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(origin)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Read whole first: an answer that comes while the proxy still waits for the
			// end of the request's body would make it drop the connection.
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
			forward.ServeHTTP(w, r)
		})}
	go func() { _ = srv.Serve(ln) }() // ends with Close
	return "http://" + ln.Addr().String() + u.Path, func() { _ = srv.Close() }, nil
}
