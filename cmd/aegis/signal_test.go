package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// slowGitea says whose token it is at once, and holds every other answer until
// it is released.
type slowGitea struct {
	url     string
	waiting atomic.Int64
	release chan struct{}
}

func newSlowGitea(t *testing.T) *slowGitea {
	t.Helper()
	g := &slowGitea{release: make(chan struct{})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.url = "http://" + ln.Addr().String()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch strings.TrimPrefix(r.URL.Path, "/api/v1") {
		case "/user":
			_, _ = io.WriteString(w, `{"login":"alice"}`)
		case "/version":
			_, _ = io.WriteString(w, `{"version":"28.1.0"}`)
		case "/users/search":
			g.waiting.Add(1)
			select {
			case <-g.release:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, `{"ok":true,"data":[{"login":"alice"}]}`)
		default:
			http.NotFound(w, r)
		}
	})}
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { _ = srv.Close() })
	return g
}

// process is the real program as a process of its own.
type process struct {
	*running
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// startProcess runs "aegis serve" before a slow Gitea.
func startProcess(t *testing.T, g *slowGitea) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, file: filepath.Join(t.TempDir(), "aegis.yaml"), addr: unusedAddr(t), log: &syncBuffer{}, gitea: g.url, giteaToken: "x", client: &http.Client{Transport: &http.Transport{}}}
	r.base = "http://" + r.addr
	r.write(r.variant(1, "limits: {address: {rate: off}, identity: {rate: off}, team: {rate: off}, read: {rate: off}, concurrency: {identity: 100, total: 100}}\n"))
	p := &process{running: r, cmd: exec.Command(exe, "serve", "-c", r.file), done: make(chan struct{})}
	p.cmd.Args[0] = "aegis" // the test binary is the program under this name
	p.cmd.Stderr, p.cmd.Stdout = r.log, io.Discard
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its state is looked at
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	r.until("serving", func() bool { return r.readyz() != nil })
	return p
}

// calls begins n calls and returns where their errors arrive.
func (p *process) calls(n int, g *slowGitea) (wait func() []error) {
	var mu sync.Mutex
	var failed []error
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := p.call(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	p.until("all calls wait for Gitea", func() bool { return g.waiting.Load() == int64(n) })
	return func() []error {
		wg.Wait()
		return failed
	}
}

func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// TestSignalLetsCallsFinish: 50 calls in flight are answered, no new ones are
// taken, and the exit code says that all is well.
func TestSignalLetsCallsFinish(t *testing.T) {
	t.Parallel()
	g := newSlowGitea(t)
	p := startProcess(t, g)
	wait := p.calls(50, g)
	p.terminate()
	p.until("it takes no new calls", func() bool {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	select {
	case <-p.done:
		t.Fatalf("it ended with calls in flight: %s", p.log)
	default:
	}
	close(g.release)
	if failed := wait(); len(failed) > 0 {
		t.Errorf("%d of 50 calls failed, such as: %v", len(failed), failed[0])
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("it does not end: %s", p.log)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d: %s", code, p.log)
	}
	records := mustRead(t, filepath.Join(filepath.Dir(p.file), "data", "audit", "audit.jsonl"))
	for _, event := range []string{"tool_call_started", "tool_invocation"} {
		if n := strings.Count(records, `"`+event+`"`); n != 50 {
			t.Errorf("the audit log has %d records %s, want 50", n, event)
		}
	}
}

// TestSecondSignalEndsAtOnce, whatever is in flight.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	g := newSlowGitea(t)
	defer close(g.release)
	p := startProcess(t, g)
	wait := p.calls(3, g)
	p.terminate()
	p.until("it begins to stop", func() bool { return strings.Contains(p.log.String(), "stopping") })
	p.until("it ends", func() bool {
		p.terminate() // the first may still be at work on how the next is taken
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if p.cmd.ProcessState.Success() {
		t.Error("it claims that all went well")
	}
	if failed := wait(); len(failed) != 3 {
		t.Errorf("%d of 3 calls failed", len(failed))
	}
}
