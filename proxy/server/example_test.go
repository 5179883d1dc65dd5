package server_test

import (
	"fmt"
	"net/url"

	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy/server"
)

// A configuration is looked at without touching a file or asking Gitea.
func ExampleDry() {
	cfg := config.Default()
	cfg.Gitea.URL = &config.URL{URL: url.URL{Scheme: "https", Host: "git.example.org"}}
	cfg.Tools.Toolsets = []string{"issue"}
	log := server.Log{Logger: zerolog.Nop()}
	p, err := server.Dry(cfg, "1.0.0", log)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := server.New(p, cfg, log)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s.Endpoint(), len(s.Tools()) > 0)
	// Output: http://127.0.0.1:8080/mcp true
}
