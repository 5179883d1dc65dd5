package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// store checks what the tags of Store cannot say.
func (v *validator) store() {
	s := v.c.Store
	if s.KeyFile != "" && len(s.Keys) > 0 {
		v.add(ruleStore, "store.key_file", "is set together with store.keys", "keep one of them")
	}
	seen := map[string]int{}
	for i, k := range s.Keys {
		if j, twice := firstUse(seen, k.Reveal(), i); twice {
			v.add(ruleStore, fmt.Sprintf("store.keys[%d]", i), fmt.Sprintf("is also store.keys[%d]", j), "remove it")
		}
	}
	if s.Shared() {
		v.redis(s)
		return
	}
	if v.c.Limits.Shared {
		v.add(ruleStoreRedis, "limits.shared", "needs a store that replicas share, and store.kind is "+quote(s.Kind), "set store.kind to redis, or remove it")
	}
	for _, k := range []struct {
		set bool
		key string
	}{{s.URL != "", "url"}, {len(s.Nodes) > 0, "nodes"}, {s.Sentinel.Master != "", "sentinel.master"}, {s.Cluster, "cluster"}} {
		if k.set {
			v.add(ruleStoreRedis, "store."+k.key, "is for kind redis, and the kind is "+quote(s.Kind), "set store.kind to redis, or remove it")
		}
	}
}

// redis checks the settings of a shared store.
func (v *validator) redis(s Store) {
	if s.URL == "" {
		v.add(ruleStoreRedis, "store.url", "is required with kind redis", "set it, for example to rediss://redis.example.org:6379/0")
	} else if u, err := url.Parse(s.URL); err != nil || u.Hostname() == "" || !portOK(u.Port()) {
		v.add(ruleStoreRedis, "store.url", "is no address", "write it like rediss://redis.example.org:6379/0")
	}
	if len(s.Keys) == 0 && s.KeyFile == "" {
		v.add(ruleStoreRedis, "store.keys", "is required with kind redis, or key_file: every replica needs the same keys, and would else make its own",
			`make one with "openssl rand -hex 32" and give it to every replica`)
	}
	if s.Path != "" {
		v.add(ruleStoreRedis, "store.path", "is for kind file", "remove it")
	}
	if s.Cluster && s.Sentinel.Master != "" {
		v.add(ruleStoreRedis, "store.cluster", "is set together with store.sentinel.master", "keep one of them")
	}
	if s.Cluster && s.Database() != 0 {
		v.add(ruleStoreRedis, "store.url", "names a database, and a cluster has database 0 alone", "remove it")
	}
	if len(s.Nodes) > 0 && !s.Cluster && s.Sentinel.Master == "" {
		v.add(ruleStoreRedis, "store.nodes", "is for Sentinels and clusters", "set store.cluster or store.sentinel.master, or remove it")
	}
	for i, n := range s.Nodes {
		if host, port, err := net.SplitHostPort(n); err != nil || host == "" || port == "" || !portOK(port) {
			v.add(ruleStoreRedis, fmt.Sprintf("store.nodes[%d]", i), "is no address", "write it like 10.0.0.6:26379")
		}
	}
	if s.Username != "" && s.Password.IsZero() {
		v.add(ruleStoreRedis, "store.username", "is set without store.password", "set both")
	}
	if (s.TLS.CertFile == "") != (s.TLS.KeyFile == "") {
		v.add(ruleStoreRedis, "store.tls.cert_file", "and store.tls.key_file belong together", "set both, or none")
	}
	if !s.Encrypted() && s.TLS != (StoreTLS{}) {
		v.add(ruleStoreRedis, "store.tls", "is for rediss:// addresses", "write store.url with rediss://, or remove it")
	}
}

// portOK accepts a port number, or none.
func portOK(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n > 0 && n < 1<<16
}

// store warns of a connection that anybody on its way can read.
func (w *warner) store() {
	s := w.c.Store
	if !s.Shared() || s.Encrypted() {
		return
	}
	for _, a := range s.Addresses() {
		if host, _, err := net.SplitHostPort(a); err == nil && !loopback(host) {
			w.add("store.url", "is not encrypted, and the host is not this machine: the password and the digests of tokens cross the network readable",
				"use rediss://, unless the network is trusted")
			return
		}
	}
}
