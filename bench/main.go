package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/server"
)

const token = "bench-bearer-token-0123456789"

func main() {
	rounds := flag.Int("rounds", 11, "interleaved rounds; the median counts")
	calls := flag.Int("calls", 300, "requests per target and round")
	flag.Parse()
	if err := run(os.Stdout, *rounds, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// target is one way to get an answer.
type target struct {
	name    string
	request func(payload) (*http.Request, error)
}

func run(w io.Writer, rounds, calls int) error {
	list := payloads()
	stub := newStub(list)
	defer stub.Close()
	proxy, err := newPlainProxy(stub.URL)
	if err != nil {
		return err
	}
	defer proxy.Close()
	endpoint, stop, err := startAegis(stub.URL, "interval")
	if err != nil {
		return err
	}
	defer stop()
	durable, stopDurable, err := startAegis(stub.URL, "always")
	if err != nil {
		return err
	}
	defer stopDurable()
	targets := []target{
		{"direct", get(stub.URL)},
		{"reverse proxy", get(proxy.URL)},
		{"aegis 2025-11-25", call(endpoint, "2025-11-25")},
		{"aegis 2026-07-28", call(endpoint, "2026-07-28")},
		{"aegis, audit sync always", call(durable, "2025-11-25")},
	}
	fmt.Fprintf(w, "%s, %d CPUs, %d rounds of %d requests each\n\n", runtime.Version(), runtime.NumCPU(), rounds, calls)
	for _, p := range list {
		for _, workers := range []int{1, 16} {
			if err := compare(w, p, targets, plan{workers, rounds, calls}); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

type plan struct{ workers, rounds, calls int }

// compare measures all targets in turn, round by round, and prints the medians
// and their ratios to the plain reverse proxy of the same round.
func compare(w io.Writer, p payload, targets []target, pl plan) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	defer client.CloseIdleConnections()
	took := make([][]time.Duration, len(targets))
	for round := -1; round < pl.rounds; round++ { // the first round warms up
		for i, t := range targets {
			d, err := measure(client, t, p, pl)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			if round >= 0 {
				took[i] = append(took[i], d)
			}
		}
	}
	fmt.Fprintf(w, "%s (%d bytes), concurrency %d\n", p.name, len(p.body), pl.workers)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tper request\trequests/s\tlatency x proxy\tthroughput x proxy\tspread\t")
	for i, t := range targets {
		ratios := make([]float64, pl.rounds)
		for r := range ratios {
			ratios[r] = float64(took[i][r]) / float64(took[1][r])
		}
		slices.Sort(ratios)
		med := median(took[i])
		per := med / time.Duration(pl.calls) * time.Duration(pl.workers)
		mid := ratios[len(ratios)/2]
		fmt.Fprintf(tw, "%s\t%v\t%.0f\t%.2f\t%.2f\t%.2f..%.2f\t\n", t.name, per.Round(time.Microsecond), float64(pl.calls)/med.Seconds(),
			mid, 1/mid, ratios[len(ratios)/10], ratios[len(ratios)*9/10])
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func median(d []time.Duration) time.Duration {
	s := slices.Clone(d)
	slices.Sort(s)
	return s[len(s)/2]
}

// measure sends pl.calls requests from pl.workers workers and returns how long
// all of them took.
func measure(client *http.Client, t target, p payload, pl plan) (time.Duration, error) {
	errs := make([]error, pl.workers)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range pl.workers {
		wg.Go(func() {
			for range pl.calls / pl.workers {
				if errs[i] = fetch(client, t, p); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}

// fetch gets one answer whole and checks that it is the right one.
func fetch(client *http.Client, t target, p payload) error {
	req, err := t.request(p)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(p.mark)) {
		return fmt.Errorf("wrong answer: %s, %d bytes: %.300s", res.Status, len(body), body)
	}
	return nil
}

func get(base string) func(payload) (*http.Request, error) {
	return func(p payload) (*http.Request, error) {
		return http.NewRequest(http.MethodGet, base+"/api/v1"+p.path, nil)
	}
}

// call makes tools/call requests of one protocol version.
func call(endpoint, version string) func(payload) (*http.Request, error) {
	return func(p payload) (*http.Request, error) {
		params := p.call
		if version >= "2026" {
			params = strings.TrimSuffix(params, "}") + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version +
				`","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
		req, err := http.NewRequest(http.MethodPost, endpoint, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", version)
		if version >= "2026" {
			name, _, _ := strings.Cut(strings.TrimPrefix(p.call, `{"name":"`), `"`)
			req.Header.Set("Mcp-Method", "tools/call")
			req.Header.Set("Mcp-Name", name)
		}
		return req, nil
	}
}

// newPlainProxy is what one would write to forward requests and do nothing else.
func newPlainProxy(upstream string) (*httptest.Server, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(&httputil.ReverseProxy{
		Transport: &http.Transport{MaxIdleConnsPerHost: 128},
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
	}), nil
}

// startAegis serves the default configuration in front of upstream, with
// masking, limits and the audit log, which is flushed as sync says.
func startAegis(upstream, sync string) (endpoint string, stop func(), err error) {
	cfg := config.Default()
	cfg.Gitea.URL = &config.URL{}
	if err := cfg.Gitea.URL.UnmarshalText([]byte(upstream)); err != nil {
		return "", nil, err
	}
	cfg.Auth.Tokens = []config.Token{{Name: "bench", Token: config.NewSecret(token), GiteaToken: config.NewSecret(strings.Repeat("0f", 20))}}
	cfg.Results.MaxChars = 1_000_000
	cfg.Audit.Sync = sync
	// The limits do their work, and let everything pass.
	plenty := config.Rate{Count: 1_000_000, Per: time.Second}
	cfg.Limits.Address, cfg.Limits.Identity = config.AddressLimit{Rate: plenty}, config.IdentityLimit{Rate: plenty}
	if cfg.DataDir, err = os.MkdirTemp("", "aegis-bench-"); err != nil {
		return "", nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	cfg.Listen = ln.Addr().String()
	srv, err := server.New(cfg, "bench", zerolog.New(io.Discard).Level(zerolog.InfoLevel))
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, ln) }()
	return srv.Endpoint(), func() { cancel(); <-done; srv.Close(); _ = os.RemoveAll(cfg.DataDir) }, nil
}
