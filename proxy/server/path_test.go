package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestTokensInPathsAreNotLogged: a client that is set up wrongly may put them there.
func TestTokensInPathsAreNotLogged(t *testing.T) {
	h := newHouse(t, houseOptions{})
	token := h.newApp().connect("alice").field("access_token")
	for _, path := range []string{"/mcp/", "/", "/healthz/"} {
		h.ask(http.MethodPost, path+token, "{}")
	}
	if log := h.log.String(); strings.Contains(log, token) || !strings.Contains(log, "[token]") {
		t.Error("the log holds the token, or nothing of the requests")
	}
}
