package edge

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"aegis/proxy"
)

// pass lets next answer a request, at the pace that is asked for; nil: at any. At debug
// level that leaves a line in the log; calls have a line of their own.
func (e *Edge) pass(next http.Handler, pace *Pace, w http.ResponseWriter, r *http.Request) {
	if e.Log.GetLevel() <= zerolog.DebugLevel {
		began := time.Now()
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			x := proxy.RequestInfoFrom(r.Context())
			e.Log.Debug().Str("request_id", x.RequestID).Str("addr", x.Addr).Str("method", r.Method).
				Str("path", proxy.Clip(withoutTokens(r.URL.Path), 200)).Int("status", rec.status).
				Dur("took", time.Since(began)).Msg("request")
		}()
		w = rec
	}
	if pace == nil {
		next.ServeHTTP(w, r)
		return
	}
	pace.serve(next, w, r)
}

// ownTokens are the tokens and codes that Aegis hands out.
var ownTokens = regexp.MustCompile(`aegis_[a-z]{2}_[A-Za-z0-9_-]+`)

// withoutTokens hides tokens that a client has put into a path, where they do not
// belong and would end in the log.
func withoutTokens(path string) string {
	if !strings.Contains(path, "aegis_") { // spares nearly all paths the expression
		return path
	}
	return ownTokens.ReplaceAllString(path, "[token]")
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
