package setup

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// yaml returns the configuration. Texts are quoted as in JSON, which is YAML too.
func (s *wizard) yaml() string {
	q := strconv.Quote
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by \"aegis setup\". aegis.example.yaml and docs/config.md have every key.\nlisten: %s\n",
		q(s.listen))
	if s.public != "http://"+s.program.LocalAddr(s.listen) {
		fmt.Fprintf(&b, "public_url: %s\n", q(s.public))
	}
	if s.data == "" && strings.HasPrefix(absolute(s.output), "/etc/") {
		s.data = "/var/lib/aegis"
	}
	if s.data != "" {
		fmt.Fprintf(&b, "data_dir: %s\n", q(s.data))
	}
	switch s.tls {
	case "auto":
		b.WriteString("tls:\n  mode: auto\n  acme:\n    agree_tos: true # " + termsOfService + "\n")
		if s.email != "" {
			fmt.Fprintf(&b, "    email: %s\n", q(s.email))
		}
	case "files":
		fmt.Fprintf(&b, "tls:\n  mode: files\n  cert_file: %s\n  key_file: %s\n", q(absolute(s.cert)),
			q(absolute(s.key)))
	}
	fmt.Fprintf(&b, "gitea:\n  url: %s\n", q(s.gitea.URL.String()))
	if s.ca != "" {
		fmt.Fprintf(&b, "  ca_file: %s\n", q(absolute(s.ca)))
	}
	b.WriteString("auth:\n")
	if s.mode == "oauth" {
		fmt.Fprintf(&b, "  oauth:\n    enabled: true\n    client_id: %s\n    client_secret: %s\n", q(s.id),
			q("file:secrets/"+fileClientSecret))
	} else {
		fmt.Fprintf(&b, "  tokens:\n    - name: %s\n      token: %s\n      gitea_token: %s\n", q(s.name),
			q("file:secrets/client_token"), q("file:secrets/gitea_token"))
	}
	if s.tls == "off" && strings.HasPrefix(s.public, "https://") {
		b.WriteString("server:\n  trusted_proxies: [127.0.0.1, \"::1\"] # where the reverse proxy connects from\n")
	}
	return b.String()
}

// absolute returns path from the root, or as it is where that is not known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// next says what to do now.
func (s *wizard) next() error {
	c := ""
	if s.output != "aegis.yaml" {
		c = " -c " + s.output
	}
	fmt.Fprintf(s.out, "\nWrote %s, and secrets in %s.\n\nNext:\n\n"+
		"  aegis check%s\n  aegis serve%s\n  aegis doctor%s      # when it serves\n\n",
		s.output, s.secretsDir(), c, c, c)
	if strings.HasPrefix(absolute(s.output), "/etc/") {
		fmt.Fprintf(s.out, "If another user runs Aegis, give that user the files: chown -R aegis: %s\n\n",
			filepath.Dir(absolute(s.output)))
	}
	endpoint := s.public + "/mcp"
	fmt.Fprintf(s.out, "Clients connect to %s:\n\n", endpoint)
	if s.mode == "oauth" {
		fmt.Fprintf(s.out, "  claude mcp add --transport http gitea %s\n\nand sign in with Gitea.\n\n", endpoint)
	} else {
		fmt.Fprintf(s.out, "  claude mcp add --transport http gitea %s "+
			"--header \"Authorization: Bearer $(cat %s)\"\n\n", endpoint, filepath.Join(s.secretsDir(), "client_token"))
	}
	_, err := fmt.Fprintf(s.out, "For other clients: aegis setup CLIENT%s, such as aegis setup vscode%s\n", c, c)
	return err
}
