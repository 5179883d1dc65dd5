package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/proxy/kv/redistest"
	"aegis/proxy/server"
)

// replicaConfig names the variable under which the test binary is a replica: a
// process of its own that serves the configuration file that it names.
const replicaConfig = "AEGIS_TEST_REPLICA_CONFIG"

// What a replica does otherwise than in production.
const (
	// replicaClock names the file with how far the clock is put forward.
	replicaClock = "AEGIS_TEST_REPLICA_CLOCK"
	// replicaHaste makes it look often at what the others do.
	replicaHaste = "AEGIS_TEST_REPLICA_HASTE"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(replicaConfig); file != "" {
		if err := serveReplica(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serveReplica(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	logger := zerolog.New(os.Stderr).Level(zerolog.TraceLevel)
	srv, err := server.Build(cfg, logger, func(p *server.Process) {
		if file := os.Getenv(replicaClock); file != "" {
			server.SetClock(p, fileClock(file))
		}
		if os.Getenv(replicaHaste) != "" {
			server.Hasten(p, 50*time.Millisecond)
		}
	})
	if err != nil {
		return err
	}
	live := server.NewLive(srv)
	defer live.Close()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		for range hup {
			if cfg, err := config.Load(file); err == nil {
				_ = live.Reload(cfg, server.Plain(logger)) // it logs its error
			}
		}
	}()
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return err
	}
	var plain net.Listener
	if addr := srv.PlainListen(); addr != "" {
		if plain, err = net.Listen("tcp", addr); err != nil {
			return err
		}
	}
	return live.Serve(ctx, ln, plain)
}

// fileClock returns the system's clock, put forward by what is in the file.
func fileClock(file string) func() time.Time {
	return func() time.Time {
		text, err := os.ReadFile(file)
		if err != nil {
			return time.Now() // nobody has put it forward
		}
		ahead, err := time.ParseDuration(string(text))
		if err != nil {
			fmt.Fprintln(os.Stderr, "the file with the time:", err) // the test shows the log
		}
		return time.Now().Add(ahead)
	}
}

const botToken = "bot-bearer-0123456789abcdef"

const replicaKey = "key-of-all-replicas-0123456789-0123456789"

// fleet are replicas in processes of their own behind a balancer that gives each
// request to the next one, before one Gitea double and one Redis.
type fleet struct {
	*house
	redis    *redistest.Server
	replicas []*replica
	at       clock  // of the replicas and of Gitea
	clock    string // the file that tells the replicas; "": they have the system's
	next     atomic.Int64
	only     atomic.Int64 // requests go to this one alone; negative: to all in turn
}

// replica is one process.
type replica struct {
	t       testing.TB
	name    string
	addr    string
	metrics string
	file    string
	dir     string
	cmd     *exec.Cmd
	env     []string // further variables
	log     *syncBuffer
	done    chan struct{} // closed when the process has ended
	to      *httputil.ReverseProxy
}

// fleetOptions are what differs from test to test.
type fleetOptions struct {
	n      int    // replicas; 0: 3
	oauth  string // lines below auth.oauth
	store  string // lines below store, besides kind, url, keys and timeout
	frozen bool   // the store may take calls and not answer, so that it has little time
	timely bool   // time can be put forward
	top    string // further top-level keys
	double fakegitea.Options
	redis  []string // arguments
	env    []string // of the replicas
}

func newFleet(t testing.TB, o fleetOptions) *fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("several processes and real clocks: run without -short")
	}
	f := &fleet{redis: redistest.Start(t, o.redis...), house: &house{t: t, double: fakegitea.New(o.double), log: &syncBuffer{}}}
	f.only.Store(-1)
	f.double.SetClock(f.at.now)
	if o.timely {
		f.clock = filepath.Join(t.TempDir(), "clock")
		o.env = append(slices.Clone(o.env), replicaClock+"="+f.clock)
	}
	up := httptest.NewServer(f.double)
	t.Cleanup(up.Close)
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := f.only.Load()
		if i < 0 {
			i = f.next.Add(1) % int64(len(f.replicas))
		}
		_ = http.NewResponseController(w).EnableFullDuplex() // an answer may begin before the request is over
		f.replicas[i].to.ServeHTTP(w, r)
	}))
	t.Cleanup(balancer.Close)
	h := f.house
	h.gitea, h.browsers, h.url, h.root = up.URL, up.URL, balancer.URL, balancer.URL
	h.endpoint = h.url + "/mcp"
	h.app, h.secret = h.double.RegisterOAuthApp("Aegis", true, h.url+"/oauth/callback")
	if o.n == 0 {
		o.n = 3
	}
	for i := range o.n {
		r := f.configure(fmt.Sprintf("aegis-%d", i+1), o)
		f.replicas = append(f.replicas, r)
		r.start()
		t.Cleanup(r.kill)
	}
	for _, r := range f.replicas {
		r.wait()
	}
	return f
}

// ports counts the ports that steadyAddr tried.
var ports atomic.Int64

// steadyAddr returns a loopback address for another process to listen on, another one
// each time: below the ports that the system gives to connections, and apart from those
// that the tests of other packages use, so that nobody takes it meanwhile.
func steadyAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 16_000+(int64(os.Getpid())*101+ports.Add(1))%6_000))
		if err == nil {
			_ = ln.Close() // the process takes it
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// configure writes the configuration of a replica.
func (f *fleet) configure(name string, o fleetOptions) *replica {
	f.t.Helper()
	addr, metrics, timeout := steadyAddr(f.t), steadyAddr(f.t), "30s"
	if o.frozen {
		timeout = "5s"
	}
	r := &replica{t: f.t, name: name, addr: addr, metrics: metrics, env: o.env, dir: filepath.Join(f.t.TempDir(), "data"), file: filepath.Join(f.t.TempDir(), "aegis.yaml")}
	r.to = &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: "http", Host: addr})
		p.Out.Host = p.In.Host
	}, ErrorLog: log.New(io.Discard, "", 0)}
	text := fmt.Sprintf("metrics: {listen: %s}\n", metrics) + fmt.Sprintf("listen: %s\npublic_url: %s\ngitea: {url: %q}\ndata_dir: %q\nauth:\n  tokens:\n    - {name: bot, token: %s, gitea_token: %s}\n  oauth:\n    enabled: true\n    client_id: %s\n    client_secret: %s\n",
		addr, f.url, f.gitea, r.dir, botToken, f.double.Token("alice"), f.app, f.secret)
	for line := range strings.Lines(o.oauth) {
		text += "    " + line
	}
	text += fmt.Sprintf("\nstore:\n  kind: redis\n  url: redis://%s\n  keys: [%s]\n  replica: %s\n  timeout: %s\n", f.redis.Address, replicaKey, name, timeout)
	for line := range strings.Lines(o.store) {
		text += "  " + line
	}
	if err := os.WriteFile(r.file, []byte(text+"\n"+o.top), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return r
}

// start runs the process.
func (r *replica) start() {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	r.log, r.done = &syncBuffer{}, make(chan struct{})
	r.cmd = exec.Command(self)
	r.cmd.Env = append(append(os.Environ(), replicaConfig+"="+r.file), r.env...)
	r.cmd.Stderr = r.log
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	cmd, done := r.cmd, r.done
	go func() {
		_ = cmd.Wait() // tests look at what the process did, not how it ended
		close(done)
	}()
}

// wait waits until the process answers.
func (r *replica) wait() {
	r.t.Helper()
	eventually(r.t, func() error {
		select {
		case <-r.done:
			r.t.Fatalf("%s ended: %s", r.name, r.log)
		default:
		}
		res, err := direct.Get("http://" + r.addr + "/healthz")
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	})
}

// kill ends the process as a crash does.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill() // it may have ended
	<-r.done
}

func (r *replica) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// add puts the clocks of all replicas and of Gitea forward. The time of the store
// goes on as ever.
func (f *fleet) add(d time.Duration) {
	f.t.Helper()
	f.at.add(d)
	next := f.clock + ".next"
	err := os.WriteFile(next, []byte(time.Duration(f.at.ahead.Load()).String()), 0o600)
	if err == nil {
		err = os.Rename(next, f.clock) // nobody reads half of it
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// through sends what follows to one replica alone; -1: to all in turn.
func (f *fleet) through(i int) { f.only.Store(int64(i)) }

// each calls test with every replica in turn.
func (f *fleet) each(test func(r *replica)) {
	f.t.Helper()
	defer f.through(-1)
	for i, r := range f.replicas {
		f.through(i)
		test(r)
	}
}

// parallel runs n calls at once.
func parallel(n int, call func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			call(i)
		})
	}
	close(start)
	wg.Wait()
}
