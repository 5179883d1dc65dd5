package fakegitea

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// handler answers one operation. It runs with the world locked, so it needs no lock
// of its own and must not wait for anything.
type handler func(*call) error

// entry is a handler with what the route asks for before it runs.
type entry struct {
	handle handler
	need   need
}

// table maps "METHOD template" to its entry.
type table map[string]entry

// on registers a handler; the key is "METHOD template".
func (t table) on(key string, h handler, needs ...need) {
	e := entry{handle: h}
	for _, n := range needs {
		e.need |= n
	}
	t[key] = e
}

// apiError is a refusal in Gitea's words. Any other error that a handler returns is a
// mistake of the double or of its input and is 500.
type apiError struct {
	status  int
	message string
}

// Error implements error.
func (e *apiError) Error() string { return e.message }

// fail is an error with a status and a message.
func fail(status int, format string, args ...any) error {
	return &apiError{status, fmt.Sprintf(format, args...)}
}

// errForbidden is a refusal without a body. Gitea has both forms of 403; which one a
// route uses was measured, and clients see the difference. It is compared by identity
// in refuse, so it is never copied.
var errForbidden = &apiError{http.StatusForbidden, ""}

// errNotFound is the body of everything unknown or invisible. It is one for both on
// purpose: the real server answers the same bytes for a private repository and for a
// missing one, so that nobody learns which it is.
var errNotFound error = &apiError{http.StatusNotFound, "not found"}

// call is one request on its way through the double.
type call struct {
	s      *Server
	w      *world
	r      *http.Request
	body   []byte
	query  url.Values
	root   string // base of absolute URLs, without a slash at the end
	now    time.Time
	params map[string]string // of the path, decoded once
	path   string            // the route's template below /api/v1

	cred  credential
	doer  *user // who acts, after sudo; nil when anonymous
	owner *user // the user or organisation that the path names, when it does
	repo  *repo // the repository that the path names; nil on other routes
	// perm is what doer may do in repo. Site administrators are owners everywhere.
	perm access
	// out collects the answer, since a handler may fail after it wrote headers.
	out *response

	// within is what ranged reads of the query.
	within func(time.Time) bool

	form url.Values // of the web pages
	sess *session   // of a browser that logged in
}

// response collects an answer, so that it is written after the lock is gone.
type response struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (o *response) Header() http.Header { return o.header }

// WriteHeader implements http.ResponseWriter.
func (o *response) WriteHeader(status int) { o.status = status }

// Write implements http.ResponseWriter.
func (o *response) Write(p []byte) (int, error) { return o.body.Write(p) }

// send writes the collected answer.
func (o *response) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), o.header)
	w.WriteHeader(o.status)
	w.Write(o.body.Bytes()) // a client that went away is not our concern
}

// answer routes the request and runs its handler on the world.
func (s *Server) answer(r *http.Request, body []byte) *response {
	out := &response{status: http.StatusOK, header: http.Header{}}
	out.header.Set("X-Content-Type-Options", "nosniff")
	out.header.Set("X-Frame-Options", "SAMEORIGIN")
	// Routing works on the path as it was escaped: %2F is part of a value, a slash ends
	// it, except in the routes that router.go lists as wildcards.
	segs := segments(r.URL.EscapedPath())
	if len(segs) < 2 || segs[0] != "api" || segs[1] != "v1" {
		if !s.answerPage(r, body, segs, out) {
			s.answerWeb(segs, out)
		}
		return out
	}
	// Routing comes before the login, as in Gitea: an unknown path is 404 and a wrong
	// method 405 whatever the credentials are. Both leave without Cache-Control.
	e, values, leaf, allow := s.router.lookup(r.Method, segs[2:])
	if leaf == nil {
		noRoute(out, allow)
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.newCall(r, body, out)
	// The world stays locked until the answer is complete in out, so a client that
	// reads slowly holds up no other request.
	c.params, c.path = values, leaf.path
	out.header.Set("Cache-Control", "max-age=0, private, must-revalidate")
	if err := c.run(e); err != nil {
		c.refuse(err)
	}
	return out
}

// newCall prepares a call without a route.
func (s *Server) newCall(r *http.Request, body []byte, out *response) *call {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	// Without a RootURL the client's own Host is the base, so that links work on
	// whatever port a test or the demo was given.
	root := strings.TrimSuffix(cmp.Or(s.opts.RootURL, scheme+"://"+r.Host+s.opts.SubPath), "/")
	return &call{
		s: s, w: s.world, r: r, body: body, out: out, root: root,
		query: r.URL.Query(), now: s.world.now(),
	}
}

// noRoute answers for an unknown path, or a known one with another method. The 404 is
// plain text, not the JSON of the API. The 405 has no body and one Allow line for each
// method, and so has OPTIONS, which no route takes.
func noRoute(out *response, allow []string) {
	if len(allow) == 0 {
		out.header.Set("Content-Type", "text/plain; charset=utf-8")
		out.status = http.StatusNotFound
		out.body.WriteString("404 page not found\n")
		return
	}
	out.status = http.StatusMethodNotAllowed
	out.header["Allow"] = allow
}

// run authenticates, checks what the route needs, and calls the handler.
func (c *call) run(e entry) error {
	if err := c.authenticate(); err != nil {
		return err
	}
	if err := c.prepare(e.need); err != nil {
		return err
	}
	// The redirect is complete. It stands for every method, also for those that write.
	if c.out.status == http.StatusMovedPermanently { // a renamed repository
		return nil
	}
	return e.handle(c)
}

// refuse writes an error the way the API does. A message that is not UTF-8
// cannot be encoded there either, and leaves the body empty.
func (c *call) refuse(err error) {
	e, ok := err.(*apiError)
	if !ok {
		e = &apiError{http.StatusInternalServerError, err.Error()}
	}
	// Only a site administrator reads what went wrong inside; for others the message is
	// the empty string, not left out.
	if e.status == http.StatusInternalServerError && (c.doer == nil || !c.doer.Admin) {
		e = &apiError{e.status, ""}
	}
	if e == errForbidden || !utf8.ValidString(e.message) {
		c.out.status = e.status
		return
	}
	// These two come from outside of the API's own error writer there, and lack the
	// url.
	if e == errSudo || e == errBarred {
		c.json(e.status, map[string]string{"message": e.message})
		return
	}
	c.json(e.status, obj{"message", e.message, "url", c.root + "/api/swagger"})
}

// notInDemo answers for the operations that neither the demo nor a test needs.
func notInDemo(*call) error { return fail(http.StatusNotImplemented, "not in the demo") }

// json writes v. HTML characters stay as they are.
func (c *call) json(status int, v any) error {
	c.out.header.Set("Content-Type", "application/json;charset=utf-8")
	c.out.status = status
	var w jsonWriter
	w.value(v)
	c.out.body.Write(w.Bytes())
	return w.err
}

// ok writes v with status 200.
func (c *call) ok(v any) error { return c.json(http.StatusOK, v) }

// renders is the handler of a route that does nothing but render its object.
func renders[T, U any](view func(*call, T) U) func(*call, T) error {
	return func(c *call, o T) error { return c.ok(view(c, o)) }
}

// created writes v with status 201.
func (c *call) created(v any) error { return c.json(http.StatusCreated, v) }

// empty answers with a status and no body.
func (c *call) empty(status int) error {
	c.out.status = status
	return nil
}

// done answers 204.
func (c *call) done() error { return c.empty(http.StatusNoContent) }

// text answers 200 with a plain text body.
func (c *call) text(s string) error {
	c.out.header.Set("Content-Type", "text/plain; charset=utf-8")
	c.out.body.WriteString(s)
	return nil
}

// id is a numeric path parameter; anything else than a number is 0, which no object
// has. A number that is too big for an int64 saturates, which no object has either.
func (c *call) id(name string) int64 {
	n, _ := strconv.ParseInt(c.params[name], 10, 64)
	return n
}

// queryInt is a number in the query; nonsense is 0, as on the real server.
func (c *call) queryInt(name string) int {
	n, _ := strconv.Atoi(c.query.Get(name))
	return n
}

// queryBool is a flag in the query; nonsense is false.
func (c *call) queryBool(name string) bool {
	b, _ := strconv.ParseBool(c.query.Get(name))
	return b
}

// queryTime is a time in the query; a malformed one is refused. The message is that of
// Go's time package, which the real server passes on; the status is 422.
func (c *call) queryTime(name string) (time.Time, error) {
	v := c.query.Get(name)
	if v == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return t, fail(http.StatusUnprocessableEntity, "%v", err)
	}
	return t, nil
}

// queryRange tests whether a time lies between two times of the query, both
// included; an absent one is no bound.
func (c *call) queryRange(from, to string) (func(time.Time) bool, error) {
	after, err := c.queryTime(from)
	if err != nil {
		return nil, err
	}
	before, err := c.queryTime(to)
	return func(t time.Time) bool {
		return (after.IsZero() || !t.Before(after)) && (before.IsZero() || !t.After(before))
	}, err
}

// ranged is a handler whose list lies between since and before, as c.within says. The
// query is read before the object of the path is looked up: a malformed time on an
// unknown issue is 422, not 404.
func ranged(h handler) handler {
	return func(c *call) error {
		var err error
		if c.within, err = c.queryRange("since", "before"); err != nil {
			return err
		}
		return h(c)
	}
}

// escape encodes a name for a path, every special character at once.
func escape(s string) string { return url.PathEscape(s) }

// escapePath encodes each segment of a path and leaves its slashes.
func escapePath(p string) string {
	return strings.Join(mapped(strings.Split(p, "/"), url.PathEscape), "/")
}
