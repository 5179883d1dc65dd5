package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"aegis/cmd/internal/browsertest"
)

// The scenarios for authorization servers sign in themselves: the suite prints an
// address for a person to open and waits at its own redirect URI. The person here
// is a program; the pages are those of the demo and of its Gitea.

// The demo's user.
const demoLogin, demoPassword = "alice", "demo-password"

// authorization is what scenarios.txt calls them. They run together, as the later
// one needs what the first one finds; there are two.
const (
	authorization          = "authorization"
	authorizationScenarios = 2
)

// authorize runs the scenarios for authorization servers against the Aegis that
// has this endpoint.
func (s scenario) authorize(ctx context.Context, endpoint, out string, list []scenario) ([]string, error) {
	issuer := strings.TrimSuffix(endpoint, "/mcp")
	id, err := register(ctx, issuer)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	out = filepath.Join(out, s.version, "authorization")
	ctx, cancel := context.WithTimeout(ctx, suiteTimeout)
	defer cancel()
	cmd := suite(ctx, out, "authorization", "--url", issuer, "--client-id", id, "-p", port, "--spec-version", s.version)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// The address may be printed to either.
	cmd.Stderr = cmd.Stdout
	if err := started(cmd.Start()); err != nil {
		return nil, err
	}
	log, signErr := follow(ctx, stdout, issuer)
	if err := started(cmd.Wait()); err != nil {
		return nil, err
	}
	if signErr != nil {
		return []string{"signing in: " + signErr.Error()}, nil
	}
	return s.results(out, authorizationScenarios, log, list)
}

// authorizeURL is how the suite prints the address for a person.
var authorizeURL = regexp.MustCompile(`https?://\S+/authorize\?\S+`)

// follow reads what the suite says, and signs in at the address that it prints. It
// reads to the end even after an error, since the suite blocks when its output is not
// read.
func follow(ctx context.Context, stdout io.Reader, issuer string) (log []byte, err error) {
	var all bytes.Buffer
	done := false
	for sc := bufio.NewScanner(stdout); sc.Scan(); {
		all.WriteString(sc.Text() + "\n")
		if address := authorizeURL.FindString(sc.Text()); address != "" && !done {
			done = true
			err = signIn(ctx, address, issuer)
		}
	}
	return all.Bytes(), err
}

// signIn goes through the pages as the demo's user and calls the client back.
func signIn(ctx context.Context, address, issuer string) error {
	asked, err := url.Parse(address)
	if err != nil {
		return err
	}
	// At that address the suite itself listens: the way through the pages ends there.
	callback := asked.Query().Get("redirect_uri")
	person := browsertest.New(demoLogin, demoPassword,
		func(u *url.URL) bool { return !strings.HasPrefix(u.String(), callback) })
	to, err := person.Allow(address)
	if err != nil {
		return err
	}
	res, err := send(ctx, http.MethodGet, to.String(), "")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func send(ctx context.Context, method, address, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// register makes the suite known as a public client.
func register(ctx context.Context, issuer string) (string, error) {
	body := `{"client_name":"MCP conformance suite","redirect_uris":["http://127.0.0.1/callback"],` +
		`"token_endpoint_auth_method":"none"}`
	res, err := send(ctx, http.MethodPost, issuer+"/register", body)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var m struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil || m.ID == "" {
		return "", fmt.Errorf("the suite cannot be registered: %s %w", res.Status, err)
	}
	return m.ID, nil
}

// freePort returns a loopback port that nothing listens on. Another program may take it
// before the suite does; the run fails then and can be repeated.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, errors.Join(err, ln.Close())
}
