// Package demo is the Gitea of "aegis demo": the double, filled and described, on a port of
// its own. Builds with the tag nodemo do without it.
package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"aegis/config"
	"aegis/proxy/gitea/fakegitea"
	"aegis/spec"
	"aegis/spec/build"
)

// Login is the user of the demo, and Admin its site administrator.
const (
	Login = "alice"
	Admin = "root1"
)

// Demo is an embedded Gitea double, served on a loopback port of its own, so
// that calls take the same way as to a real one. Its world is in memory and ends
// with the process.
type Demo struct {
	double *fakegitea.Server
	http   *http.Server
	ln     net.Listener
}

// Start starts the double on a free loopback port.
func Start() (*Demo, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo upstream: %w", err)
	}
	opts, err := options()
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	d := &Demo{double: fakegitea.New(opts), ln: ln}
	d.http = &http.Server{Handler: d.double, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = d.http.Serve(ln) }() // ends with Close; its error is ErrServerClosed
	return d, nil
}

// options gives the double the version and the description of the API that
// the built-in catalog was made from, so that nothing differs from it.
func options() (fakegitea.Options, error) {
	facts, err := build.DecodeFacts(spec.Facts())
	if err != nil {
		return fakegitea.Options{}, fmt.Errorf("demo upstream: %w", err)
	}
	description, err := facts.Swagger()
	if err != nil {
		return fakegitea.Options{}, fmt.Errorf("demo upstream: %w", err)
	}
	return fakegitea.Options{Version: facts.Version, Description: description}, nil
}

// URL returns the double's address.
func (d *Demo) URL() *config.URL {
	return &config.URL{URL: url.URL{Scheme: "http", Host: d.ln.Addr().String()}}
}

// Close stops the double.
func (d *Demo) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if d.http.Shutdown(ctx) != nil {
		_ = d.http.Close() // whatever is still open belongs to this process
	}
}

// Password is the password of every user of the demo.
const Password = "demo-password"

// SignIn lets people sign in to the demo's Gitea, unless the file has a
// configuration of its own for that. public is Aegis's own public address.
func (d *Demo) SignIn(cfg *config.Config, public string) {
	if cfg.IsSet("auth.oauth") {
		return
	}
	id, secret := d.double.RegisterOAuthApp("Aegis", true, public+"/oauth/callback")
	cfg.Auth.OAuth.Enabled, cfg.Auth.OAuth.ClientID, cfg.Auth.OAuth.ClientSecret = true, id, config.NewSecret(secret)
	cfg.Auth.OAuth.Admins = []string{Admin}
}

// Token returns a configured identity of the demo's user with the given bearer
// token, or a fresh random one when it is "".
func (d *Demo) Token(bearer string) (config.Token, error) {
	if bearer == "" {
		b := make([]byte, 24)
		if _, err := rand.Read(b); err != nil {
			return config.Token{}, fmt.Errorf("demo token: %w", err)
		}
		bearer = hex.EncodeToString(b)
	}
	return config.Token{Name: "demo", Token: config.NewSecret(bearer),
		GiteaToken: config.NewSecret(d.double.Token(Login))}, nil
}

// Adopt makes the Gitea tokens of a configuration valid in the double: as its
// user, or as its administrator where the configuration allows sudo.
func (d *Demo) Adopt(tokens []config.Token) {
	for _, t := range tokens {
		login := Login
		if t.AllowSudo {
			login = Admin
		}
		d.double.SetToken(login, t.GiteaToken.Reveal())
	}
}
