package fakegitea

import (
	"encoding/base64"
	"net/url"
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
func (s *Server) Saw(text string) bool { return len(s.Sightings(text)) > 0 }

// Sightings lists where the text appeared in the recorded requests: in the path,
// the query, a header or the body, as it is, percent-encoded, or inside HTTP
// Basic. An empty text appears nowhere.
func (s *Server) Sightings(text string) []Sighting {
	var out []Sighting
	if text == "" {
		return nil
	}
	for _, r := range s.Requests() {
		path, query, _ := strings.Cut(r.RequestURI, "?")
		add := func(where string) { out = append(out, Sighting{r.Method, path, where}) }
		if shows(path, text) {
			add("path")
		}
		if shows(query, text) {
			add("query")
		}
		if shows(string(r.Body), text) {
			add("body")
		}
		for name, values := range r.Header {
			for _, v := range values {
				if shows(v, text) || shows(inBasic(v), text) {
					add("header " + name)
				}
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
func shows(s, text string) bool {
	if strings.Contains(s, text) {
		return true
	}
	for _, decode := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if plain, err := decode(s); err == nil && strings.Contains(plain, text) {
			return true
		}
	}
	return false
}

// inBasic is the content of an HTTP Basic header, or "".
func inBasic(header string) string {
	scheme, value, _ := strings.Cut(header, " ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil || !strings.EqualFold(scheme, "basic") {
		return ""
	}
	return string(raw)
}
