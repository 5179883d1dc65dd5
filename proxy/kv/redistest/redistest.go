// Package redistest runs real Redis servers for tests: the program of the PATH, on free
// loopback ports, without files that outlive the test.
package redistest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
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

// Server is a Redis of its own: tests at the same time see nothing of each other.
type Server struct {
	// Address is host:port.
	Address string

	t     testing.TB
	dir   string
	first []string // arguments before all others: the file of a Sentinel
	tls   bool     // it speaks nothing else
	args  []string // further arguments

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil: it does not run
	ended chan struct{} // closed when cmd has
}

// Start runs a server with further arguments, such as "--requirepass", "x", until
// the test ends. A real one, as what stores rely on is what Redis does: expiry, scripts,
// rights, and how it goes away. The test is skipped where there is none.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return (&Server{t: t, dir: t.TempDir(), args: args}).begin()
}

// StartSentinel runs a Sentinel with a configuration file, which it rewrites: what it learns
// of masters is kept there, so each needs a file of its own.
func StartSentinel(t testing.TB, file string) *Server {
	t.Helper()
	return (&Server{t: t, dir: t.TempDir(), first: []string{file, "--sentinel"}}).begin()
}

// StartTLS runs a server that speaks TLS alone and wants certificates of clients,
// which the authority in the file ca has signed, as its own. It writes a log of its own
// (appendonly), so that [Store.Inspect] of kv/redis finds nothing wrong but what a test is about.
func StartTLS(t testing.TB, ca, cert, key string) *Server {
	t.Helper()
	return (&Server{t: t, dir: t.TempDir(), tls: true, args: []string{
		"--tls-ca-cert-file", ca, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-auth-clients", "yes", "--appendonly", "yes",
	}}).begin()
}

// begin runs the server on a port that is still free when it starts. Between the look and the
// start another test may take it, so it is tried again.
func (s *Server) begin() *Server {
	s.t.Helper()
	s.t.Cleanup(s.Stop) // before it runs: a start that fails half-way must leave no process
	var err error
	for range 10 {
		s.Address = freeAddress(s.t)
		if err = s.run(); err == nil {
			return s
		}
	}
	s.t.Fatal(err)
	return nil
}

// freeAddress returns a loopback address for a server, with room for the port of the
// cluster's bus 10000 above. Both are below the ports that the system gives to
// connections, and apart from those that other tests use, so that none takes them
// meanwhile; a server that ends at once nevertheless gets another.
func freeAddress(t testing.TB) string {
	t.Helper()
	address := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	free := func(port int) bool {
		ln, err := net.Listen("tcp", address(port))
		if err == nil {
			_ = ln.Close() // it had no connections
		}
		return err == nil
	}
	// At random, as tests of several packages look at the same time.
	for range 100 {
		if port := 12_000 + rand.IntN(4_000); free(port) && free(port+10_000) {
			return address(port)
		}
	}
	t.Fatal("no free port for redis-server")
	return ""
}

// Run starts the server again after [Server.Stop], on the same
// port, which clients know; what it kept is there again with appendonly alone.
func (s *Server) Run() {
	s.t.Helper()
	if err := s.run(); err != nil {
		s.t.Fatal(err)
	}
}

// run starts the program and waits until it answers.
func (s *Server) run() error {
	s.t.Helper()
	path := find()
	if path == "" {
		const how = "this test runs a real Redis, and there is no redis-server in the PATH; " +
			"install it (Debian: apt-get install redis-tools)"
		// Where the suite must be complete, a skipped test is a failure.
		if os.Getenv("AEGIS_TEST_TOOLS") == "must" {
			s.t.Fatal(how)
		}
		s.t.Skip(how)
	}
	host, port, _ := strings.Cut(s.Address, ":")
	// A later argument counts more: --port 0 closes the plain port of a server with TLS.
	args := append(s.first, "--bind", host, "--port", port, "--dir", s.dir, "--daemonize", "no")
	if s.tls {
		args = append(args, "--port", "0", "--tls-port", port)
	}
	if len(s.first) == 0 { // a Sentinel knows no snapshots
		args = append(args, "--save", "")
	}
	cmd := exec.Command(path, append(args, s.args...)...)
	cmd.Args[0] = "redis-server" // by which the program knows what it is to be
	// To a file and not to a pipe, which children of a server that was killed would keep open.
	name := filepath.Join(s.dir, "redis.log")
	log, err := os.Create(name)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Start()
	_ = log.Close() // the server has its own
	if err != nil {
		return err
	}
	// One for each run, as Stop waits for the process that it has killed.
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, or its log says why
		close(ended)
	}()
	s.mu.Lock()
	s.cmd, s.ended = cmd, ended
	s.mu.Unlock()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		// Asked first: a server that has ended after it answered is seen as ended.
		up := s.answers()
		select {
		case <-ended: // what answers, if anything does, is another server on the port
			text, _ := os.ReadFile(name)
			return fmt.Errorf("redis-server ended: %s", text)
		default:
		}
		if up {
			return nil
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(name)
			return fmt.Errorf("redis-server does not answer: %s", text)
		}
	}
}

// find returns the server's program, "" when there is none. Valkey is the same as far as we
// are concerned. Debian's redis-tools has
// it under the name of one of its tools, and installs no service.
func find() string {
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// patience bounds what a server is waited for; it is for servers that never come, and long, as
// machines that run tests may be slow.
const patience = 2 * time.Minute

// answers reports whether the server takes requests, with a password or without; of
// one with TLS, whether it takes connections, as it shows no answer without a certificate.
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

// Stop ends the server as a crash does: what it has not written to its disk is lost, and
// connections break. One that was stopped already stays so.
func (s *Server) Stop() {
	// The lock is not held while the process ends.
	s.mu.Lock()
	cmd, ended := s.cmd, s.ended
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill() // it may have ended
	<-ended
}

// Signal sends the server a signal, such as SIGSTOP, after which it takes connections and does
// not answer.
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

// Do sends one inline command and returns the first line of the answer, as it is: "+OK", or "-"
// and an error. No client library is in between, so that tests of one do not rest on it.
func (s *Server) Do(command string) string {
	s.t.Helper()
	line, _ := s.ask(command)
	return line
}

// Bulk sends one inline command and returns the text that the answer is: a bulk string, whose
// length comes first.
func (s *Server) Bulk(command string) string {
	s.t.Helper()
	length, r := s.ask(command)
	n, err := strconv.Atoi(strings.TrimPrefix(length, "$"))
	if err != nil || n < 0 {
		s.t.Fatalf("%s: %s", command, length)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// ask sends one inline command and returns the first line of the answer and the rest. It is on
// a connection of its own, as those of a server that was stopped are of no use.
func (s *Server) ask(command string) (line string, rest io.Reader) {
	s.t.Helper()
	c, err := net.DialTimeout("tcp", s.Address, patience)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() }) // the caller still reads the rest
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprint(c, command+"\r\n"); err != nil {
		s.t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if line, err = r.ReadString('\n'); err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(line), r
}

// Cluster runs a cluster of three masters until the test ends, and returns them. Three are the
// least that can agree on one that fails. Slots are given in equal parts, in the order of the
// servers.
func Cluster(t testing.TB) []*Server {
	t.Helper()
	// A node that does not answer for 2 s counts as failed: tests wait for a failover.
	var nodes []*Server
	for range 3 {
		nodes = append(nodes, Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"))
	}
	host, port, _ := strings.Cut(nodes[0].Address, ":") // the one that the others are introduced to
	for i, n := range nodes {
		first, last := i*16384/3, (i+1)*16384/3-1
		if got := n.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", first, last)); got != "+OK" {
			t.Fatal(got)
		}
		// Different from the beginning; else they settle them by collisions, which takes time.
		n.Do(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1))
	}
	// Each must know all others, and that all slots are kept: a client that asks before would be
	// told of a part of the cluster.
	deadline := time.Now().Add(patience)
	for try := 0; ; try++ {
		waiting := ""
		for _, n := range nodes {
			if info := n.Bulk("CLUSTER INFO"); !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, "cluster_known_nodes:3") {
				waiting = info
			}
		}
		if waiting == "" {
			return nodes
		}
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not come up: " + waiting)
		}
		if try%100 == 0 { // a handshake that takes too long is given up
			for _, n := range nodes[1:] {
				n.Do("CLUSTER MEET " + host + " " + port)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
