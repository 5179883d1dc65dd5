package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Socket is a listening TCP socket that systemd opened.
type Socket struct {
	// Name is FileDescriptorName= of the socket unit; without one it is the
	// unit's own name, such as aegis.socket.
	Name string
	net.Listener
}

// Manager is the service manager that started this process. Where there is none,
// it has no sockets and its messages go nowhere.
type Manager struct {
	sockets  []Socket
	notify   string        // address of the socket for messages; "" without one
	watchdog time.Duration // 0 without a watchdog
}

// Process is what a process has from the one that started it.
type Process struct {
	// Getenv looks up a variable of the environment.
	Getenv func(string) string
	// PID is the number of this process. Variables that are meant for another
	// one, such as a shell in between, do not count.
	PID int
	// FirstFD is the first descriptor that may have been handed over; 3 unless
	// in tests.
	FirstFD int
}

// firstFD is SD_LISTEN_FDS_START.
const firstFD = 3

// Detect returns the manager of this process. It takes the sockets over, so call
// it once.
func Detect() (*Manager, error) {
	return FromProcess(Process{Getenv: os.Getenv, PID: os.Getpid(), FirstFD: firstFD})
}

// FromProcess is [Detect] for a given process. An error means that the
// environment claims something that is not so; what was taken over is closed then.
func FromProcess(p Process) (*Manager, error) {
	m := &Manager{notify: p.Getenv("NOTIFY_SOCKET")}
	if m.notify != "" && m.notify[0] != '/' && m.notify[0] != '@' {
		return nil, errors.New("NOTIFY_SOCKET is neither a path nor an abstract socket; leave it to systemd")
	}
	var err error
	if m.watchdog, err = watchdog(p); err != nil {
		return nil, err
	}
	if err := m.takeSockets(p); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// watchdog reads how often systemd wants to hear from the process.
func watchdog(p Process) (time.Duration, error) {
	text := p.Getenv("WATCHDOG_USEC")
	if text == "" {
		return 0, nil
	}
	if pid := p.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(p.PID) {
		return 0, nil
	}
	usec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || usec <= 0 || usec > int64(1<<63-1)/1000 {
		return 0, errors.New("WATCHDOG_USEC is no positive number of microseconds; set WatchdogSec= in the unit")
	}
	return time.Duration(usec) * time.Microsecond, nil
}

// maxSockets bounds what is taken over; a listener and a plain one are all that
// is of use.
const maxSockets = 16

// takeSockets turns the descriptors that were handed over into listeners.
func (m *Manager) takeSockets(p Process) error {
	if p.Getenv("LISTEN_FDS") == "" || p.Getenv("LISTEN_PID") != strconv.Itoa(p.PID) {
		return nil
	}
	n, err := strconv.Atoi(p.Getenv("LISTEN_FDS"))
	if err != nil || n < 0 || n > maxSockets {
		return fmt.Errorf("LISTEN_FDS is no number from 0 to %d; leave it to systemd", maxSockets)
	}
	names := strings.Split(p.Getenv("LISTEN_FDNAMES"), ":")
	for i := range n {
		name := "unknown"
		if i < len(names) && names[i] != "" {
			name = names[i]
		}
		ln, err := take(p.FirstFD+i, name)
		if err != nil {
			return err
		}
		m.sockets = append(m.sockets, Socket{Name: name, Listener: ln})
	}
	return nil
}

// take makes a listener of a descriptor, which it closes: the listener has one
// of its own, which programs that this one starts do not inherit.
func take(fd int, name string) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), name)
	if f == nil {
		return nil, fmt.Errorf("systemd's socket %s has no descriptor", name)
	}
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("systemd's socket %s is none to listen on (use ListenStream= and Accept=no): %w", name,
			err)
	}
	if _, ok := ln.(*net.TCPListener); !ok {
		_ = ln.Close()
		return nil, fmt.Errorf("systemd's socket %s is no TCP socket; write a port or address:port after ListenStream=",
			name)
	}
	return ln, nil
}

// Sockets returns the sockets that systemd handed over, in the order of its units.
func (m *Manager) Sockets() []Socket { return m.sockets }

// Close closes the sockets.
func (m *Manager) Close() {
	for _, s := range m.sockets {
		_ = s.Close() // no connection was accepted
	}
}

// Ready reports to systemd that the service has started, or has its configuration
// loaded anew, and what it is doing.
func (m *Manager) Ready(status string) error { return m.send("READY=1", "STATUS="+line(status)) }

// Reloading reports to systemd that the configuration is being loaded anew; follow it
// with [Manager.Ready].
func (m *Manager) Reloading() error {
	state := []string{"RELOADING=1"}
	if now := monotonic(); now > 0 { // Type=notify-reload wants to know when
		state = append(state, "MONOTONIC_USEC="+strconv.FormatInt(now.Microseconds(), 10))
	}
	return m.send(state...)
}

// Stopping reports to systemd that the service has begun to stop.
func (m *Manager) Stopping(status string) error {
	return m.send("STOPPING=1", "STATUS="+line(status))
}

// line keeps a status from becoming further messages.
func line(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// Watch reports to systemd that the service is well, as often as it wants to hear that,
// until ctx ends. It leaves the message out whenever well returns an error or does
// not return in time: systemd then ends the process, and starts another one.
func (m *Manager) Watch(ctx context.Context, well func(context.Context) error, trouble func(error)) {
	if m.watchdog == 0 {
		return
	}
	every := m.watchdog / 3 // one message may come late, and one be lost
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := m.alive(ctx, every, well); err != nil && ctx.Err() == nil {
			trouble(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (m *Manager) alive(ctx context.Context, within time.Duration, well func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- well(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
		return m.send("WATCHDOG=1")
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// send sends one datagram of assignments.
func (m *Manager) send(state ...string) error {
	if m.notify == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.notify, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("telling systemd %s: %w", state[0], err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(strings.Join(state, "\n"))); err != nil {
		return fmt.Errorf("telling systemd %s: %w", state[0], err)
	}
	return nil
}
