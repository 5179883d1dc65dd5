package grant

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

	"aegis/proxy/kv"
)

// The control socket lets commands on the same machine ask a running Aegis about
// grants, which only it can read, as it has the store open. The socket is for the
// owner of the process alone.

const (
	// ControlTimeout bounds a request to the control socket, and how long an Aegis
	// that is just starting is waited for.
	ControlTimeout = 10 * time.Second
	maxControl     = 8 << 20 // bytes of an answer
)

// Revocation says which grants to end: one by its id, or all of a login, whatever
// its case. Exactly one of them is set.
type Revocation struct {
	Grant string `json:"grant,omitempty"`
	Login string `json:"login,omitempty"`
}

var errOff = errors.New("auth.oauth is not enabled")

// every returns all grants, in no order. Nil grants are those of an Aegis without
// sign-ins.
func (g *Grants) every(ctx context.Context) ([]Grant, error) {
	if g == nil {
		return nil, errOff
	}
	list := []Grant{}
	for one, err := range g.All(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// revoke ends the grants that a revocation names, and returns how many.
func (g *Grants) revoke(ctx context.Context, which Revocation) (n int, err error) {
	if (which.Grant == "") == (which.Login == "") {
		return 0, errors.New("name one grant by its id, or one login")
	}
	list, err := g.every(ctx)
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

// ListenControl makes the control socket at path, in the place of one that no process
// serves, with the folder that it is in. It fails when another Aegis serves it.
func ListenControl(path string) (net.Listener, error) {
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

// Control answers requests to the control socket. current returns the grants in
// force, nil when people do not sign in.
func Control(current func() *Grants) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /grants", func(w http.ResponseWriter, r *http.Request) {
		list, err := current().every(r.Context())
		answer(w, map[string]any{"grants": list}, err)
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		var which Revocation
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&which); err != nil {
			answer(w, nil, fmt.Errorf("not a revocation: %w", err))
			return
		}
		n, err := current().revoke(r.Context(), which)
		answer(w, map[string]any{"ended": n}, err)
	})
	return mux
}

// answer writes what a command asked for, or why it cannot have it.
func answer(w http.ResponseWriter, v any, failed error) {
	status := http.StatusOK
	if failed != nil {
		status, v = http.StatusUnprocessableEntity, map[string]string{"error": failed.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // grants always marshal; else the command has gone
}

// Operator lists and ends grants for a person at the machine: through the running
// Aegis, or in its store when none runs.
type Operator struct {
	// Socket is the control socket's path; "": there is none.
	Socket string
	// Open opens the grants of a store that no Aegis has open, and returns what
	// closes them. Its error wraps [kv.ErrInUse] when one has.
	Open func(context.Context) (*Grants, func(), error)
}

// List returns all grants, in no order.
func (o Operator) List(ctx context.Context) ([]Grant, error) {
	var out struct {
		Grants []Grant `json:"grants"`
	}
	err := o.ask(ctx, request{http.MethodGet, "/grants", nil}, &out, func(g *Grants) (err error) {
		out.Grants, err = g.every(ctx)
		return err
	})
	return out.Grants, err
}

// Revoke ends grants, and returns how many. Their tokens are void at once.
func (o Operator) Revoke(ctx context.Context, which Revocation) (int, error) {
	body, err := json.Marshal(which)
	if err != nil {
		return 0, err
	}
	var out struct {
		Ended int `json:"ended"`
	}
	err = o.ask(ctx, request{http.MethodPost, "/revoke", body}, &out, func(g *Grants) (err error) {
		out.Ended, err = g.revoke(ctx, which)
		return err
	})
	return out.Ended, err
}

// ask puts a request to the running Aegis, or looks into its store when none runs.
// One that is just starting has the store before it has the socket, so it is asked
// again.
func (o Operator) ask(ctx context.Context, r request, out any, offline func(*Grants) error) error {
	for end := time.Now().Add(ControlTimeout); ; {
		if running, err := o.call(ctx, r, out); running {
			return err
		}
		g, done, err := o.Open(ctx) // it waits for a moment itself
		if err == nil {
			defer done()
			return offline(g)
		}
		if !errors.Is(err, kv.ErrInUse) || o.Socket == "" || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// request is one to the control socket.
type request struct {
	method, path string
	body         []byte
}

// call asks the running Aegis; running is false when there is none.
func (o Operator) call(ctx context.Context, r request, out any) (running bool, err error) {
	if o.Socket == "" {
		return false, nil
	}
	if _, err := os.Stat(o.Socket); err != nil {
		return false, nil
	}
	client := &http.Client{Timeout: ControlTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", o.Socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, r.method, "http://control"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return false, err
	}
	res, err := client.Do(req)
	if err != nil {
		return false, nil // no process serves it; the store itself says whether it is in use
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
