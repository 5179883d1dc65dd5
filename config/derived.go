package config

import (
	"net"
	"net/url"
	"reflect"
	"strings"
)

// Base returns the address by which clients and people reach Aegis, without a trailing
// slash: the configured one, or one that fits the listener.
func (c *Config) Base() *url.URL {
	if c.PublicURL != nil {
		u := c.PublicURL.URL
		u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
		return &u
	}
	u := &url.URL{Scheme: "http", Host: reachable(c.Listen)}
	if c.TLS.Mode != "off" {
		u.Scheme = "https"
	}
	if hosts := c.TLSHosts(); c.TLS.Mode == "auto" && len(hosts) > 0 {
		u.Host = hosts[0]
	}
	return u
}

// reachable turns the address of a listener on every interface into one that a
// client on this machine can use: no Host check lets 0.0.0.0 pass.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}

// Secrets returns every secret of the configuration, so that none of them is ever shown,
// wherever it turns up.
func (c *Config) Secrets() (list []string) {
	c.leaves(func(x reflect.Value, _ reflect.StructField, _ string) {
		if s, ok := x.Interface().(Secret); ok && !s.IsZero() {
			list = append(list, s.Reveal())
		}
	})
	return list
}
