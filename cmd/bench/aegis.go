package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// token is what Aegis asks of clients here; the instances live as long as the run.
const token = "bench-bearer-token-0123456789"

// build compiles the program, unless one is given, and returns its path.
func build(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return given, nil
	}
	bin := filepath.Join(dir, "aegis")
	// Without symbols, as it is released: they make the file larger, not slower.
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", bin, "./cmd/aegis")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build Aegis (run this from the project's folder, or give a program with -aegis): %w",
			err)
	}
	return bin, nil
}

// settings are what the measured instances differ in; the rest is the default
// configuration: masking, limits and the audit log are on. Limits are far away, so
// that they work and let everything pass.
type settings struct {
	sync     string // of the audit log
	maxChars int
	// metrics also counts allocations, at a listener of its own, which a start need not wait for.
	metrics bool
}

// configuration writes a configuration into dir and returns the file's name and
// the address to listen on and that of the metrics.
func configuration(dir, upstream string, s settings) (file, listen, metrics string, err error) {
	// Both are held until both are chosen, or the second might be the first again. Another process
	// may take one before Aegis listens; that shows as a failed run.
	ports := make([]string, 2)
	for i := range ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", "", err
		}
		ports[i] = ln.Addr().String()
		defer ln.Close()
	}
	text := fmt.Sprintf(`listen: %s
data_dir: %s
gitea: {url: %q}
auth: {tokens: [{name: bench, token: %s, gitea_token: %s}]}
audit: {sync: %s}
results: {max_chars: %d}
limits: {address: {rate: 1000000/s}, identity: {rate: 1000000/s}}
`, ports[0], filepath.Join(dir, "data"), upstream, token, strings.Repeat("0f", 20), s.sync, s.maxChars)
	if s.metrics {
		text += "metrics: {listen: " + ports[1] + "}\n"
	}
	// A folder of its own: Aegis watches it, and would be notified of each line that is
	// written to a log beside the file.
	folder := filepath.Join(dir, "config")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", "", "", err
	}
	file = filepath.Join(folder, "aegis.yaml")
	return file, ports[0], ports[1], os.WriteFile(file, []byte(text), 0o600)
}

// startAegis starts the program in front of upstream, with its files below folder.
func startAegis(ctx context.Context, bin, folder, upstream string, s settings) (*process, error) {
	dir, err := os.MkdirTemp(folder, "instance-")
	if err != nil {
		return nil, err
	}
	file, listen, metrics, err := configuration(dir, upstream, s)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin, "serve", "-c", file)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// A file and no pipe: a reader of its own would take processor time from what is measured.
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, url: "http://" + listen + "/mcp"}
	if s.metrics {
		p.memory = "http://" + metrics + "/metrics"
	}
	return p, nil
}

// answered waits for the first call that p answers.
func (p *process) answered(job *payload) error {
	t := ours("start", p, "2025-11-25")
	client := &http.Client{Timeout: 5 * time.Second}
	var err error
	// Ten seconds at the least. Asked often, as the time of the start is a result.
	for range 20_000 {
		w := &worker{client: client, refs: map[string][]byte{}}
		if err = t.fetch(w, job); err == nil {
			return nil
		}
		// A wrong answer does not become right by waiting.
		if !refused(err) {
			return err
		}
		time.Sleep(500 * time.Microsecond)
	}
	return err
}

// refused reports whether no connection could be made: Aegis does not listen yet.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
