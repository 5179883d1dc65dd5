package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aegis/config"
	"aegis/proxy/kv"
	"aegis/proxy/kv/open"
	"aegis/proxy/oauth/grant"
)

// The control socket lets commands on the same machine ask a running Aegis about
// what only it can read, as it has the store open. It stands in data_dir, for the
// owner of the process alone.

const (
	controlName = "control.sock"
	// maxSocket is what the shortest of the systems takes for a socket's path.
	maxSocket      = 103
	controlTimeout = 10 * time.Second
	maxControl     = 8 << 20 // bytes of an answer
)

// OAuthGrant is a client that a person allowed.
type OAuthGrant struct {
	ID         string    `json:"id"`
	Login      string    `json:"login"`
	UserID     int64     `json:"user_id"`
	ClientName string    `json:"client_name"`
	ClientID   string    `json:"client_id"`
	Verified   bool      `json:"verified"`
	Scopes     []string  `json:"scopes"`
	Resource   string    `json:"resource"`
	Created    time.Time `json:"created"`
	LastUsed   time.Time `json:"last_used"`
	Expires    time.Time `json:"expires"`
}

func grantOf(g grant.Grant) OAuthGrant {
	return OAuthGrant{
		ID: g.ID, Login: g.Login, UserID: g.UserID, ClientName: g.ClientName, ClientID: g.ClientID, Verified: g.Verified,
		Scopes: g.Scopes, Resource: g.Resource, Created: g.Created, LastUsed: g.LastUsed, Expires: g.Expires,
	}
}

// controlSocket returns the socket's path, "" when it would be too long.
func controlSocket(cfg *config.Config) string {
	path := filepath.Join(cfg.DataDir, controlName)
	if len(path) > maxSocket {
		return ""
	}
	return path
}

// control serves the socket until ctx ends. Without it only the commands that
// need it fail, so trouble is logged and no more.
func (l *Live) control(ctx context.Context) {
	s := l.Server()
	path := controlSocket(s.cfg)
	if path == "" {
		s.log.Warn().Msg(`data_dir has too long a path for a socket in it, so "aegis oauth" cannot reach this server`)
		return
	}
	ln, err := listenControl(path)
	if err != nil {
		s.log.Warn().Err(err).Msg(`no control socket, so "aegis oauth" cannot reach this server`)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /grants", func(w http.ResponseWriter, r *http.Request) {
		list, err := l.Server().listGrants(r.Context())
		answerControl(w, map[string]any{"grants": list}, err)
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		var which Revocation
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&which); err != nil {
			answerControl(w, nil, fmt.Errorf("not a revocation: %w", err))
			return
		}
		n, err := l.Server().revokeGrants(r.Context(), which)
		answerControl(w, map[string]any{"ended": n}, err)
	})
	srv := &http.Server{Handler: mux, ReadTimeout: controlTimeout, WriteTimeout: controlTimeout, ErrorLog: serverLog(s.log)}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	_ = srv.Serve(ln) // its error is ErrServerClosed
}

func answerControl(w http.ResponseWriter, v any, err error) {
	if err != nil {
		writeJSON(w, http.StatusUnprocessableEntity, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, v)
}

// listenControl makes the socket, in the place of one that nobody serves.
func listenControl(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		return nil, errors.New("another Aegis serves " + path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		_ = os.Remove(path) // left by a process that was killed
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// Revocation says which grants to end: one by its id, or all of a login. Exactly
// one of them is set.
type Revocation struct {
	Grant string `json:"grant,omitempty"`
	Login string `json:"login,omitempty"`
}

func (s *Server) listGrants(ctx context.Context) ([]OAuthGrant, error) {
	if s.signIn == nil {
		return nil, errOAuthOff
	}
	return allGrants(ctx, s.signIn.grants)
}

var errOAuthOff = errors.New("auth.oauth is not enabled")

func allGrants(ctx context.Context, g *grant.Grants) ([]OAuthGrant, error) {
	list := []OAuthGrant{}
	for one, err := range g.All(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, grantOf(one))
	}
	return list, nil
}

func (s *Server) revokeGrants(ctx context.Context, which Revocation) (int, error) {
	if s.signIn == nil {
		return 0, errOAuthOff
	}
	return endGrants(ctx, s.signIn.grants, which)
}

func endGrants(ctx context.Context, g *grant.Grants, which Revocation) (n int, err error) {
	if (which.Grant == "") == (which.Login == "") {
		return 0, errors.New("name one grant by its id, or one login")
	}
	list, err := allGrants(ctx, g)
	if err != nil {
		return 0, err
	}
	for _, one := range list {
		if one.ID == which.Grant || which.Login != "" && strings.EqualFold(one.Login, which.Login) {
			if err := g.End(ctx, one.ID); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// ListOAuth returns what people allowed clients, from the running Aegis of this
// configuration, or from its store when none runs.
func ListOAuth(ctx context.Context, cfg *config.Config) ([]OAuthGrant, error) {
	var out struct {
		Grants []OAuthGrant `json:"grants"`
	}
	err := askGrants(ctx, cfg, request{http.MethodGet, "/grants", nil}, &out, func(g *grant.Grants) (err error) {
		out.Grants, err = allGrants(ctx, g)
		return err
	})
	return out.Grants, err
}

// RevokeOAuth ends grants, and returns how many. Their tokens are void at once.
func RevokeOAuth(ctx context.Context, cfg *config.Config, which Revocation) (int, error) {
	body, err := json.Marshal(which)
	if err != nil {
		return 0, err
	}
	var out struct {
		Ended int `json:"ended"`
	}
	err = askGrants(ctx, cfg, request{http.MethodPost, "/revoke", body}, &out, func(g *grant.Grants) (err error) {
		out.Ended, err = endGrants(ctx, g, which)
		return err
	})
	return out.Ended, err
}

// askGrants puts a request to the running Aegis, or looks into its store when none runs.
// One that is just starting has the store before it has the socket, so it is asked again.
func askGrants(ctx context.Context, cfg *config.Config, r request, out any, offline func(*grant.Grants) error) error {
	for end := time.Now().Add(controlTimeout); ; {
		if running, err := callControl(ctx, cfg, r, out); running {
			return err
		}
		g, done, err := openGrants(ctx, cfg) // it waits for a moment itself
		if err == nil {
			defer done()
			return offline(g)
		}
		if !errors.Is(err, kv.ErrInUse) || controlSocket(cfg) == "" || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// request is one to the control socket.
type request struct {
	method, path string
	body         []byte
}

// callControl asks the running Aegis; running is false when there is none.
func callControl(ctx context.Context, cfg *config.Config, r request, out any) (running bool, err error) {
	socket := controlSocket(cfg)
	if socket == "" {
		return false, nil
	}
	if _, err := os.Stat(socket); err != nil {
		return false, nil
	}
	client := &http.Client{Timeout: controlTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, r.method, "http://control"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return false, err
	}
	res, err := client.Do(req)
	if err != nil {
		return false, nil // nobody serves it; the store itself says whether it is in use
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxControl))
	if err != nil {
		return true, fmt.Errorf("the running Aegis: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		var says struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(data, &says) != nil || says.Error == "" {
			says.Error = res.Status
		}
		return true, errors.New("the running Aegis says: " + says.Error)
	}
	return true, json.Unmarshal(data, out)
}

// openGrants opens the store of a configuration that no Aegis has open.
func openGrants(ctx context.Context, cfg *config.Config) (*grant.Grants, func(), error) {
	store, err := open.Existing(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = store.Close() } // nothing was written that is not on disk
	g, err := grant.New(grant.Options{Store: store, Keys: store.Derive, Config: lifetimes(cfg.Auth.OAuth)})
	if err != nil {
		done()
		return nil, nil, err
	}
	return g, done, nil
}
