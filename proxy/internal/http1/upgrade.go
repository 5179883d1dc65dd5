package http1

import (
	"errors"
	"net/http"
	"strings"
)

// ErrUpgrade is the error of a request that was answered with 101 Switching Protocols
// without having asked for that protocol.
var ErrUpgrade = errors.New("the server changed the protocol (101) without being asked to")

// NoUpgrade refuses answers with 101 Switching Protocols, unless the request asked for that
// very protocol. net/http gives such an answer away together with its connection: nothing
// but Close ends it, neither the request's context nor a client's time-out, and whoever
// reads the body to its end waits for as long as the server likes.
type NoUpgrade struct{ Next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (n NoUpgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.Next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	asked := r.Header.Get("Upgrade")
	if asked != "" && strings.EqualFold(asked, resp.Header.Get("Upgrade")) {
		return resp, nil
	}
	_ = resp.Body.Close() // this closes the connection
	return nil, ErrUpgrade
}

// CloseIdleConnections closes those of Next.
func (n NoUpgrade) CloseIdleConnections() {
	if c, ok := n.Next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
