package http1_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"aegis/proxy/internal/http1"
)

// answering is a round tripper that answers every request with 101 and the protocol.
type answering struct {
	protocol string
	closed   bool
}

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	h := http.Header{}
	if a.protocol != "" {
		h.Set("Upgrade", a.protocol)
	}
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: h, Body: a}, nil
}

func (a *answering) Read([]byte) (int, error) { return 0, io.EOF }
func (a *answering) Close() error             { a.closed = true; return nil }

func TestNoUpgrade(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		asked, got string
		good       bool
	}{
		{"", "", false},
		{"", "websocket", false},
		{"websocket", "", false},
		{"websocket", "h2c", false},
		{"websocket", "WebSocket", true},
	} {
		r, err := http.NewRequest(http.MethodGet, "http://gitea.invalid/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.asked != "" {
			r.Header.Set("Upgrade", tc.asked)
		}
		a := &answering{protocol: tc.got}
		_, err = http1.NoUpgrade{Next: a}.RoundTrip(r)
		if tc.good != (err == nil) || tc.good == a.closed || !tc.good && !errors.Is(err, http1.ErrUpgrade) {
			t.Errorf("asked for %q, got %q: %v, closed %v", tc.asked, tc.got, err, a.closed)
		}
	}
}
