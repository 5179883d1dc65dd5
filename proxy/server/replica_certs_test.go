package server_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aegis/proxy/edge/certs/acmetest"
	"aegis/proxy/kv/redistest"
)

// certified are replicas that serve one host, behind a plain balancer to which the
// authority's challenges come.
type certified struct {
	t         *testing.T
	authority *acmetest.Authority
	redis     *redistest.Server
	replicas  []*replica
	away      atomic.Pointer[replica] // gets no requests; nil: all do
}

const certHost = "aegis.test"

// newCertified configures n replicas, which are not started.
func newCertified(t *testing.T, n int) *certified {
	t.Helper()
	if testing.Short() {
		t.Skip("several processes and real clocks: run without -short")
	}
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0") // an order that is sent again would count twice
	site := acmetest.NewSite(t)
	c := &certified{t: t, authority: acmetest.New(t, site, acmetest.Options{}), redis: redistest.Start(t)}
	var plain []string
	for i := range n {
		r := &replica{t: t, name: fmt.Sprintf("aegis-%d", i+1), addr: steadyAddr(t), file: filepath.Join(t.TempDir(), "aegis.yaml"), env: []string{replicaHaste + "=1"}}
		plain = append(plain, steadyAddr(t))
		text := fmt.Sprintf("listen: %s\npublic_url: https://%s\ngitea: {url: http://127.0.0.1:1}\ndata_dir: %q\nauth: {tokens: [{name: bot, token: %s, gitea_token: x}]}\n"+
			"tls: {mode: auto, http_listen: %q, acme: {directory: %q, ca_file: %q, agree_tos: true, challenges: [http-01]}}\n"+
			"store: {kind: redis, url: \"redis://%s\", keys: [%s], replica: %s, timeout: 30s}\n",
			r.addr, certHost, filepath.Join(t.TempDir(), "data"), botToken, plain[i], c.authority.Directory, c.authority.RootFile, c.redis.Address, replicaKey, r.name)
		if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.replicas = append(c.replicas, r)
	}
	ln, err := net.Listen("tcp", site.Plain)
	if err != nil {
		t.Fatal(err)
	}
	balancer := &http.Server{Handler: c.balance(plain)}
	go func() { _ = balancer.Serve(ln) }()
	t.Cleanup(func() { _ = balancer.Close() })
	return c
}

// balance gives each request to the plain address of the next replica; one that is
// away or does not answer is passed over.
func (c *certified) balance(plain []string) http.Handler {
	var next atomic.Int64
	transport := &http.Transport{DisableKeepAlives: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := int(next.Add(1))
		for i := range plain {
			at := (first + i) % len(plain)
			to, failed := plain[at], false
			if c.replicas[at] == c.away.Load() {
				continue
			}
			(&httputil.ReverseProxy{
				Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
				Rewrite: func(p *httputil.ProxyRequest) {
					p.SetURL(&url.URL{Scheme: "http", Host: to})
					p.Out.Host = p.In.Host
				},
				ErrorHandler: func(http.ResponseWriter, *http.Request, error) { failed = true },
			}).ServeHTTP(w, r)
			if !failed {
				return
			}
		}
		w.WriteHeader(http.StatusBadGateway)
	})
}

// serial returns the number of the certificate that a replica serves.
func (c *certified) serial(r *replica) (string, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", r.addr, &tls.Config{RootCAs: c.authority.Roots, ServerName: certHost})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// ordered ends all replicas and returns how many certificates they got, as far as
// they told since they were last started.
func (c *certified) ordered() (n int) {
	for _, r := range c.replicas {
		r.kill()
		n += r.ordered()
	}
	return n
}

// ordered returns how many certificates a replica that has ended got.
func (r *replica) ordered() int { return strings.Count(r.log.String(), "got a certificate") }

// endLeases does what time does to the leases of a replica that is not there: that of
// the order, and that of the account if it has come so far.
func (c *certified) endLeases() {
	c.t.Helper()
	const end = `EVAL "local l = redis.call('KEYS', 'aegis:kv:lease/cert/*') for _, k in ipairs(l) do redis.call('PEXPIRE', k, 1) end return #l" 0`
	if got := c.redis.Do(end); got != ":1" && got != ":2" {
		c.t.Fatalf("there is no lease to end: %s", got)
	}
}

// same waits until the replicas serve one certificate, and returns its number.
func (c *certified) same(list ...*replica) string {
	c.t.Helper()
	serial := ""
	for _, r := range list {
		eventually(c.t, func() error {
			got, err := c.serial(r)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if serial == "" {
				serial = got
			}
			if got != serial {
				return errors.New("the certificates differ")
			}
			return nil
		})
	}
	return serial
}

// TestOneCertificateForAll: three replicas start at once; one order is made, its
// challenge is answered by whichever replica is asked, and all serve the result.
func TestOneCertificateForAll(t *testing.T) {
	c := newCertified(t, 3)
	for _, r := range c.replicas {
		r.start()
		t.Cleanup(r.kill)
	}
	c.same(c.replicas...)
	if n := c.ordered(); n != 1 {
		t.Errorf("%d certificates for three replicas, want one", n)
	}
	if n := c.authority.Orders.Load(); n < 1 || n > 2 { // a client may have to repeat its order
		t.Errorf("%d orders for three replicas, want one", n)
	}
	if k := c.redis.Do("HLEN aegis:kv:meta/keys"); k != ":2" {
		t.Errorf("the store is not in use: %s", k)
	}
}

// TestReplicaStopsWhileItOrders: the replica that has the lock is frozen in the
// middle of its order. Another takes over when the lease has ended, and what the
// first does afterwards changes nothing.
func TestReplicaStopsWhileItOrders(t *testing.T) {
	c := newCertified(t, 3)
	c.authority.Down() // the order hangs
	for _, r := range c.replicas {
		r.start()
		t.Cleanup(r.kill)
	}
	var holder *replica
	var others []*replica
	eventually(t, func() error {
		for _, r := range c.replicas {
			if strings.Contains(r.log.String(), "lock acquired") {
				holder = r
				return nil
			}
		}
		return errors.New("no replica has the lock")
	})
	holder.signal(syscall.SIGSTOP)
	c.away.Store(holder)
	for _, r := range c.replicas {
		if r != holder {
			others = append(others, r)
		}
	}
	c.authority.Up(t)
	if !whole() { // else the leases end by themselves, after half a minute
		c.endLeases()
	}
	serial := c.same(others...)
	orders := c.authority.Orders.Load()
	if orders < 1 || orders > 2 { // a client may have to repeat its order
		t.Errorf("%d orders for three replicas, want one", orders)
	}
	holder.kill()
	if n := holder.ordered(); n != 0 {
		t.Errorf("the replica that was frozen got %d certificates", n)
	}
	c.away.Store(nil)
	holder.start()
	if got := c.same(holder); got != serial {
		t.Error("the replica that was killed came back with another certificate")
	}
	if n := c.authority.Orders.Load(); n != orders {
		t.Errorf("%d orders afterwards, and %d before", n, orders)
	}
	if n := c.ordered(); n != 1 {
		t.Errorf("%d certificates for three replicas, want one", n)
	}
}
