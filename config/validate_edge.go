package config

import "reflect"

// buckets checks the buckets of a section with limits, by name, and those of single tools.
func (v *validator) buckets(section string, limits reflect.Value) {
	for _, f := range keysOf(limits.Type()) {
		key := join(section, f.Tag.Get("yaml"))
		switch x := limits.FieldByIndex(f.Index).Interface().(type) {
		case Limit:
			v.burst(key, x)
		case map[string]Limit:
			for _, name := range toolKeys(v, key, x, "gitea_repository_search") {
				v.burst(join(key, name), x[name])
			}
		}
	}
}

// burst refuses a burst that bounds nothing. A default beside a rate that is off is no
// mistake of the file's.
func (v *validator) burst(key string, l Limit) {
	v.addIf(l.Rate.Off() && l.Burst > 0 && v.c.IsSet(key+".burst"), key+".burst",
		"has no effect while the rate is off", "set "+key+".rate, or remove it")
}

// edge checks what concerns proxies and the metrics listener.
func (v *validator) edge() {
	s, m := v.c.Server, v.c.Metrics
	v.addIf(s.ProxyProtocol && len(s.TrustedProxies) == 0, "server.proxy_protocol",
		"trusts nobody while server.trusted_proxies is empty",
		"list the proxies' networks in server.trusted_proxies, or remove it")
	if m.Listen == "" {
		return
	}
	host, ok := v.address("metrics.listen", m.Listen)
	v.addIf(ok && !loopback(host) && !m.AllowRemote, "metrics.listen", "is open to the network",
		"listen on 127.0.0.1, or set metrics.allow_remote: true where a firewall decides who reads them")
}

// warnEdge warns of proxies that anybody could be, and of settings without effect.
func (v *validator) warnEdge() {
	c := v.c
	for i, p := range c.Server.TrustedProxies {
		v.addIf(p.Bits() == 0, item("server.trusted_proxies", i),
			"trusts everybody's word on the client's address, so that limits by address hold nobody",
			"list the networks of the proxies alone")
	}
	behindProxy := c.TLS.Mode == "off" && c.PublicURL != nil && c.PublicURL.Scheme == "https"
	v.addIf(c.Auth.OAuth.Enabled && behindProxy && len(c.Server.TrustedProxies) == 0, "server.trusted_proxies",
		"is empty, and public_url says that a proxy ends TLS in front: all its clients count as one address, "+
			"so that one of them can keep everybody else from signing in",
		"list the proxy's address or network, such as 127.0.0.1/32")
	v.addIf(len(c.Gitea.StripHeaders) > 0 && !c.Gitea.Passthrough, "gitea.strip_headers",
		"has no effect while gitea.passthrough is false", "remove one of them")
	v.addIf(c.Metrics.AllowRemote && c.Metrics.Listen == "", "metrics.allow_remote",
		"has no effect while metrics.listen is empty", "remove it, or set metrics.listen")
	t := c.Tracing
	tuned := len(t.Headers) > 0 || t.Logins || c.IsSet("tracing.sample") && t.Sample != 1
	v.addIf(t.Endpoint == nil && tuned, "tracing",
		"has no effect while tracing.endpoint is empty", "set it, or remove the rest")
	l := c.Limits.Concurrency
	v.addIf(l.Total > 0 && l.Identity > l.Total, "limits.concurrency.identity",
		"is more than limits.concurrency.total, so that one identity may use up all", "lower it")
}
