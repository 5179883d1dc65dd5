package fakegitea

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// logSize bounds the recorded requests, so that a long test or demo does not
// keep every body it ever saw.
const logSize = 4096

// Server is the double. It implements http.Handler and is safe for concurrent
// use: one lock covers the whole world, so every request sees and leaves it
// consistent.
type Server struct {
	opts   Options
	router *router

	mu    sync.Mutex // guards world and everything reachable from it
	world *world

	// logMu is not mu, so that a test can read the log while a handler runs.
	// A hook runs without either lock, so it may call any method of the Server.
	logMu     sync.Mutex // guards the fields below
	log       []Request
	dropped   int // requests that the log no longer holds
	intercept func(http.ResponseWriter, *http.Request) bool

	front oauthFront
}

// New returns a Server with the world that opts names.
func New(opts Options) *Server {
	if opts.MaxItems <= 0 {
		opts.MaxItems = 50
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Version = cmp.Or(opts.Version, factsVersion)
	s := &Server{opts: opts, router: newRouter(), world: newWorld(opts.Now)}
	s.world.seed(opts.Seed)
	return s
}

// ServeHTTP records the request and answers it: by the hook of Intercept or AnswerAll
// when it takes it, from the world otherwise.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// There is no limit, as the real server has none on JSON: 80 MiB were taken when it was
	// measured.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return
	}
	// It is recorded before anything may fail, so that a request that was refused or hit by a
	// fault is seen too.
	intercept := s.record(r, body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if intercept != nil && intercept(w, r) {
		return
	}
	inner, ok := s.mount(r)
	if !ok {
		http.Error(w, "Not found.", http.StatusNotFound)
		return
	}
	fault := s.front.arrive(inner, body)
	if fault != nil {
		fault.serve(w, inner, func() *response { return s.answer(inner, body) })
		return
	}
	s.answer(inner, body).send(w)
}

// record appends the request to the log and returns the hook in force.
func (s *Server) record(r *http.Request, body []byte) func(http.ResponseWriter, *http.Request) bool {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if len(s.log) == logSize {
		s.log = s.log[1:]
		s.dropped++
	}
	s.log = append(s.log, Request{
		Method: r.Method, RequestURI: r.RequestURI, Host: r.Host,
		Header: r.Header.Clone(), Body: body,
	})
	return s.intercept
}

// Requests returns the requests recorded since the last ResetRequests, oldest
// first, at most the last 4096.
func (s *Server) Requests() []Request {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	return slices.Clone(s.log)
}

// ResetRequests forgets the recorded requests.
func (s *Server) ResetRequests() {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	s.log, s.dropped = nil, 0
}

// Intercept sets a hook that runs before routing, with the body still unread. It
// answers the request itself and returns true, or returns false to let the
// world answer. Nil removes it.
// There is one hook at a time.
func (s *Server) Intercept(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	s.intercept = f
}

// AnswerAll makes f answer every request instead of the world; requests are
// still recorded. It takes the place of an Intercept hook. Nil restores the world.
func (s *Server) AnswerAll(f http.HandlerFunc) {
	if f == nil {
		s.Intercept(nil)
		return
	}
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		f(w, r)
		return true
	})
}

// Routes lists every operation of the API description, sorted by path.
func (s *Server) Routes() []Route {
	return append([]Route(nil), s.router.routes...)
}

// Token returns a new personal access token of the user with scope all, or ""
// when there is no such user.
func (s *Server) Token(login string) string {
	return s.NewToken(login, "all")
}

// NewToken returns a new personal access token of the user with the given
// scopes, or "" when there is no such user or a scope is unknown.
// Without scopes the token may use the routes that need none.
func (s *Server) NewToken(login string, scopes ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.world.userByLogin(login)
	set, err := parseScopes(scopes)
	if u == nil || err != nil {
		return ""
	}
	return s.world.addToken(u, "token", randomHex(20), set).secret
}

// SetToken makes token a personal access token of the user with scope all. It
// does nothing when there is no such user.
// The demo uses it for the tokens that its configuration names.
func (s *Server) SetToken(login, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.world.userByLogin(login); u != nil {
		s.world.addToken(u, "token", token, scopeSet{all: true})
	}
}

// randomHex returns n random bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // crypto/rand.Read never fails
	return hex.EncodeToString(b)
}
