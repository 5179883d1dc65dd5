//go:build linux

package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aegis/cmd/aegis/internal/systemd"
)

const pid = 4711

// patience is how long tests wait for what must happen.
const patience = 2 * time.Minute

func process(vars map[string]string) systemd.Process {
	return systemd.Process{Getenv: func(name string) string { return vars[name] }, PID: pid, FirstFD: 3}
}

// inbox is systemd's side of the messages.
func inbox(t *testing.T, address string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func message(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

func TestWithoutSystemd(t *testing.T) {
	t.Parallel()
	m, err := systemd.FromProcess(process(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Sockets()) != 0 {
		t.Error("sockets from nowhere")
	}
	for _, err := range []error{m.Ready("x"), m.Reloading(), m.Stopping("x")} {
		if err != nil {
			t.Error(err)
		}
	}
	m.Watch(t.Context(), nil, nil) // returns at once
}

func TestMessages(t *testing.T) {
	t.Parallel()
	abstract := fmt.Sprintf("@aegis-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	for _, address := range []string{filepath.Join(t.TempDir(), "notify"), abstract} {
		conn := inbox(t, address)
		m, err := systemd.FromProcess(process(map[string]string{"NOTIFY_SOCKET": address}))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Ready("serving\nSTOPPING=1"); err != nil {
			t.Fatal(err)
		}
		if got := message(t, conn); got != "READY=1\nSTATUS=serving" {
			t.Errorf("ready: %q", got)
		}
		if err := m.Reloading(); err != nil {
			t.Fatal(err)
		}
		head, usec, _ := strings.Cut(message(t, conn), "MONOTONIC_USEC=")
		if n, err := strconv.ParseInt(usec, 10, 64); head != "RELOADING=1\n" || err != nil || n <= 0 {
			t.Errorf("reloading: %q %q", head, usec)
		}
		if err := m.Stopping("ending"); err != nil {
			t.Fatal(err)
		}
		if got := message(t, conn); got != "STOPPING=1\nSTATUS=ending" {
			t.Errorf("stopping: %q", got)
		}
	}
}

func TestSystemdIsGone(t *testing.T) {
	t.Parallel()
	m, err := systemd.FromProcess(process(map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "nobody")}))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Ready("x"); err == nil || !strings.Contains(err.Error(), "READY=1") {
		t.Errorf("got %v", err)
	}
}

// TestWatchdog: messages while all is well, none while it is not or no answer
// comes, and again afterwards.
func TestWatchdog(t *testing.T) {
	address := filepath.Join(t.TempDir(), "notify")
	conn := inbox(t, address)
	m, err := systemd.FromProcess(process(map[string]string{"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000", "WATCHDOG_PID": strconv.Itoa(pid)}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mode, found atomic.Int64 // 0 well, 1 ill, 2 hanging; how often it was found well
	troubles := make(chan error, 100)
	ended := make(chan struct{})
	hang := make(chan struct{})
	defer close(hang)
	go func() {
		defer close(ended)
		m.Watch(ctx, func(context.Context) error {
			switch mode.Load() {
			case 1:
				return errors.New("ill")
			case 2:
				<-hang
			default:
				found.Add(1)
			}
			return nil
		}, func(err error) {
			select {
			case troubles <- err:
			default:
			}
		})
	}()
	heard := int64(0)
	hear := func(least int64) {
		t.Helper()
		for heard < least {
			if got := message(t, conn); got != "WATCHDOG=1" {
				t.Fatalf("got %q", got)
			}
			heard++
		}
	}
	hear(3)
	for m, want := range map[int64]string{1: "ill", 2: "no answer"} {
		mode.Store(m)
		for !strings.Contains((<-troubles).Error(), want) {
			continue // of the mode before
		}
	}
	// No message but for each time that it was found well: one more than there can be
	// of before comes from afterwards.
	before := found.Load()
	mode.Store(0)
	hear(before + 1)
	cancel()
	<-ended
	if err := m.Stopping("the last message"); err != nil {
		t.Fatal(err)
	}
	for !strings.HasPrefix(message(t, conn), "STOPPING=1") {
		heard++
	}
	if n := found.Load(); heard > n {
		t.Errorf("%d messages, and it was found well %d times", heard, n)
	}
}

// TestWatchdogOfAnother: the variable is inherited from a shell that systemd watches.
func TestWatchdogOfAnother(t *testing.T) {
	t.Parallel()
	m, err := systemd.FromProcess(process(map[string]string{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	m.Watch(t.Context(), nil, nil)
}

// descriptors puts files at successive numbers, as systemd does.
func descriptors(t *testing.T, files ...*os.File) int {
	t.Helper()
	const first = 200
	for i, f := range files {
		if err := syscall.Dup3(int(f.Fd()), first+i, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	return first
}

func listening(t *testing.T, network, address string) (*os.File, string) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := ln.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	return f, ln.Addr().String()
}

func TestSockets(t *testing.T) {
	a, addrA := listening(t, "tcp", "127.0.0.1:0")
	b, addrB := listening(t, "tcp", "127.0.0.1:0")
	p := process(map[string]string{"LISTEN_PID": strconv.Itoa(pid), "LISTEN_FDS": "2", "LISTEN_FDNAMES": "aegis:http"})
	p.FirstFD = descriptors(t, a, b)
	m, err := systemd.FromProcess(p)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := m.Sockets()
	if len(s) != 2 || s[0].Name != "aegis" || s[1].Name != "http" || s[0].Addr().String() != addrA || s[1].Addr().String() != addrB {
		t.Fatalf("got %v, want %s and %s", s, addrA, addrB)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, err := s[0].Accept()
		if err == nil {
			_ = conn.Close()
		}
		accepted <- err
	}()
	conn, err := net.Dial("tcp", addrA)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if _, err := net.FileListener(os.NewFile(uintptr(p.FirstFD), "x")); err == nil {
		t.Error("the descriptor that was handed over is still open")
	}
}

func TestSocketsOfAnother(t *testing.T) {
	t.Parallel()
	m, err := systemd.FromProcess(process(map[string]string{"LISTEN_PID": "1", "LISTEN_FDS": "1"}))
	if err != nil || len(m.Sockets()) != 0 {
		t.Errorf("took what is not its own: %v", err)
	}
}

func TestWrongEnvironment(t *testing.T) {
	mine := strconv.Itoa(pid)
	for name, vars := range map[string]map[string]string{
		"NOTIFY_SOCKET": {"NOTIFY_SOCKET": "relative"},
		"WATCHDOG_USEC": {"WATCHDOG_USEC": "-1"},
		"microseconds":  {"WATCHDOG_USEC": "99999999999999999"},
		"LISTEN_FDS":    {"LISTEN_FDS": "many", "LISTEN_PID": mine},
		"0 to 16":       {"LISTEN_FDS": "1000000", "LISTEN_PID": mine},
		"ListenStream":  {"LISTEN_FDS": "1", "LISTEN_PID": mine}, // descriptor 999 is not open
	} {
		p := process(vars)
		p.FirstFD = 999
		if _, err := systemd.FromProcess(p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSocketOfAnotherKind(t *testing.T) {
	unix, _ := listening(t, "unix", filepath.Join(t.TempDir(), "s"))
	p := process(map[string]string{"LISTEN_FDS": "1", "LISTEN_PID": strconv.Itoa(pid), "LISTEN_FDNAMES": "local"})
	p.FirstFD = descriptors(t, unix)
	if _, err := systemd.FromProcess(p); err == nil || !strings.Contains(err.Error(), "local is no TCP socket") {
		t.Errorf("got %v", err)
	}
}

// FuzzEnvironment: no environment makes it panic or take what is not there.
func FuzzEnvironment(f *testing.F) {
	f.Add("/run/x", "1000", "2", "a:b")
	f.Add("@x", "0", "-1", ":")
	f.Fuzz(func(t *testing.T, notify, usec, fds, names string) {
		p := process(map[string]string{"NOTIFY_SOCKET": notify, "WATCHDOG_USEC": usec, "LISTEN_FDS": fds, "LISTEN_FDNAMES": names, "LISTEN_PID": strconv.Itoa(pid)})
		p.FirstFD = 1 << 20 // beyond what can be open
		m, err := systemd.FromProcess(p)
		if err == nil && len(m.Sockets()) != 0 {
			t.Errorf("sockets that nobody opened: %v", m.Sockets())
		}
	})
}
