package oauth_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"aegis/proxy/oauth"
)

// TestBodiesThatEndEarly: how the body of a form, or of a revocation, fails decides
// what the client is told: to be faster, to send less, to try again.
func TestBodiesThatEndEarly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body   io.Reader
		status int
	}{
		"too slow":   {io.MultiReader(strings.NewReader("a="), failing{os.ErrDeadlineExceeded}), http.StatusRequestTimeout},
		"broken off": {io.MultiReader(strings.NewReader("a="), failing{io.ErrUnexpectedEOF}), http.StatusBadRequest},
		"too large":  {strings.NewReader(strings.Repeat("a", 101)), http.StatusRequestEntityTooLarge},
		"whole":      {strings.NewReader("a=b"), 0},
	} {
		r := httptest.NewRequest(http.MethodPost, "/token", tc.body)
		if got := oauth.ReadBody(httptest.NewRecorder(), r, 100); got != tc.status {
			t.Errorf("%s: %d, want %d", name, got, tc.status)
		}
	}
}

// failing is a body that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
