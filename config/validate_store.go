package config

import (
	"net"
	"net/url"
)

// store checks what the tags of Store cannot say.
func (v *validator) store() {
	s := v.c.Store
	v.addIf(s.KeyFile != "" && len(s.Keys) > 0, "store.key_file", "is set together with store.keys", "keep one of them")
	unique(v, "store.keys", "", s.Keys, Secret.Reveal, "remove it")
	if s.Shared() {
		v.redis(s)
		return
	}
	const do = "set store.kind to redis, or remove it"
	v.addIf(v.c.Limits.Shared, "limits.shared",
		"needs a store that replicas share, and store.kind is "+quote(s.Kind), do)
	for key, set := range map[string]bool{
		"url": s.URL != "", "nodes": len(s.Nodes) > 0, "sentinel.master": s.Sentinel.Master != "", "cluster": s.Cluster,
	} {
		v.addIf(set, "store."+key, "is for kind redis, and the kind is "+quote(s.Kind), do)
	}
}

// redis checks the settings of a shared store.
func (v *validator) redis(s Store) {
	refuseIf := func(bad bool, key, what, do string) { v.addIf(bad, "store."+key, what, do) }
	const address = "rediss://redis.example.org:6379/0"
	u, err := url.Parse(s.URL)
	refuseIf(s.URL == "", "url", "is required with kind redis", "set it, for example to "+address)
	refuseIf(s.URL != "" && (err != nil || u.Hostname() == "" || u.Port() != "" && !portNumber(u.Port(), 1)),
		"url", "is no address", "write it like "+address)
	refuseIf(len(s.Keys) == 0 && s.KeyFile == "", "keys",
		"is required with kind redis, or key_file: every replica needs the same keys, and would else make its own",
		`make one with "openssl rand -hex 32" and give it to every replica`)
	refuseIf(s.Path != "", "path", "is for kind file", "remove it")
	refuseIf(s.Cluster && s.Sentinel.Master != "", "cluster",
		"is set together with store.sentinel.master", "keep one of them")
	refuseIf(s.Cluster && s.Database() != 0, "url", "names a database, and a cluster has database 0 alone", "remove it")
	refuseIf(len(s.Nodes) > 0 && !s.Cluster && s.Sentinel.Master == "", "nodes",
		"is for Sentinels and clusters", "set store.cluster or store.sentinel.master, or remove it")
	for i, n := range s.Nodes {
		host, port, err := net.SplitHostPort(n)
		refuseIf(err != nil || host == "" || !portNumber(port, 1), item("nodes", i),
			"is no address", "write it like 10.0.0.6:26379")
	}
	refuseIf(s.Username != "" && s.Password.IsZero(), "username", "is set without store.password", "set both")
	refuseIf((s.TLS.CertFile == "") != (s.TLS.KeyFile == ""), "tls.cert_file",
		"and store.tls.key_file belong together", "set both, or none")
	refuseIf(!s.Encrypted() && s.TLS != (StoreTLS{}), "tls",
		"is for rediss:// addresses", "write store.url with rediss://, or remove it")
}

// warnStore warns of a connection that anybody on its way can read.
func (v *validator) warnStore() {
	s := v.c.Store
	if !s.Shared() || s.Encrypted() {
		return
	}
	for _, a := range s.Addresses() {
		if host, _, err := net.SplitHostPort(a); err == nil && !loopback(host) {
			v.add("store.url", "is not encrypted, and the host is not this machine: "+
				"the password and the digests of tokens cross the network readable",
				"use rediss://, unless the network is trusted")
			return
		}
	}
}
