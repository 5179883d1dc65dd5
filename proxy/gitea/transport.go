package gitea

import (
	"net/http"
	"time"

	"aegis/config"
)

// PassTransport returns a connection pool of its own to the server that cfg
// describes, for requests that are passed through. WebSockets and event streams
// keep their connections, so these are not bounded: the clients' connections are.
func PassTransport(cfg config.Gitea) (*http.Transport, error) {
	t, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	t.MaxConnsPerHost = 0
	t.ExpectContinueTimeout = time.Second
	return t, nil
}
