package grant

import (
	"bytes"
	"cmp"
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

// reply is what the control socket answers. What does not belong to the question is left out.
type reply struct {
	Grants []Grant `json:"grants,omitempty"`
	Ended  int     `json:"ended,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// reply lists all grants, in no order, or ends those that a revocation names. Nil grants are
// those of an Aegis without sign-ins.
func (g *Grants) reply(ctx context.Context, which *Revocation) (out reply, err error) {
	switch {
	case which != nil && (which.Grant == "") == (which.Login == ""):
		return out, errors.New("name one grant by its id, or one login")
	case g == nil:
		return out, errOff
	}
	for one, err := range g.All(ctx) {
		if err != nil {
			return reply{}, err
		}
		if which == nil || one.ID == which.Grant || which.Login != "" && strings.EqualFold(one.Login, which.Login) {
			out.Grants = append(out.Grants, one)
		}
	}
	if which == nil {
		return out, nil
	}
	// Only now, so that a record that cannot be read ends none in place of some.
	for _, one := range out.Grants {
		if err := g.End(ctx, one.ID); err != nil {
			return reply{}, fmt.Errorf("%d grants were ended, then: %w", out.Ended, err)
		}
		out.Ended++
	}
	return reply{Ended: out.Ended}, nil
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
		out, err := current().reply(r.Context(), nil)
		answer(w, out, err)
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		var which Revocation
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&which); err != nil {
			answer(w, reply{}, fmt.Errorf("not a revocation: %w", err))
			return
		}
		out, err := current().reply(r.Context(), &which)
		answer(w, out, err)
	})
	return mux
}

// answer writes what a command asked for, or why it cannot have it.
func answer(w http.ResponseWriter, out reply, failed error) {
	status := http.StatusOK
	if failed != nil {
		status, out = http.StatusUnprocessableEntity, reply{Error: failed.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out) // grants always marshal; else the command has gone
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
	out, err := o.ask(ctx, nil)
	return out.Grants, err
}

// Revoke ends grants, and returns how many. Their tokens are void at once.
func (o Operator) Revoke(ctx context.Context, which Revocation) (int, error) {
	out, err := o.ask(ctx, &which)
	return out.Ended, err
}

// ask puts a request to the running Aegis, or looks into its store when none runs.
// One that is just starting has the store before it has the socket, so it is asked
// again.
func (o Operator) ask(ctx context.Context, which *Revocation) (reply, error) {
	for end := time.Now().Add(ControlTimeout); ; {
		if out, running, err := o.call(ctx, which); running {
			return out, err
		}
		g, done, err := o.Open(ctx) // it waits for a moment itself
		if err == nil {
			defer done()
			return g.reply(ctx, which)
		}
		if !errors.Is(err, kv.ErrInUse) || o.Socket == "" || ctx.Err() != nil || time.Now().After(end) {
			return reply{}, err
		}
	}
}

// call asks the running Aegis; running is false when there is none.
func (o Operator) call(ctx context.Context, which *Revocation) (out reply, running bool, err error) {
	client := &http.Client{Timeout: ControlTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", o.Socket)
		},
	}}
	req, err := which.request(ctx)
	if err != nil {
		return out, false, err
	}
	res, err := client.Do(req)
	if err != nil {
		return out, false, nil // no process serves it, or there is no path; the store says whether it is in use
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxControl))
	if err != nil {
		return out, true, fmt.Errorf("the running Aegis: %w", err)
	}
	err = json.Unmarshal(data, &out)
	if res.StatusCode != http.StatusOK {
		return reply{}, true, errors.New("the running Aegis says: " + cmp.Or(out.Error, res.Status))
	}
	return out, true, err
}

// request returns the request to the control socket; nil asks for the list.
func (r *Revocation) request(ctx context.Context) (*http.Request, error) {
	if r == nil {
		return http.NewRequestWithContext(ctx, http.MethodGet, "http://control/grants", nil)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return http.NewRequestWithContext(ctx, http.MethodPost, "http://control/revoke", bytes.NewReader(body))
}
