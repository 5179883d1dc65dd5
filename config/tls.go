package config

import (
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// TLS says how the listener is encrypted. Its settings take effect at the
// start; certificates are renewed and re-read while Aegis runs.
type TLS struct {
	// Mode is "off" (plain HTTP, for loopback or behind a TLS proxy), "auto"
	// (certificates from an ACME authority, such as Let's Encrypt) or "files".
	// Default off.
	Mode string `yaml:"mode" enum:"off auto files"`
	// Hosts are the DNS names to get certificates for, with mode auto. Empty:
	// the host of public_url.
	Hosts []string `yaml:"hosts" example:"aegis.example.org"`
	// HTTPListen is the address of a second, plain listener that answers ACME
	// HTTP challenges and sends everybody else to https, with modes auto and
	// files. Off: there is none. Default :80.
	HTTPListen string `yaml:"http_listen" example:"0.0.0.0:80"`
	// CertFile is a PEM file with the certificate and its intermediates, with
	// mode files. It is read again when it changes. A relative path starts at
	// the folder of the configuration file.
	CertFile string `yaml:"cert_file" file:"true" example:"/etc/aegis/tls/fullchain.pem"`
	// KeyFile is a PEM file with the private key of cert_file; read as that.
	KeyFile string `yaml:"key_file" file:"true" example:"/etc/aegis/tls/privkey.pem"`
	// ClientCA is a PEM file with certificate authorities. With it, clients
	// must show a certificate of one of them, besides their token. A relative
	// path starts at the folder of the configuration file. Empty: clients need
	// no certificate.
	ClientCA string `yaml:"client_ca" file:"true" example:"/etc/aegis/tls/clients.pem"`
	// ACME says where certificates of mode auto come from.
	ACME ACME `yaml:"acme"`
}

// ACME says where certificates of mode auto come from.
type ACME struct {
	// Directory is the address of the authority's ACME directory (RFC 8555).
	// Plain http is for loopback hosts only.
	// Default https://acme-v02.api.letsencrypt.org/directory.
	Directory *URL `yaml:"directory" example:"https://acme-v02.api.letsencrypt.org/directory"`
	// CAFile is a PEM file of certificate authorities to trust for the
	// connection to the directory, in place of the system's: for an authority of
	// your own. A relative path starts at the folder of the configuration file.
	// Empty: the system's.
	CAFile string `yaml:"ca_file" file:"true" example:"/etc/aegis/tls/acme-root.pem"`
	// Email is where the authority may write to. Empty: none is given.
	Email string `yaml:"email" pattern:"^([^@\\s<>,;]+@[^@\\s<>,;]+)?$" says:"one address such as admin@example.org, or nothing" example:"admin@example.org"`
	// AgreeTOS says that you agree to the authority's terms of service, which it
	// links in its directory. Mode auto needs it. Default false.
	AgreeTOS bool `yaml:"agree_tos"`
	// EABKeyID and the key after it bind the account to one that you have with
	// the authority already (external account binding). Empty: not bound.
	EABKeyID string `yaml:"eab_key_id" length:"0 1000" example:"kid-1"`
	// EABMACKey is the base64url key that came with eab_key_id.
	EABMACKey Secret `yaml:"eab_mac_key" length:"1 4096" example:"${ACME_EAB_KEY}"`
	// Challenges are the ways to prove that a host is ours: http-01 needs port
	// 80 of the host to reach http_listen, tls-alpn-01 needs port 443 to reach
	// listen. Either suffices. Default both.
	Challenges []string `yaml:"challenges" enum:"http-01 tls-alpn-01" example:"http-01"`
}

func defaultTLS() TLS {
	return TLS{
		Mode:       "off",
		HTTPListen: ":80",
		ACME: ACME{
			Directory:  &URL{url.URL{Scheme: "https", Host: "acme-v02.api.letsencrypt.org", Path: "/directory"}},
			Challenges: []string{"http-01", "tls-alpn-01"},
		},
	}
}

// TLSHosts returns the names that certificates of mode auto are for, in
// canonical spelling: tls.hosts, or the host of public_url.
func (c *Config) TLSHosts() []string {
	if len(c.TLS.Hosts) > 0 {
		return c.TLS.Hosts
	}
	if c.PublicURL != nil && c.PublicURL.Host != "" {
		return []string{foldHost(c.PublicURL.Hostname())}
	}
	return nil
}

// tls checks the rules between the keys of tls.
func (v *validator) tls() {
	t := v.c.TLS
	if t.Mode == "off" {
		return
	}
	u := v.c.PublicURL
	v.addIf(u != nil && u.Scheme == "http", "public_url", "is http while tls.mode is "+t.Mode, "write https")
	v.httpListen()
	switch t.Mode {
	case "files":
		v.addIf(t.CertFile == "", "tls.cert_file", "is needed with tls.mode files", "name the PEM file")
		v.addIf(t.KeyFile == "", "tls.key_file", "is needed with tls.mode files", "name the PEM file")
	case "auto":
		v.tlsHosts()
		v.acme()
	}
}

// httpListen checks the address of the plain listener.
func (v *validator) httpListen() {
	t := v.c.TLS
	if t.HTTPListen == "off" {
		return
	}
	if _, err := listenHost(t.HTTPListen); err != nil {
		what, _ := split(err)
		v.add("tls.http_listen", quote(t.HTTPListen)+" "+what, "write host:port, such as :80, or off")
		return
	}
	_, plain, _ := net.SplitHostPort(t.HTTPListen)
	_, port, err := net.SplitHostPort(v.c.Listen)
	v.addIf(err == nil && port == plain && port != "0", "tls.http_listen",
		"has the port of listen", "give each its own: listen :443 and tls.http_listen :80")
}

func (v *validator) tlsHosts() {
	hosts := v.c.TLSHosts()
	v.addIf(len(hosts) == 0, "tls.hosts", "is needed with tls.mode auto while public_url is empty",
		"set public_url to https:// and the name that clients use")
	for i, h := range hosts {
		key := "public_url"
		if len(v.c.TLS.Hosts) > 0 {
			key = item("tls.hosts", i)
		}
		_, err := netip.ParseAddr(h)
		v.addIf(err == nil || !validHost(h), key, quote(h)+" is not a DNS name that a certificate can be got for",
			"write a name such as aegis.example.org, without port or wildcard; for an address use tls.mode files")
	}
}

func (v *validator) acme() {
	a := v.c.TLS.ACME
	refuseIf := func(bad bool, key, what, do string) { v.addIf(bad, "tls.acme."+key, what, do) }
	refuseIf(a.Directory == nil, "directory", "is empty",
		"write the address of the authority's ACME directory, or remove the line")
	refuseIf(insecure(a.Directory), "directory", "is plain http to another machine",
		"write https; for an authority of your own, name its root in tls.acme.ca_file")
	refuseIf(!a.AgreeTOS, "agree_tos", "must be true for tls.mode auto",
		"read the terms of service of your certificate authority and set it")
	refuseIf(len(a.Challenges) == 0, "challenges", "is empty", "list http-01, tls-alpn-01 or both")
	refuseIf(v.c.TLS.HTTPListen == "off" && strings.Join(a.Challenges, " ") == "http-01", "challenges",
		"allows http-01 alone, which needs tls.http_listen", "set tls.http_listen, or allow tls-alpn-01")
	refuseIf((a.EABKeyID == "") != a.EABMACKey.IsZero(), "eab_key_id",
		"and tls.acme.eab_mac_key go together, and one is empty", "set both or neither")
	_, err := base64.RawURLEncoding.DecodeString(a.EABMACKey.Reveal())
	refuseIf(err != nil, "eab_mac_key", "is not base64url",
		"copy it from the authority again: letters, digits, - and _ without = at the end")
}

// warnTLS warns of settings of tls that have no effect.
func (v *validator) warnTLS() {
	t := v.c.TLS
	unused := func(set bool, key, mode string) {
		v.addIf(set && t.Mode != mode, key,
			"has no effect with tls.mode "+t.Mode, "set tls.mode to "+mode+", or remove it")
	}
	unused(t.CertFile != "", "tls.cert_file", "files")
	unused(t.KeyFile != "", "tls.key_file", "files")
	unused(len(t.Hosts) > 0, "tls.hosts", "auto")
	unused(t.ACME.AgreeTOS, "tls.acme.agree_tos", "auto")
	v.addIf(t.Mode == "off" && t.ClientCA != "", "tls.client_ca",
		"has no effect with tls.mode off; clients are not asked for a certificate", "set tls.mode to auto or files")
}
