package config

import (
	"fmt"
	"maps"
	"slices"
)

// limits checks what the tags of Limits cannot say.
func (v *validator) limits() {
	l := v.c.Limits
	v.buckets("limits", l.Tools, map[string]Limit{
		"address": l.Address, "identity": l.Identity, "team": l.Team,
		"read": l.Read, "write": l.Write, "destructive": l.Destructive,
	})
}

// buckets checks the buckets of a section by name, and those of single tools.
func (v *validator) buckets(section string, tools, named map[string]Limit) {
	for name, limit := range named {
		v.burst(section+"."+name, limit)
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		key := join(section+".tools", name)
		if !toolName.MatchString(name) {
			v.add(ruleLimitTool, key, "is not a tool's name", "write a name such as gitea_repository_search")
		}
		v.burst(key, tools[name])
	}
}

// burst refuses a burst that bounds nothing. A default that stands beside a rate
// switched off is no mistake of the file's.
func (v *validator) burst(key string, l Limit) {
	if l.Rate.Off() && l.Burst > 0 && v.c.IsSet(key+".burst") {
		v.add(ruleLimitBurst, key+".burst", "has no effect while the rate is off", "set "+key+".rate, or remove it")
	}
}

// edge checks what concerns proxies and the metrics listener.
func (v *validator) edge() {
	if s := v.c.Server; s.ProxyProtocol && len(s.TrustedProxies) == 0 {
		v.add(ruleProxyProtocol, "server.proxy_protocol", "trusts nobody while server.trusted_proxies is empty", "list the proxies' networks in server.trusted_proxies, or remove it")
	}
	m := v.c.Metrics
	if m.Listen == "" {
		return
	}
	host, err := listenHost(m.Listen)
	if err != nil {
		what, do := split(err)
		v.add(ruleListen, "metrics.listen", quote(m.Listen)+" "+what, do)
	} else if !loopback(host) && !m.AllowRemote {
		v.add(ruleMetricsRemote, "metrics.listen", "is open to the network", "listen on 127.0.0.1, or set metrics.allow_remote: true where a firewall decides who reads them")
	}
}

// edge warns of proxies that may be anybody, and of settings without effect.
func (w *warner) edge() {
	c := w.c
	for i, p := range c.Server.TrustedProxies {
		if p.Bits() == 0 {
			w.add(fmt.Sprintf("server.trusted_proxies[%d]", i), "trusts everybody's word on the client's address, so that limits by address hold nobody",
				"list the networks of the proxies alone")
		}
	}
	if c.Auth.OAuth.Enabled && c.TLS.Mode == "off" && c.PublicURL != nil && c.PublicURL.Scheme == "https" && len(c.Server.TrustedProxies) == 0 {
		w.add("server.trusted_proxies", "is empty, and public_url says that a proxy ends TLS in front: all its clients count as one address, so that one of them can keep everybody else from signing in",
			"list the proxy's address or network, such as 127.0.0.1/32")
	}
	if len(c.Gitea.StripHeaders) > 0 && !c.Gitea.Passthrough {
		w.add("gitea.strip_headers", "has no effect while gitea.passthrough is false", "remove one of them")
	}
	if c.Metrics.AllowRemote && c.Metrics.Listen == "" {
		w.add("metrics.allow_remote", "has no effect while metrics.listen is empty", "remove it, or set metrics.listen")
	}
	if c.Tracing.Endpoint == nil && (len(c.Tracing.Headers) > 0 || c.Tracing.Logins || c.IsSet("tracing.sample") && c.Tracing.Sample != 1) {
		w.add("tracing", "has no effect while tracing.endpoint is empty", "set it, or remove the rest")
	}
	if l := c.Limits.Concurrency; l.Total > 0 && l.Identity > l.Total {
		w.add("limits.concurrency.identity", "is more than limits.concurrency.total, so that one identity may use up all", "lower it")
	}
}
