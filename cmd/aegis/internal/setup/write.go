package setup

import (
	"fmt"
	"path/filepath"
	"strings"
)

// yaml returns the configuration, without what has its default. Texts are quoted as in
// JSON, which is YAML too. A short file is one that people read and change; defaults of
// later versions then apply to it too.
func (s *wizard) yaml() string {
	var b strings.Builder
	put := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&b, format, args...)
		}
	}
	// What packages and the systemd unit give to Aegis's own user.
	if s.data == "" && strings.HasPrefix(absolute(s.output), "/etc/") {
		s.data = "/var/lib/aegis"
	}
	put(true, "# Written by \"aegis setup\". aegis.example.yaml and docs/config.md have every key.\n")
	put(true, "listen: %q\n", s.listen)
	put(s.public != "http://"+s.program.LocalAddr(s.listen), "public_url: %q\n", s.public)
	put(s.data != "", "data_dir: %q\n", s.data)
	auto, files, oauth := s.tls == "auto", s.tls == "files", s.mode == "oauth"
	put(auto, "tls:\n  mode: auto\n  acme:\n    agree_tos: true # %s\n", termsOfService)
	put(auto && s.email != "", "    email: %q\n", s.email)
	put(files, "tls:\n  mode: files\n  cert_file: %q\n  key_file: %q\n", absolute(s.cert), absolute(s.key))
	put(true, "gitea:\n  url: %q\n", s.gitea.URL.String())
	put(s.ca != "", "  ca_file: %q\n", absolute(s.ca))
	put(true, "auth:\n")
	put(oauth, "  oauth:\n    enabled: true\n    client_id: %q\n    client_secret: %q\n",
		s.id, "file:secrets/"+fileClientSecret)
	put(!oauth, "  tokens:\n    - name: %q\n      token: %q\n      gitea_token: %q\n",
		s.name, "file:secrets/client_token", "file:secrets/gitea_token")
	put(s.tls == "off" && strings.HasPrefix(s.public, "https://"),
		"server:\n  trusted_proxies: [127.0.0.1, \"::1\"] # where the reverse proxy connects from\n")
	return b.String()
}

// absolute returns path from the root, or as it is where that is not known. Files that
// were named on the command line are relative to the working folder, and paths in the
// configuration to the folder of that.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// next says what to do now. Commands are printed as they must be typed, with -c where
// the file is not in its usual place.
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
