package config

import (
	"net"
	"slices"
	"strings"
)

// Warnings returns what is legal and still a risk or of no effect, sorted by
// place. Nothing in it stops Aegis from starting.
func (c *Config) Warnings() Problems {
	v := &validator{c: c, problems: slices.Clone(c.source.warnings)}
	v.warnNetwork()
	v.warnTokens()
	v.warnMasking()
	v.warnSizes()
	v.addIf(c.AuditOff(), "audit.path", "is off; nobody can tell later who did what",
		"remove it, and the log is written to data_dir")
	v.warnEdge()
	v.warnTLS()
	v.warnStore()
	v.problems.Sort()
	return v.problems
}

// warnOpenFile notes that everyone on the machine may read the file's secrets.
func (c *Config) warnOpenFile() {
	if len(c.source.literals) == 0 {
		return
	}
	key := c.source.literals[0]
	c.source.warnings = append(c.source.warnings, c.Problem(key,
		"the secret stands in a file that everyone on this machine may read",
		"use ${NAME} or file:/path for secrets, or take the right from others: chmod o-r"))
}

func (v *validator) warnNetwork() {
	c := v.c
	host, err := listenHost(c.Listen)
	plain := c.TLS.Mode == "off" && (c.PublicURL == nil || c.PublicURL.Scheme == "http")
	v.addIf(err == nil && !loopback(host) && plain, "listen",
		"is open to the network in plain http; tokens cross it readable",
		"set tls.mode, or put a TLS proxy in front and set public_url to its https address, or listen on 127.0.0.1")
	if u := c.Gitea.URL; u != nil && u.Scheme == "http" {
		v.addIf(!nearby(u.Hostname()), "gitea.url",
			"is plain http to a host that may be far away; Gitea tokens cross the network readable", "use https")
		v.addIf(c.Gitea.CAFile != "", "gitea.ca_file",
			"has no effect while gitea.url is http", "use https, or remove it")
	}
}

// nearby reports whether a host is this machine, a container network's name or
// a private address.
func nearby(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return loopback(host) || !strings.Contains(strings.TrimSuffix(host, "."), ".")
}

func (v *validator) warnTokens() {
	for i, t := range v.c.Auth.Tokens {
		key, n := item("auth.tokens", i), len(t.Token.Reveal())
		v.addIf(n > 0 && n < 32, key+".token", "is shorter than 32 characters",
			`make a longer one with "openssl rand -hex 32"`)
		v.addIf(n > 0 && t.Token.Equal(t.GiteaToken), key+".token",
			"is the Gitea token itself, so that clients could use Gitea past Aegis",
			`make one of its own with "openssl rand -hex 32"`)
		v.addIf(t.AllowSudo, key+".allow_sudo", "lets this token act as every user of Gitea",
			"keep it for tokens that need it")
	}
}

func (v *validator) warnMasking() {
	m := v.c.Masking
	v.addIf(m.Mode == "off", "masking.mode", "is off; secrets that people left in Gitea reach the model",
		"set it to mask")
	v.addIf(!m.Builtin && len(m.DisableRules) > 0, "masking.disable_rules",
		"has no effect while masking.builtin is false", "remove one of them")
}

func (v *validator) warnSizes() {
	c, files := v.c, v.c.Results.MaxBinaryBytes
	v.addIf(int64(files)*4/3 > int64(c.Server.MaxBodyBytes), "results.max_binary_bytes",
		"is more than a request can carry: base64 makes files a third larger, and server.max_body_bytes is "+
			c.Server.MaxBodyBytes.String(),
		"raise server.max_body_bytes, or lower this")
	v.addIf(files > c.Gitea.MaxResponseBytes, "results.max_binary_bytes",
		"is more than gitea.max_response_bytes, "+c.Gitea.MaxResponseBytes.String(), "raise that, or lower this")
	v.addIf(c.Tools.PageSize < 1000 && c.Tools.Mode == "full", "tools.page_size",
		"divides the tool list; clients that ask for one page see part of it",
		"leave it at 1000 unless a client needs less")
}
