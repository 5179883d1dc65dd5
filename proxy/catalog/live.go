package catalog

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"aegis/proxy"
)

// Routes are the operations that a live server describes.
type Routes map[string]bool

// DescribedRoutes lists the operations of a Swagger 2.0 document. Only routes are compared,
// never arguments: a server of another version has most operations with slightly other
// ones, and they work.
func DescribedRoutes(swagger []byte) (Routes, error) {
	var doc struct {
		Swagger string                                `json:"swagger"`
		Paths   map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(swagger, &doc); err != nil {
		return nil, err
	}
	if doc.Swagger != "2.0" || len(doc.Paths) == 0 {
		return nil, errors.New("not a Swagger 2.0 description")
	}
	routes := Routes{}
	for path, methods := range doc.Paths {
		for method := range methods { // "parameters" is among them
			switch m := strings.ToUpper(method); m {
			case "GET", "POST", "PUT", "PATCH", "DELETE":
				routes[routeKey(m, path)] = true
			}
		}
	}
	return routes, nil
}

// Has reports whether the server has a tool's operation.
func (r Routes) Has(t *proxy.Tool) bool { return r[routeKey(t.Method, t.Path)] }

// Compare counts the operations that both have, those that the server lacks, and those of
// the server that have no tool. Counts only: names of operations would fill a log at each
// start.
func (s *Set) Compare(r Routes) (shared, lacking, unknown int) {
	known := map[string]bool{}
	for _, t := range s.tools {
		known[routeKey(t.Method, t.Path)] = true
		if !r.Has(t) {
			lacking++
		}
	}
	for key := range r {
		if !known[key] {
			unknown++
		}
	}
	return len(s.tools) - lacking, lacking, unknown
}

var pathParameter = regexp.MustCompile(`\{[^{}/]*\}`)

// routeKey names an operation whatever its path parameters are called: servers of other
// versions call them by other names.
func routeKey(method, path string) string {
	return method + " " + pathParameter.ReplaceAllString(path, "{}")
}
