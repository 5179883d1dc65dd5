package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// soon is how near the end of a certificate is worth a warning. ACME clients renew a
// month before the end, so at this time something is wrong.
const soon = 14 * 24 * time.Hour

// reach looks at name, port and certificate. It is false when nothing can be
// asked over HTTP.
func (x *examination) reach(ctx context.Context) bool {
	host := x.o.Base.Hostname()
	if !x.names(ctx, host) || !x.port(ctx, host) {
		return false
	}
	if x.o.Base.Scheme == "https" {
		return x.certificate(ctx, host)
	}
	if !loopbackName(host) {
		x.add(Failure, "certificate", "clients would send their tokens unencrypted: "+x.origin+" is plain http",
			"set tls.mode in the configuration, or put a reverse proxy with a certificate before Aegis, "+
				"and make public_url an https address")
		return true
	}
	x.add(Skipped, "certificate", "plain http, on this machine alone", "")
	return true
}

// names resolves the host. A hosted client resolves the name elsewhere: answers of a
// name server inside may differ, for which the documentation says to run this from
// outside too.
func (x *examination) names(ctx context.Context, host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		x.add(Skipped, "dns", "the address is a number", "")
		return true
	}
	addrs, err := x.lookup(ctx, host)
	if err != nil || len(addrs) == 0 {
		x.add(Failure, "dns", "the name "+host+" has no address",
			"make an A record (and an AAAA record for IPv6) for it that points to this host, or correct public_url")
		return false
	}
	var inside []string
	for _, a := range addrs {
		if !public(a) {
			inside = append(inside, a.String())
		}
	}
	if loopbackName(host) {
		x.ok("dns", "%s is this machine", host)
		return true
	}
	x.judge("dns", fmt.Sprintf("%s has %d public address(es)", host, len(addrs)), []outcome{
		{len(inside) > 0, Warning,
			host + " has addresses that the internet does not reach: " + strings.Join(inside, ", "),
			"hosted clients (Claude on the web, ChatGPT) need public addresses only; " +
				"clients on your own network do not mind"},
		{!slices.ContainsFunc(addrs, netip.Addr.Is4), Warning, host + " has IPv6 addresses only",
			"hosted clients connect by IPv4: add an A record"},
	})
	return true
}

// lookup resolves a name. IPv4 addresses may come mapped into IPv6, in which form they
// would not count as IPv4.
func (x *examination) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, x.o.Patience)
	defer cancel()
	addrs, err := x.o.Resolver.LookupNetIP(ctx, "ip", host)
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	return addrs, err
}

// public reports whether hosts on the internet can reach an address. Shared
// address space (RFC 6598) is not covered by IsPrivate.
func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !netip.MustParsePrefix("100.64.0.0/10").Contains(a)
}

// loopbackName reports whether a host is this machine; names below localhost are (RFC
// 6761).
func loopbackName(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// address returns host:port to connect to.
func (x *examination) address() string {
	preset := map[string]string{"http": "80", "https": "443"}[x.o.Base.Scheme]
	return net.JoinHostPort(x.o.Base.Hostname(), cmp.Or(x.o.Base.Port(), preset))
}

// port connects and sends nothing, to tell a closed port from a server without TLS.
func (x *examination) port(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, x.o.Patience)
	defer cancel()
	conn, err := x.o.Dial(ctx, "tcp", x.address())
	if err != nil {
		x.add(Failure, "port", x.address()+" cannot be reached: "+reason(err),
			"start Aegis or the proxy before it, and open the port in the firewall and at the router")
		return false
	}
	_ = conn.Close() // nothing was sent
	port := x.o.Base.Port()
	x.judge("port", x.address()+" answers", []outcome{
		{port != "" && port != "443" && !loopbackName(host), Warning, x.address() + " answers, and it is not port 443",
			"Claude on the web and on phones connects to port 443 only"},
	})
	return true
}

// reason returns the innermost cause of a network error. The outer ones repeat the
// address, and name functions of the network package.
func reason(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// certificate looks at the chain. It is false when there is no TLS at all.
func (x *examination) certificate(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, x.o.Patience)
	defer cancel()
	raw, err := x.o.Dial(ctx, "tcp", x.address())
	if err != nil {
		x.add(Failure, "certificate", "the connection for the certificate failed: "+reason(err), "try again")
		return false
	}
	defer raw.Close()
	name := host
	if _, err := netip.ParseAddr(host); err == nil {
		name = "" // no SNI for numbers
	}
	// The chain is verified below, in parts, to tell what is wrong with it.
	conn := tls.Client(raw, &tls.Config{
		ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"}, Certificates: x.o.Certificates,
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		x.add(Failure, "certificate", "no TLS connection: "+reason(err),
			"let the proxy speak TLS 1.2 or newer on this port; "+
				"with tls.mode auto, /readyz and the log say why there is no certificate yet")
		return false
	}
	x.chain(conn.ConnectionState().PeerCertificates, host)
	return true
}

// chain checks a chain as clients do. Age, name and trust are told apart, since each
// has another fix. The order is that of the causes: an expired certificate of the wrong
// name is first of all expired.
func (x *examination) chain(chain []*x509.Certificate, host string) {
	leaf, now := chain[0], x.o.Now()
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: x.o.Roots, Intermediates: between, CurrentTime: inside(leaf, now)})
	const renew = "renew it: with tls.mode auto see the log and /readyz; with files, replace them " +
		"(Aegis reads them again); else renew it at the proxy"
	// Many browsers fetch a missing issuer themselves, and clients do not, so that this
	// fault stays unseen for long.
	alone := len(chain) == 1 && leaf.Issuer.String() != leaf.Subject.String() // and not self-signed
	x.judge("certificate", "valid for "+host+" until "+day(leaf.NotAfter), []outcome{
		{now.After(leaf.NotAfter), Failure, "the certificate has expired, on " + day(leaf.NotAfter), renew},
		{now.Before(leaf.NotBefore), Failure, "the certificate is valid only from " + day(leaf.NotBefore),
			"check the clocks of both machines"},
		{leaf.VerifyHostname(host) != nil, Failure,
			fmt.Sprintf("the certificate is for %s, not for %s", strings.Join(subjects(leaf), ", "), host),
			"get a certificate for this name, or correct public_url; " +
				"a proxy picks certificates by the name that the client asks for (SNI)"},
		{err != nil && alone, Failure, "the chain is not complete: the server sends its own certificate alone, " +
			"and its issuer is not an authority that clients know",
			"serve the whole chain (fullchain.pem rather than cert.pem); " +
				"for a private authority, give its file with --ca and install it where the clients run"},
		{err != nil, Failure, "clients do not trust the certificate's authority: " + leaf.Issuer.String(),
			"use a certificate of a public authority; hosted clients accept no other. " +
				"For a private one, give its file with --ca and install it where the clients run"},
		{leaf.NotAfter.Sub(now) < soon, Warning, "the certificate ends soon, on " + day(leaf.NotAfter), renew},
	})
}

// inside returns a time at which leaf is valid, so that its age and its trust
// are told apart.
func inside(leaf *x509.Certificate, now time.Time) time.Time {
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return leaf.NotAfter
	}
	return now
}

// subjects returns what a certificate is for. The common name is left out, as clients do
// not look at it any more.
func subjects(c *x509.Certificate) []string {
	list := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	if len(list) == 0 {
		list = append(list, "no name at all")
	}
	return list
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
