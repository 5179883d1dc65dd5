package config_test

import (
	"strings"
	"testing"

	"aegis/config"

	"github.com/google/go-cmp/cmp"
)

func TestTLSHosts(t *testing.T) {
	t.Parallel()
	const auto = "tls: {mode: auto, acme: {agree_tos: true}"
	for text, want := range map[string][]string{
		"public_url: https://Aegis.Example.org:8443/sub\n" + auto + "}\n":             {"aegis.example.org"},
		"public_url: https://aegis.example.org\n" + auto + ", hosts: [A.test, b.]}\n": {"a.test", "b"},
		auto + ", hosts: [a.test]}\n":                                                 {"a.test"},
		"":                                                                            nil,
	} {
		if diff := cmp.Diff(want, mustParse(t, minimal+text).TLSHosts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestTLSPathsStartAtTheFile(t *testing.T) {
	t.Parallel()
	c := mustParse(t, minimal+"data_dir: d\ntls: {mode: files, cert_file: c.pem, key_file: /k.pem, client_ca: ca.pem, acme: {ca_file: r.pem}}\n")
	got := []string{c.DataDir, c.TLS.CertFile, c.TLS.KeyFile, c.TLS.ClientCA, c.TLS.ACME.CAFile}
	want := []string{"/etc/aegis/d", "/etc/aegis/c.pem", "/k.pem", "/etc/aegis/ca.pem", "/etc/aegis/r.pem"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTLSWarnings: what has no effect is told, and a listener that is open to
// the network is so only while nothing encrypts it.
func TestTLSWarnings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tls: {cert_file: a, key_file: b, hosts: [x.test], client_ca: c, acme: {agree_tos: true}}\n": "tls.cert_file tls.key_file tls.hosts tls.client_ca tls.acme.agree_tos",
		"listen: 0.0.0.0:443\n":                                                                               "listen",
		"listen: 0.0.0.0:443\npublic_url: https://x.test\n":                                                   "",
		"listen: 0.0.0.0:443\ntls: {mode: files, cert_file: a, key_file: b}\n":                                "",
		"listen: 0.0.0.0:443\ntls: {mode: auto, hosts: [x.test], acme: {agree_tos: true}, key_file: a.pem}\n": "tls.key_file",
	} {
		var keys []string
		for _, p := range mustParse(t, minimal+text).Warnings() {
			keys = append(keys, p.Key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: warns of %q, want %q", text, got, want)
		}
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	t.Parallel()
	config.Default().TLS.ACME.Directory.Host = "evil.example"
	config.Default().TLS.ACME.Challenges[0] = "x"
	if c := config.Default().TLS.ACME; c.Directory.Host == "evil.example" || c.Challenges[0] == "x" {
		t.Error("a caller can change the defaults")
	}
}
