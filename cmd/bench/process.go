package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The roles that this program plays in processes of its own.
const (
	roleStub   = "stub"
	roleProxy  = "proxy"
	roleStatic = "static"
)

// play serves a role on listen and prints its address first. With a parent, it
// ends when its standard input does, which is when the parent has gone.
func play(role, listen, arg string, parent bool) error {
	var h http.Handler
	switch role {
	case roleStub:
		h = stub(payloads())
	case roleProxy:
		u, err := url.Parse(arg)
		if err != nil {
			return err
		}
		// What one would write to forward requests and do nothing else.
		h = &httputil.ReverseProxy{
			// More idle connections than the two of the default, which would be dialled again and again.
			Transport: &http.Transport{MaxIdleConnsPerHost: 128},
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
		}
	case roleStatic:
		// Read once: the handler is to cost as little as one can.
		body, err := os.ReadFile(arg)
		if err != nil {
			return err
		}
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Unread, the connection would be closed after each answer.
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		})
	default:
		return fmt.Errorf("no such role: %s", role)
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	// The parent reads this line; before it, nothing listens.
	fmt.Println("http://" + ln.Addr().String())
	mux := http.NewServeMux()
	mux.HandleFunc("/bench/memory", memory)
	mux.Handle("/", h)
	if parent {
		go func() {
			// A parent that was killed cannot end its children, but its end of the pipe is closed.
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = ln.Close()
		}()
	}
	if err := http.Serve(ln, mux); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// memory answers with what has been allocated, in the form of Aegis's metrics.
func memory(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	// It stops the program for some microseconds; it is asked for between rounds only.
	runtime.ReadMemStats(&m)
	fmt.Fprintf(w, "go_memstats_mallocs_total %d\ngo_memstats_alloc_bytes_total %d\n", m.Mallocs, m.TotalAlloc)
}

// process is a server that is being measured.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	url    string
	memory string // address of its counters of memory; "" when it has none
}

// spawn starts this program in a role.
func spawn(ctx context.Context, role, arg string) (*process, error) {
	// This binary itself, not one that would have to be built or found.
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-role", role, "-arg", arg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s did not start: %w", role, err)
	}
	at := strings.TrimSpace(line)
	return &process{cmd: cmd, stdin: in, url: at, memory: at + "/bench/memory"}, nil
}

// stop ends the process and waits for it.
func (p *process) stop() {
	if p == nil {
		return
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	} else {
		// Aegis ends its calls and its audit log first.
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	// A process that hangs must not hang the run.
	late := time.AfterFunc(15*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait() // it was interrupted, so it may fail
}

// proc returns the fields of a file of /proc about the process that follow mark; none
// where the system does not have it.
func (p *process) proc(file, mark string) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(data), mark)
	return strings.Fields(rest)
}

// cpu is the time that the process has computed for; 0 where the system does not
// say it.
func (p *process) cpu() time.Duration {
	if p == nil {
		return 0
	}
	// The fields after the name in parentheses; utime and stime are the 12th and 13th
	// of them (proc_pid_stat(5)), in ticks of 10 ms.
	f := p.proc("stat", ") ")
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64) // 0 when it is none
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// rss is the resident memory in bytes, 0 where the system does not say it.
func (p *process) rss() int64 {
	f := p.proc("status", "VmRSS:")
	if len(f) == 0 {
		return 0
	}
	// The file says kB and means 1024 bytes.
	kb, _ := strconv.ParseInt(f[0], 10, 64)
	return kb << 10
}

// allocated returns how often and how much the process has allocated.
func (p *process) allocated() (count, bytes float64) {
	if p == nil || p.memory == "" {
		return 0, 0
	}
	res, err := http.Get(p.memory)
	if err != nil {
		return 0, 0
	}
	defer res.Body.Close()
	// Two lines of some hundred: no reader of the whole format is needed.
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		v, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_memstats_mallocs_total":
			count = v
		case "go_memstats_alloc_bytes_total":
			bytes = v
		}
	}
	return count, bytes
}
