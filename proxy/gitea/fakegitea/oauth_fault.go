package fakegitea

import (
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
	// FaultStatus answers Status, 502 by default, with Body; nothing is done.
	FaultStatus
	// FaultHTML answers 200 with a page, or with Status and Body, as a proxy in
	// front of the server may; nothing is done.
	FaultHTML
	// FaultLostRace answers as if another refresh had come first in the same
	// moment; nothing is done.
	FaultLostRace
	// FaultHold waits, then does the work and answers.
	FaultHold
	// FaultHoldAnswer does the work, waits, then answers.
	FaultHoldAnswer
	// FaultLostAnswer does the work and closes the connection.
	FaultLostAnswer
)

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
	// Body replaces the body of FaultStatus and FaultHTML.
	Body string
	// Times is how many requests it hits; 0 means all until it is cleared.
	Times int
	// Release ends the waiting when it is closed. The client's going away does
	// too.
	Release <-chan struct{}
	// Entered gets a value for each request that is hit, unless it is nil or
	// full.
	Entered chan<- struct{}
}

// maxScopesSeen bounds the scopes that are remembered.
const maxScopesSeen = 1000

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
	// Login and Grant count the forms sent by the two pages.
	Login, Grant int
	// Token counts requests of the token endpoint; Refresh are those among them
	// with grant_type=refresh_token.
	Token, Refresh int
	// Introspect, UserInfo and Discovery count their endpoints.
	Introspect, UserInfo, Discovery int
	// AuthorizeScopes are the scope parameters at the authorization endpoint, as
	// they came, oldest first, at most the last 1000.
	AuthorizeScopes []string
}

// FailOAuth adds a fault. Of several that match, the oldest is used.
func (s *Server) FailOAuth(f OAuthFault) {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	f.Paths = slices.Clone(f.Paths)
	s.front.faults = append(s.front.faults, &f)
}

// ClearOAuthFaults removes all faults. Requests that wait go on waiting.
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
func (f *oauthFront) arrive(r *http.Request, body []byte) *OAuthFault {
	path := "/" + strings.Join(segments(r.URL.EscapedPath()), "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count(r.Method, path, func() (scope, grantType string) {
		form := formOf(r, body)
		return form.Get("scope"), form.Get("grant_type")
	})
	for i, fault := range f.faults {
		if !fault.covers(path) {
			continue
		}
		hit := *fault
		if fault.Times == 1 {
			f.faults = slices.Delete(f.faults, i, i+1)
		} else if fault.Times > 1 {
			fault.Times--
		}
		return &hit
	}
	return nil
}

// count counts one request. The form is read when it is needed only.
func (f *oauthFront) count(method, path string, read func() (scope, grantType string)) {
	n, post := &f.counts, method == http.MethodPost
	switch path {
	case "/login/oauth/authorize":
		scope, _ := read()
		n.Authorize++
		if len(n.AuthorizeScopes) == maxScopesSeen {
			n.AuthorizeScopes = slices.Delete(n.AuthorizeScopes, 0, 1)
		}
		n.AuthorizeScopes = append(n.AuthorizeScopes, scope)
	case "/login/oauth/access_token":
		n.Token++
		if _, kind := read(); kind == "refresh_token" {
			n.Refresh++
		}
	case "/login/oauth/introspect":
		n.Introspect++
	case "/login/oauth/userinfo":
		n.UserInfo++
	case "/.well-known/openid-configuration":
		n.Discovery++
	case "/user/login":
		if post {
			n.Login++
		}
	case "/login/oauth/grant":
		if post {
			n.Grant++
		}
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
	if f.Kind != FaultHoldAnswer && f.Kind != FaultLostAnswer { // those enter after the work
		f.enter()
	}
	switch f.Kind {
	case FaultStatus:
		f.say(w, http.StatusBadGateway, "text/plain; charset=utf-8", "Bad Gateway\n")
	case FaultHTML:
		f.say(w, http.StatusOK, "text/html; charset=utf-8",
			"<!DOCTYPE html><title>Maintenance</title><h1>Back soon</h1>\n")
	case FaultLostRace:
		f.say(w, http.StatusBadRequest, "application/json;charset=utf-8",
			`{"error":"invalid_grant","error_description":"cannot increase the grant counter"}`+"\n")
	case FaultHold:
		f.wait(r)
		work().send(w)
	case FaultHoldAnswer:
		out := work()
		f.enter()
		f.wait(r)
		out.send(w)
	case FaultLostAnswer:
		work()
		f.enter()
		hangUp(w)
	default:
		hangUp(w)
	}
}

// enter signals the test that a request was hit. It never blocks: a test that does
// not wait must not stop the request.
func (f *OAuthFault) enter() {
	if f.Entered == nil {
		return
	}
	select {
	case f.Entered <- struct{}{}:
	default:
	}
}

// wait waits for the release or the end of the client.
func (f *OAuthFault) wait(r *http.Request) {
	select {
	case <-f.Release:
	case <-r.Context().Done():
	}
}

// say answers with the fault's own status and body, or the given ones.
func (f *OAuthFault) say(w http.ResponseWriter, status int, contentType, body string) {
	if f.Status != 0 && f.Kind != FaultLostRace {
		status = f.Status
	}
	if f.Body != "" && f.Kind != FaultLostRace {
		body = f.Body
	}
	if strings.HasPrefix(body, "{") {
		contentType = "application/json;charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	w.Write([]byte(body)) // a client that went away is not our concern
}

// hangUp closes the connection without an answer. Where that cannot be done, the
// answer is 502 and empty.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	conn.Close() // that is all there is to say
}
