package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

// options are the flags.
type options struct {
	rounds, calls, soak int
	// aegis and old are programs: another version is measured by its own binary, so that both
	// are built as they are released.
	aegis, old, only string
	// role and arg are for the processes that this program starts of itself.
	role, arg string
	stub      string
	// For one call of any server.
	url, upstream, token, tool, args, path, version, mark string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 11, "interleaved rounds; the median counts")
	flag.IntVar(&o.calls, "calls", 640, "calls per target and round; fewer of large answers")
	flag.IntVar(&o.soak, "soak", 100_000, "mixed calls after which memory is measured; 0: none")
	flag.StringVar(&o.aegis, "aegis", "", "the program to measure; empty: it is built")
	flag.StringVar(&o.old, "old", "", "an earlier program: calls are compared with its own instead")
	flag.StringVar(&o.only, "only", "", "calls, list or start; empty: all")
	flag.StringVar(&o.stub, "stub", "", "serve the stub at this address and measure nothing")
	flag.StringVar(&o.url, "url", "", "measure this MCP endpoint, with -tool")
	flag.StringVar(&o.upstream, "upstream", "", "with -url: address of the stub that the server asks")
	flag.StringVar(&o.token, "token", "", "with -url: bearer token")
	flag.StringVar(&o.tool, "tool", "", "with -url: tool to call")
	flag.StringVar(&o.args, "args", "{}", "with -url: its arguments")
	flag.StringVar(&o.path, "path", "/repos/acme/infra/issues/1", "with -url: the stub's answer that the call is for")
	flag.StringVar(&o.version, "protocol", "2025-11-25", "with -url: protocol version")
	flag.StringVar(&o.mark, "mark", "", "with -url: text that a right answer contains; empty: the end of the stub's")
	flag.StringVar(&o.role, "role", "", "used by the program itself")
	flag.StringVar(&o.arg, "arg", "", "used by the program itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// run returns before the program ends, so that the processes and the folder are gone by then.
	if err := run(ctx, os.Stdout, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the whole program. In a role it is a server, and does not return.
func run(ctx context.Context, out io.Writer, o options) error {
	switch {
	case o.stub != "":
		return play(roleStub, o.stub, "", false)
	case o.role != "":
		return play(o.role, "127.0.0.1:0", o.arg, true)
	}
	// Programs, logs and audit logs of the run. Where this folder is kept in memory, a log that is
	// synced costs nothing: set TMPDIR then.
	dir, err := os.MkdirTemp("", "aegis-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends what is still running
	fmt.Fprintf(out, "%s, %s/%s, %d CPUs, %d rounds\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), o.rounds)
	b := &bench{ctx: ctx, out: out, o: o, dir: dir, jobs: payloads()}
	defer b.stop()
	if o.url != "" {
		return b.foreign()
	}
	if b.bin, err = build(ctx, o.aegis, dir); err != nil {
		return err
	}
	if err := b.servers(); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		do   func() error
	}{{"calls", b.calls}, {"list", b.list}, {"start", b.start}} {
		// Only the failure names the part; what others have printed until then is right.
		if o.only == "" || o.only == part.name {
			if err := part.do(); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// bench is one run.
type bench struct {
	ctx  context.Context
	out  io.Writer
	o    options
	dir  string
	bin  string
	jobs []payload

	// stub answers as Gitea, proxy forwards to it, aegis and durable are Aegis in front of it:
	// one without bounds, for comparison with the proxy, and one as people run it.
	stub, proxy, aegis, durable *process
	// others are those of one part alone; they run to the end, idle.
	others []*process
}

// stop ends the processes; those that were not started are nil.
func (b *bench) stop() {
	for _, p := range append(b.others, b.aegis, b.durable, b.proxy, b.stub) {
		p.stop()
	}
}

// unbounded has bounds that no answer reaches.
var unbounded = settings{sync: "interval", maxChars: 10_000_000, metrics: true}

// servers starts everything that is compared.
func (b *bench) servers() error {
	var err error
	if b.stub, err = spawn(b.ctx, roleStub, ""); err != nil {
		return err
	}
	if b.proxy, err = spawn(b.ctx, roleProxy, b.stub.url); err != nil {
		return err
	}
	if b.aegis, err = startAegis(b.ctx, b.bin, b.dir, b.stub.url, unbounded); err != nil {
		return err
	}
	// The other one has the default bounds and the durable log.
	usual := settings{sync: "always", maxChars: 60_000, metrics: true}
	if b.durable, err = startAegis(b.ctx, b.bin, b.dir, b.stub.url, usual); err != nil {
		return err
	}
	return errors.Join(b.aegis.answered(&b.jobs[0]), b.durable.answered(&b.jobs[0]))
}

// compare compares targets for one client and for many at a time.
func (b *bench) compare(job *payload, targets []target, base, many int) error {
	for _, workers := range []int{1, many} {
		if err := compare(b.out, job, targets, base, plan{workers, b.o.rounds, b.o.calls}); err != nil {
			return err
		}
	}
	return nil
}

// ours is Aegis as a target, without a handshake: it needs none.
func ours(name string, p *process, version string) target {
	c := &mcpClient{name: name, url: p.url, token: token, version: version, stateless: true}
	return target{name, p, c.fetch}
}

// calls compares the answers of tools with the same answers without Aegis.
func (b *bench) calls() error {
	if b.o.old != "" {
		return b.since()
	}
	direct, proxy := plain("direct", b.stub), plain("reverse proxy", b.proxy)
	header(b.out, "proxy")
	for i := range b.jobs {
		job := &b.jobs[i]
		// Directly, to show what the proxy costs, which is what everything is compared with.
		targets := []target{direct, proxy}
		if job.cut {
			targets = append(targets, ours("aegis, default bounds", b.durable, "2025-11-25"))
		} else {
			// Both protocols: the older has a handshake, which Aegis does without, and the newer larger requests.
			targets = append(targets, ours("aegis 2025-11-25", b.aegis, "2025-11-25"),
				ours("aegis 2026-07-28", b.aegis, "2026-07-28"))
		}
		// The durable log costs the same for any answer, so one row is enough.
		if i == 0 {
			targets = append(targets, ours("aegis, audit sync always", b.durable, "2025-11-25"))
		}
		// More clients than processors: what a queue costs is seen, too.
		many := 16
		if job.cut { // fewer of the 16 MiB answers at a time
			many = 4
		}
		if err := b.compare(job, targets, 1, many); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(b.out)
	return err
}

// since compares the calls of an earlier program with those of the present one, both at
// work on the same stub, round by round, so that what the machine does meanwhile meets both.
func (b *bench) since() error {
	old, err := startAegis(b.ctx, b.o.old, b.dir, b.stub.url, unbounded)
	if err != nil {
		return err
	}
	b.others = append(b.others, old)
	if err := old.answered(&b.jobs[0]); err != nil {
		return err
	}
	header(b.out, "old")
	targets := []target{ours("old", old, "2025-11-25"), ours("new", b.aegis, "2025-11-25")}
	for i := range b.jobs {
		// Bounds cut it, so it measures no more of a change than the 1 MiB text does.
		if b.jobs[i].cut {
			continue
		}
		if err := b.compare(&b.jobs[i], targets, 0, 16); err != nil {
			return err
		}
	}
	return nil
}

// list compares tools/list with the same bytes of a static handler.
func (b *bench) list() error {
	fmt.Fprintln(b.out, "The list of tools; ratios are to the same bytes from a static handler.")
	fmt.Fprintln(b.out)
	header(b.out, "static")
	// Both forms are made at start, so this is the price of HTTP and of finding the list.
	for _, gzip := range []bool{false, true} {
		name := "tools/list"
		if gzip {
			name += ", gzip"
		}
		listed := &listClient{
			mcpClient: mcpClient{url: b.aegis.url, token: token, version: "2025-11-25", gzip: gzip},
		}
		// Once before all, as the other target needs the bytes.
		if err := listed.fetch(newWorker(transport()), nil); err != nil {
			return err
		}
		file := filepath.Join(b.dir, fmt.Sprintf("list-%v", gzip))
		// The static handler is given the answer of Aegis itself, so that both send the same bytes.
		if err := os.WriteFile(file, listed.want, 0o600); err != nil {
			return err
		}
		p, err := spawn(b.ctx, roleStatic, file)
		if err != nil {
			return err
		}
		b.others = append(b.others, p)
		static := &listClient{mcpClient: mcpClient{url: p.url, version: "2025-11-25"}}
		// A list is some hundred kilobytes: a quarter of the calls is enough.
		job := &payload{name: fmt.Sprintf("%s (%s)", name, size(float64(len(listed.want)))), calls: 4}
		targets := []target{{"static handler", p, static.fetch}, {"aegis", b.aegis, listed.fetch}}
		if err := b.compare(job, targets, 0, 16); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(b.out)
	return err
}

// start measures the start up to the first answered call, and memory then and
// after many calls.
func (b *bench) start() error {
	var took []time.Duration
	var fresh int64
	for range b.o.rounds {
		began := time.Now()
		p, err := startAegis(b.ctx, b.bin, b.dir, b.stub.url, settings{sync: "interval", maxChars: 10_000_000})
		if err != nil {
			return err
		}
		// A process that listens may still be reading its catalog; only an answer shows that it is ready.
		err = p.answered(&b.jobs[0])
		took = append(took, time.Since(began))
		// The highest, as a collection may or may not have run by then.
		fresh = max(fresh, p.rss())
		if err == nil && len(took) == b.o.rounds && b.o.soak > 0 {
			err = b.soaked(p)
		}
		p.stop()
		if err != nil {
			return err
		}
	}
	info, err := os.Stat(b.bin)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "Start to the first answered call: median %v of %d starts. RSS then: %s at most. "+
		"Program: %s.\n",
		median(took).Round(time.Millisecond), len(took), size(float64(fresh)), size(float64(info.Size())))
	return err
}

// soaked measures memory after many mixed calls, one in ten of them a list and one
// in a thousand a large text.
func (b *bench) soaked(p *process) error {
	t, connections := ours("soak", p, "2025-11-25"), transport()
	defer connections.CloseIdleConnections()
	var workers [16]*worker
	for n := range workers {
		workers[n] = newWorker(connections)
	}
	err := together(len(workers), b.o.soak/len(workers), func(n, i int) error {
		job := &b.jobs[0]
		switch k := i*len(workers) + n; {
		case k%1000 == 7:
			job = &b.jobs[2]
		case k%10 == 3:
			job = &b.jobs[1]
		}
		return t.fetch(workers[n], job)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "RSS after %d mixed calls: %s.\n", b.o.soak, size(float64(p.rss())))
	return err
}

// foreign compares one call of any server with the stub's answer through the
// plain proxy.
func (b *bench) foreign() error {
	var job payload
	for _, p := range b.jobs {
		if p.path == b.o.path {
			job = p
		}
	}
	if job.path == "" || b.o.tool == "" {
		return fmt.Errorf("-url needs -tool, and a -path that the stub has")
	}
	job.tool, job.args = b.o.tool, b.o.args
	if b.o.mark != "" {
		job.mark = b.o.mark
	}
	upstream := b.o.upstream
	var err error
	// The foreign server may be slow to start, so its stub is mostly one that runs already.
	if upstream == "" {
		if b.stub, err = spawn(b.ctx, roleStub, ""); err != nil {
			return err
		}
		upstream = b.stub.url
	}
	if b.proxy, err = spawn(b.ctx, roleProxy, upstream); err != nil {
		return err
	}
	c := &mcpClient{name: b.o.url, url: b.o.url, token: b.o.token, version: b.o.version, foreign: true}
	// What the foreign server allocates and computes is not known: it was not started here.
	targets := []target{plain("reverse proxy", b.proxy), {c.name, nil, c.fetch}}
	header(b.out, "proxy")
	return b.compare(&job, targets, 0, 16)
}
