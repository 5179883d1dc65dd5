// Package redistest runs real Redis servers for tests: the program redis-server
// of the PATH, on free loopback ports, without files that outlive the test.
package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a Redis of its own.
type Server struct {
	// Address is host:port.
	Address string

	t     testing.TB
	dir   string
	first []string // arguments before all others
	tls   bool
	args  []string
	mu    sync.Mutex
	cmd   *exec.Cmd
}

// Start runs a server with further arguments, such as "--requirepass", "x", until
// the test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{Address: freeAddress(t), t: t, dir: t.TempDir(), args: args}
	s.Run()
	t.Cleanup(s.Stop)
	return s
}

// StartSentinel runs a Sentinel with a configuration file, which it rewrites.
func StartSentinel(t testing.TB, file string) *Server {
	t.Helper()
	s := &Server{Address: freeAddress(t), t: t, dir: t.TempDir(), first: []string{file, "--sentinel"}}
	s.Run()
	t.Cleanup(s.Stop)
	return s
}

// StartTLS runs a server that speaks TLS alone and wants certificates of clients,
// which the authority in the file ca has signed, as its own.
func StartTLS(t testing.TB, ca, cert, key string) *Server {
	t.Helper()
	s := &Server{Address: freeAddress(t), t: t, dir: t.TempDir(), tls: true}
	s.args = []string{"--tls-ca-cert-file", ca, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "yes", "--appendonly", "yes"}
	s.Run()
	t.Cleanup(s.Stop)
	return s
}

// freeAddress returns a loopback address whose port is free, with room for the
// port of the cluster's bus 10000 above.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 50 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).Port
		_ = ln.Close()
		if port+10000 > 65535 {
			port -= 20000
		}
		free := true
		for _, p := range []int{port, port + 10000} {
			ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(p))
			if err != nil {
				free = false
				break
			}
			_ = ln.Close()
		}
		if free {
			return "127.0.0.1:" + strconv.Itoa(port)
		}
	}
	t.Fatal("no free port for redis-server")
	return ""
}

// Run starts the server again after [Server.Stop] or [Server.Kill], on the same
// port; what it kept is there again with appendonly alone.
func (s *Server) Run() {
	s.t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		const how = "this test runs a real Redis, and there is no redis-server in the PATH; install it (Debian: apt-get install redis-server)"
		if os.Getenv("AEGIS_TEST_TOOLS") == "must" {
			s.t.Fatal(how)
		}
		s.t.Skip(how)
	}
	host, port, _ := strings.Cut(s.Address, ":")
	args := append(s.first, "--bind", host, "--port", port, "--dir", s.dir, "--daemonize", "no")
	if s.tls {
		args = append(args, "--port", "0", "--tls-port", port)
	}
	if len(s.first) == 0 {
		args = append(args, "--save", "")
	}
	cmd := exec.Command(path, append(args, s.args...)...)
	log, err := os.Create(filepath.Join(s.dir, "redis.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	_ = log.Close() // the server has its own
	s.mu.Lock()
	s.cmd = cmd
	s.mu.Unlock()
	deadline := time.Now().Add(20 * time.Second)
	for !s.answers() {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			s.t.Fatalf("redis-server does not answer: %s", text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// answers reports whether the server takes requests, with a password or without; of
// one with TLS, whether it takes connections.
func (s *Server) answers() bool {
	c, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if s.tls {
		return true
	}
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := fmt.Fprint(c, "PING\r\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && (strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH"))
}

// Stop ends the server.
func (s *Server) Stop() {
	s.mu.Lock()
	cmd := s.cmd
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
}

// Signal sends the server a signal.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		s.t.Fatal("redis-server does not run")
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Do sends one inline command and returns the first line of the answer.
func (s *Server) Do(command string) string {
	s.t.Helper()
	c, err := net.DialTimeout("tcp", s.Address, 5*time.Second)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprint(c, command+"\r\n"); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// Cluster runs a cluster of three masters until the test ends, and returns them.
func Cluster(t testing.TB) []*Server {
	t.Helper()
	var nodes []*Server
	for range 3 {
		nodes = append(nodes, Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"))
	}
	for i, n := range nodes {
		first, last := i*16384/3, (i+1)*16384/3-1
		if got := n.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", first, last)); got != "+OK" {
			t.Fatal(got)
		}
		n.Do(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1))
		host, port, _ := strings.Cut(nodes[0].Address, ":")
		n.Do("CLUSTER MEET " + host + " " + port)
	}
	deadline := time.Now().Add(30 * time.Second)
	for _, n := range nodes {
		for !strings.Contains(n.info(), "cluster_state:ok") || !strings.Contains(n.info(), "cluster_known_nodes:3") {
			if time.Now().After(deadline) {
				t.Fatal("the cluster does not come up: " + n.info())
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nodes
}

// info returns the state of the cluster.
func (s *Server) info() string {
	c, err := net.DialTimeout("tcp", s.Address, 5*time.Second)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = fmt.Fprint(c, "CLUSTER INFO\r\n")
	var buf [2048]byte
	n, _ := c.Read(buf[:])
	return string(buf[:n])
}
