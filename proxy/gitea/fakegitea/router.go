package fakegitea

import (
	_ "embed"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// routesText lists every operation of the pinned API description, one
// "METHOD path" a line.
//
//go:embed routes.txt
var routesText string

// wildcards are the routes whose named parameter takes raw slashes as well as
// %2F. All other parameters are one segment, where only %2F gives a slash.
var wildcards = map[string]string{
	"/repos/{owner}/{repo}/archive/{archive}":         "archive",
	"/repos/{owner}/{repo}/branch_protections/{name}": "name",
	"/repos/{owner}/{repo}/branches/{branch}":         "branch",
	"/repos/{owner}/{repo}/commits/{ref}/status":      "ref",
	"/repos/{owner}/{repo}/commits/{ref}/statuses":    "ref",
	"/repos/{owner}/{repo}/compare/{basehead}":        "basehead",
	"/repos/{owner}/{repo}/contents-ext/{filepath}":   "filepath",
	"/repos/{owner}/{repo}/contents/{filepath}":       "filepath",
	"/repos/{owner}/{repo}/git/refs/{ref}":            "ref",
	"/repos/{owner}/{repo}/media/{filepath}":          "filepath",
	"/repos/{owner}/{repo}/pulls/{base}/{head}":       "head",
	"/repos/{owner}/{repo}/raw/{filepath}":            "filepath",
	"/repos/{owner}/{repo}/tags/{tag}":                "tag",
}

// endpoint is one path template with its methods.
type endpoint struct {
	path    string
	segs    []string // of the template
	wild    int      // where the wildcard of the template is; -1 without one
	methods map[string]entry
	order   []string // methods, as listed
}

// router finds the handler of a raw path. It is not net/http's ServeMux, which decodes
// before it matches: here %2F inside a parameter must stay apart from a slash. The
// templates are tried in turn, the most exact ones first.
type router struct {
	endpoints []*endpoint
	routes    []Route
}

// newRouter makes the endpoints of all operations and attaches the handlers.
func newRouter() *router {
	t, table := &router{}, handlers()
	byPath := map[string]*endpoint{}
	for line := range strings.Lines(routesText) {
		key := strings.TrimSpace(line)
		method, path, _ := strings.Cut(key, " ")
		if byPath[path] == nil {
			byPath[path] = newEndpoint(path)
			t.endpoints = append(t.endpoints, byPath[path])
		}
		e, ok := table[key]
		if !ok {
			e = entry{handle: notInDemo}
		}
		byPath[path].methods[method] = e
		byPath[path].order = append(byPath[path].order, method)
		t.routes = append(t.routes, Route{Method: method, Path: path, Implemented: ok})
	}
	slices.SortStableFunc(t.endpoints, func(a, b *endpoint) int { return strings.Compare(a.rank(), b.rank()) })
	return t
}

// newEndpoint takes a template apart.
func newEndpoint(path string) *endpoint {
	segs := strings.Split(path[1:], "/")
	return &endpoint{
		path: path, segs: segs, wild: slices.Index(segs, "{"+wildcards[path]+"}"), methods: map[string]entry{},
	}
}

// rank orders the endpoints: where two of them match a path, a fixed word wins over a
// parameter and a parameter over a wildcard, the first segment that differs decides.
func (e *endpoint) rank() string {
	out := make([]byte, len(e.segs))
	for i, seg := range e.segs {
		switch {
		case i == e.wild:
			out[i] = '3'
		case !strings.HasPrefix(seg, "{"):
			out[i] = '0'
		case strings.HasSuffix(seg, dotted):
			out[i] = '1'
		default:
			out[i] = '2'
		}
	}
	return string(out)
}

// dotted ends a segment with two parameters. The second takes only "diff" and "patch";
// another ending belongs to the value of a plain parameter.
const dotted = "}.{diffType}"

// match compares the segments of a path with the template and returns them in as many
// parts as the template has, those under a wildcard joined.
func (e *endpoint) match(segs []string) ([]string, bool) {
	if more := len(segs) - len(e.segs); e.wild >= 0 && more > 0 {
		end := e.wild + more + 1
		segs = slices.Concat(segs[:e.wild], []string{strings.Join(segs[e.wild:end], "/")}, segs[end:])
	}
	if len(segs) != len(e.segs) {
		return nil, false
	}
	for i, seg := range e.segs {
		ext := path.Ext(segs[i])
		isDiff := (ext == ".diff" || ext == ".patch") && ext != segs[i]
		if !strings.HasPrefix(seg, "{") && seg != segs[i] || strings.HasSuffix(seg, dotted) && !isDiff {
			return nil, false
		}
	}
	return segs, true
}

// lookup finds the entry for a request. Without one it returns the methods that
// the path allows; none of them means that there is no such route.
func (t *router) lookup(method string, segs []string) (entry, map[string]string, *endpoint, []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allow []string
	for _, e := range t.endpoints {
		values, ok := e.match(segs)
		if !ok {
			continue
		}
		if h, ok := e.methods[method]; ok {
			return h, e.params(values), e, nil
		}
		allow = append(allow, e.order...)
	}
	return entry{}, nil, nil, allow
}

// params decodes the values of a match, each exactly once. Names of wiki pages
// are decoded like a query, where a plus is a space.
func (e *endpoint) params(values []string) map[string]string {
	out := map[string]string{}
	for i, seg := range e.segs {
		if !strings.HasPrefix(seg, "{") {
			continue
		}
		raw, decode := values[i], url.PathUnescape
		name, _, two := strings.Cut(seg[1:len(seg)-1], strings.TrimSuffix(dotted, "}"))
		if two {
			ext := path.Ext(raw)
			raw, out["diffType"] = strings.TrimSuffix(raw, ext), ext[1:]
		}
		if name == "pageName" {
			decode = url.QueryUnescape
		}
		value, err := decode(raw)
		if err != nil { // the HTTP server refuses bad escapes before this
			value = raw
		}
		out[name] = value
	}
	return out
}

// segments splits a raw path the way the real server normalises it: repeated
// and trailing slashes are dropped, escapes stay.
func segments(rawPath string) []string {
	return strings.FieldsFunc(rawPath, func(r rune) bool { return r == '/' })
}
