package fakegitea

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Sighting is a request in which a text appeared.
type Sighting struct {
	// Method and Path are the request's, without the query.
	Method, Path string
	// Where is "path", "query", "body" or "header" with the header's name.
	Where string
}

// Saw says whether the text appeared in any recorded request. Only the last 4096
// are recorded; Dropped is not 0 when some are missing.
// A secret that must not reach Gitea in one request may have to reach it in another; then ask
// for its Sightings.
func (s *Server) Saw(text string) bool { return len(s.Sightings(text)) > 0 }

// Sightings lists where the text appeared in the recorded requests: in the path,
// the query, a header or the body, as it is, percent-encoded, or inside HTTP
// Basic. An empty text appears nowhere.
// It is how tests prove that a token or a secret was sent only where it belongs.
func (s *Server) Sightings(text string) []Sighting {
	var out []Sighting
	for _, r := range s.Requests() {
		path, query, _ := strings.Cut(r.RequestURI, "?")
		places := [][2]string{{"path", path}, {"query", query}, {"body", string(r.Body)}}
		// Go keeps the Host header apart, so a text in it is not found.
		for name, values := range r.Header {
			for _, v := range values {
				places = append(places, [2]string{"header " + name, v})
			}
		}
		for _, p := range places {
			if text != "" && shows(p[1], text) {
				out = append(out, Sighting{r.Method, path, p[0]})
			}
		}
	}
	return out
}

// Dropped is the number of requests since the last ResetRequests that are no
// longer recorded.
func (s *Server) Dropped() int {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	return s.dropped
}

// shows says whether the text is in s, before or after decoding.
// The text is looked for in each form as a part of it, so a short one may be found by chance.
func shows(s, text string) bool {
	query, _ := url.QueryUnescape(s) // what cannot be decoded is empty
	path, _ := url.PathUnescape(s)
	header := http.Request{Header: http.Header{"Authorization": {s}}}
	name, password, _ := header.BasicAuth()
	return slices.ContainsFunc([]string{s, query, path, name + ":" + password}, func(v string) bool {
		return strings.Contains(v, text)
	})
}
