package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/sync/errgroup"
)

// cluster is a Redis cluster: masters that keep some of the 16384 slots each. See the
// cluster specification of Redis for slots, MOVED and ASK.
type cluster struct {
	o      Options
	layout atomic.Pointer[layout] // nil: not known yet
	// stale says that the layout was seen to be wrong, or that a server fails.
	stale atomic.Bool

	mu sync.Mutex
	// nodes are by address. They stay when the layout changes: their connections are good
	// whatever slots a server keeps.
	nodes map[string]*node
}

// layout is which master keeps which slots, in the order of the slots. Replicas are never
// asked: a read from one could miss a write that has just returned.
type layout []span

type span struct {
	first, last int
	n           *node
}

const (
	slots = 16384 // fixed by the cluster specification
	// redirects is how often one command follows a redirection. One is usual, two while a
	// slot is moving; more mean that the servers do not agree.
	redirects = 5
)

var errNoMaster = errors.New("redis: no server of the cluster keeps the entry's slot")

// run sends the commands of each server in one trip, to all servers at the same time. A
// failure makes the next call ask for the layout again: the server may have been replaced.
func (c *cluster) run(ctx context.Context, list ...*command) (err error) {
	defer func() {
		if err != nil {
			c.stale.Store(true)
		}
	}()
	l, err := c.current(ctx)
	if err != nil {
		return err
	}
	groups := map[*node][]*command{}
	for _, m := range list {
		n := l.keeper(slot(m.key))
		if n == nil {
			return errNoMaster
		}
		groups[n] = append(groups[n], m)
	}
	// Without a context of the group: a server that fails must not cut off what others
	// have begun, whose outcome would then be unknown.
	var g errgroup.Group
	for n, part := range groups {
		g.Go(func() error { return n.run(ctx, part...) })
	}
	err = g.Wait()
	// One after another: redirections come only while slots move or after a failover.
	for i := 0; err == nil && i < len(list); i++ {
		err = c.follow(ctx, list[i])
	}
	return err
}

// follow sends a command that was redirected to where it belongs. MOVED says that the
// layout is wrong; ASK that the slot is moving and this key, or its absence, is already at
// the other server.
func (c *cluster) follow(ctx context.Context, m *command) error {
	for range redirects {
		address := ""
		asking := declined(m.err, "ASK")
		if f := strings.Fields(fmt.Sprint(m.err)); len(f) == 3 && (asking || declined(m.err, "MOVED")) {
			address = f[2]
		}
		if address == "" { // an answer, or a failure that a redirection does not cure
			return nil
		}
		// A server that does not know its own name leaves the host out.
		if strings.HasPrefix(address, ":") {
			host, _, _ := net.SplitHostPort(m.at.address)
			address = net.JoinHostPort(host, address[1:])
		}
		n := c.node(address)
		var err error
		if asking { // ASKING holds for the next command of the connection alone
			err = n.run(ctx, &command{name: "ASKING"}, m)
		} else {
			c.stale.Store(true)
			err = n.run(ctx, m)
		}
		if err != nil {
			return err
		}
	}
	return nil // m.err is a redirection still, which sort takes for trouble that passes
}

// node returns the server of an address.
func (c *cluster) node(address string) *node {
	c.mu.Lock() // held for a moment: nothing is dialled here
	defer c.mu.Unlock()
	n := c.nodes[address]
	if n == nil {
		n = c.o.newNode(func(context.Context) (string, error) { return address, nil })
		n.address = address
		c.nodes[address] = n
	}
	return n
}

// current returns the layout, and asks for it when it is not known or wrong. One caller
// asks anew; the others go on with the old layout meanwhile, which is right for most slots
// and corrected by redirections for the rest.
func (c *cluster) current(ctx context.Context) (layout, error) {
	var old layout
	if l := c.layout.Load(); l != nil {
		if old = *l; !c.stale.CompareAndSwap(true, false) {
			return old, nil
		}
	}
	fresh, err := c.discover(ctx, old)
	if err != nil {
		c.stale.Store(true) // also for masters, which is not below run
		return nil, err
	}
	c.layout.Store(&fresh)
	return fresh, nil
}

// discover asks the known masters and the configured servers for the layout: the latter
// may all have been replaced while the process ran.
func (c *cluster) discover(ctx context.Context, old layout) (fresh layout, err error) {
	addresses := slices.Clone(c.o.Addresses)
	for _, n := range old.masters() {
		addresses = append(addresses, n.address)
	}
	slices.Sort(addresses)
	err = c.o.ask(ctx, slices.Compact(addresses), func(ctx context.Context, address string) error {
		conn, err := c.o.dial(ctx, address, c.o.Username, c.o.Password, 0)
		if err != nil {
			return err
		}
		defer conn.Close()
		rows, err := redis.Values(redis.DoWithTimeout(conn, left(ctx), "CLUSTER", "SLOTS"))
		if err != nil {
			return err
		}
		fresh, err = c.read(address, rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("no server tells the cluster's layout: %w", err)
	}
	return fresh, nil
}

// read takes the rows of CLUSTER SLOTS: first slot, last slot, and the servers, each
// with host, port and more; the first one is the master. CLUSTER SHARDS, which replaces
// that command, is not in Redis 6.
func (c *cluster) read(asked string, rows []any) (l layout, err error) {
	for _, r := range rows {
		first, last, port, host, master := -1, -1, -1, "", []any(nil) // what Redis leaves out stays so
		row, err := redis.Values(r, nil)
		if err == nil {
			_, err = redis.Scan(row, &first, &last, &master)
		}
		if err == nil {
			_, err = redis.Scan(master, &host, &port)
		}
		if err != nil || first < 0 || last >= slots || first > last || port < 0 {
			return nil, errors.New("its list of slots is not understood")
		}
		if host == "" || host == "?" { // it does not know its own name: the one that reached it
			host, _, _ = net.SplitHostPort(asked)
		}
		l = append(l, span{first, last, c.node(net.JoinHostPort(host, strconv.Itoa(port)))})
	}
	if len(l) == 0 {
		return nil, errors.New("it keeps no slots; is it part of a cluster?")
	}
	slices.SortFunc(l, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return l, nil
}

// keeper returns the master of a slot, nil when there is none.
func (l layout) keeper(slot int) *node {
	i, found := slices.BinarySearchFunc(l, slot, func(s span, slot int) int {
		switch {
		case s.last < slot:
			return -1
		case s.first > slot:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return l[i].n
}

// masters returns each master once.
func (l layout) masters() (list []*node) {
	for _, s := range l {
		if !slices.Contains(list, s.n) {
			list = append(list, s.n)
		}
	}
	return list
}

// masters are those of the layout in use: a listing that runs while slots move may miss keys.
func (c *cluster) masters(ctx context.Context) ([]*node, error) {
	l, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	return l.masters(), nil
}

// close closes the servers of earlier layouts, too.
func (c *cluster) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.pool.Close())
	}
	return errors.Join(errs...)
}

// slot returns where a cluster keeps a key: CRC-16/XMODEM of it, or of what is in
// the first braces in it. With braces in store.prefix all entries are on one server.
func slot(key string) int {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16 // polynomial 0x1021, high bit first, begins with zero
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}
