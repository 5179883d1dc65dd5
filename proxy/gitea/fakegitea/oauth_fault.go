package fakegitea

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// FaultKind is a way in which an OAuth endpoint fails.
type FaultKind int

const (
	// FaultDown closes the connection; nothing is done.
	FaultDown FaultKind = iota
	// FaultStatus answers Status, 502 by default; nothing is done.
	FaultStatus
	// FaultHTML answers 200 or Status with a page, as a proxy in front of the server
	// may; nothing is done.
	FaultHTML
	// FaultLostRace answers as if another refresh had come first in the same
	// moment; nothing is done.
	// Gitea increases the counter only where it still has the value that was read; of several
	// refreshes at once one wins. The double answers requests one after the other, so it never
	// comes to that by itself.
	FaultLostRace
	// FaultHold waits, then does the work and answers.
	// It is for what happens to a client meanwhile: a shutdown, a timeout, or a second request
	// for the same token.
	FaultHold
	// FaultHoldAnswer does the work, waits, then answers.
	FaultHoldAnswer
	// FaultLostAnswer does the work and closes the connection.
	// It is the worst case of a rotating refresh token: the old one is used up, and nobody has
	// the new one.
	FaultLostAnswer
)

// faultBodies are the answers of the kinds that answer by themselves.
var faultBodies = map[FaultKind]struct {
	status            int
	contentType, body string
}{
	FaultStatus: {http.StatusBadGateway, "text/plain; charset=utf-8", "Bad Gateway\n"},
	FaultHTML: {http.StatusOK, "text/html; charset=utf-8",
		"<!DOCTYPE html><title>Maintenance</title><h1>Back soon</h1>\n"},
	FaultLostRace: {http.StatusBadRequest, "application/json;charset=utf-8",
		`{"error":"invalid_grant","error_description":"cannot increase the grant counter"}` + "\n"},
}

// OAuthFault is a failure of OAuth endpoints.
type OAuthFault struct {
	// Kind is what happens.
	Kind FaultKind
	// Paths are the endpoints that fail, such as "/login/oauth/access_token",
	// without a sub-path; none means everything below /login/oauth and the
	// discovery document.
	Paths []string
	// Status replaces the status of FaultStatus and FaultHTML.
	Status int
	// Times is how many requests it hits; 0 means all until it is cleared.
	Times int
	// Release ends the waiting when it is closed. The client's going away does
	// too.
	Release <-chan struct{}
	// Entered gets a value for each request that is hit, unless it is nil or
	// full.
	Entered chan<- struct{}
}

// oauthFront is what happens to requests before the world sees them.
type oauthFront struct {
	mu     sync.Mutex // guards the fields below
	faults []*OAuthFault
	counts OAuthCounts
}

// OAuthCounts counts the requests that arrived, those included that a fault hit.
type OAuthCounts struct {
	// Authorize counts requests of the authorization endpoint; a browser that
	// has to log in asks twice.
	Authorize int
	// Grant counts the forms sent by the consent page.
	Grant int
	// Token counts requests of the token endpoint; Refresh are those among them
	// with grant_type=refresh_token.
	Token, Refresh int
	// AuthorizeScopes are the scope parameters at the authorization endpoint, as
	// they came, oldest first, at most the last 1000.
	AuthorizeScopes []string
}

// FailOAuth adds a fault. Of several that match, the oldest is used.
// The API is never hit: for that there is Intercept.
func (s *Server) FailOAuth(f OAuthFault) {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	f.Paths = slices.Clone(f.Paths)
	s.front.faults = append(s.front.faults, &f)
}

// ClearOAuthFaults removes all faults. Requests that wait go on waiting.
// Only their Release, or their client's leaving, ends them.
func (s *Server) ClearOAuthFaults() {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	s.front.faults = nil
}

// OAuthCounts returns the counts since the last ResetOAuthCounts.
func (s *Server) OAuthCounts() OAuthCounts {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	out := s.front.counts
	out.AuthorizeScopes = slices.Clone(out.AuthorizeScopes)
	return out
}

// ResetOAuthCounts begins anew.
func (s *Server) ResetOAuthCounts() {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	s.front.counts = OAuthCounts{}
}

// arrive counts a request and returns the fault that hits it, if any.
// It has a lock of its own, not the world's: a fault that waits must not stop the requests that
// the test makes meanwhile.
func (f *oauthFront) arrive(r *http.Request, body []byte) *OAuthFault {
	path := "/" + strings.Join(segments(r.URL.EscapedPath()), "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.add(r, path, body)
	for i, fault := range f.faults {
		if !fault.covers(path) {
			continue
		}
		// A copy, because the count below goes on changing while this request is served.
		hit := *fault
		if fault.Times == 1 {
			f.faults = slices.Delete(f.faults, i, i+1)
		}
		fault.Times-- // below 0 it goes on for ever
		return &hit
	}
	return nil
}

// add counts one request.
// It counts what arrived, not what succeeded; the method is not looked at.
func (n *OAuthCounts) add(r *http.Request, path string, body []byte) {
	switch path {
	case "/login/oauth/authorize":
		n.Authorize++
		n.AuthorizeScopes = keep(n.AuthorizeScopes, formOf(r, body).Get("scope"))
	case "/login/oauth/access_token":
		n.Token++
		if formOf(r, body).Get("grant_type") == "refresh_token" {
			n.Refresh++
		}
	case "/login/oauth/grant":
		n.Grant++
	}
}

// covers says whether the fault is about the path.
func (f *OAuthFault) covers(path string) bool {
	if len(f.Paths) > 0 {
		return slices.Contains(f.Paths, path)
	}
	return strings.HasPrefix(path, "/login/oauth/") || path == "/.well-known/openid-configuration"
}

// serve fails a request. The work is what the double would do without the fault.
func (f *OAuthFault) serve(w http.ResponseWriter, r *http.Request, work func() *response) {
	var done *response
	if f.Kind == FaultHoldAnswer || f.Kind == FaultLostAnswer {
		done = work()
	}
	select { // a test that does not listen must not stop the request
	case f.Entered <- struct{}{}:
	default:
	}
	if f.Kind == FaultHold || f.Kind == FaultHoldAnswer {
		select {
		case <-f.Release:
		case <-r.Context().Done():
		}
	}
	answer, ok := faultBodies[f.Kind]
	switch {
	// The work is done even for a client that has left by now.
	case f.Kind == FaultHold:
		work().send(w)
	case f.Kind == FaultHoldAnswer:
		done.send(w)
	case ok:
		w.Header().Set("Content-Type", answer.contentType)
		w.WriteHeader(cmp.Or(f.Status, answer.status))
		w.Write([]byte(answer.body)) // a client that went away is not our concern
	default:
		hangUp(w)
	}
}

// hangUp closes the connection without an answer. Where that cannot be done, the
// answer is 502 and empty.
// HTTP/2 and recorders of tests cannot be hijacked.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	conn.Close() // that is all there is to say
}
