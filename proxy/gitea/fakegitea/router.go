package fakegitea

import (
	_ "embed"
	"maps"
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
// A client that escapes slashes is right on all routes; one that does not is right on these.
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

// The kinds of segments of a template. Where two templates match a path, the lower kind
// wins at the first segment that differs.
const (
	fixed  = '0'
	dotted = '1' // {a}.{diffType}; the second takes only "diff" and "patch"
	param  = '2'
	wild   = '3'
)

// endpoint is one path template with its methods.
type endpoint struct {
	path    string
	segs    []string // of the template
	kinds   string   // of the segments
	methods map[string]entry
	order   []string // methods, as listed
}

// router finds the handler of a raw path. It is not net/http's ServeMux, which decodes
// before it matches: here %2F inside a parameter must stay apart from a slash. The
// templates are tried in turn, the most exact ones first.
type router struct {
	// There are a few hundred, and a template is refused at its first other segment, so
	// trying them in turn is fast enough.
	endpoints []*endpoint
	routes    []Route
}

// newRouter makes the endpoints of all operations and attaches the handlers.
func newRouter() *router {
	t, table := &router{}, handlers()
	for line := range strings.Lines(routesText) {
		// Only described operations are among the routes that Routes lists.
		method, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		_, ok := table[method+" "+path]
		if !ok {
			table.on(method+" "+path, notInDemo)
		}
		t.routes = append(t.routes, Route{Method: method, Path: path, Implemented: ok})
	}
	byPath := map[string]*endpoint{}
	for _, key := range slices.Sorted(maps.Keys(table)) { // some routes are not in the description
		method, path, _ := strings.Cut(key, " ")
		e := byPath[path]
		if e == nil {
			e = newEndpoint(path)
			byPath[path] = e
			t.endpoints = append(t.endpoints, e)
		}
		e.methods[method] = table[key]
		e.order = append(e.order, method)
	}
	slices.SortStableFunc(t.endpoints, func(a, b *endpoint) int { return strings.Compare(a.kinds, b.kinds) })
	return t
}

// newEndpoint takes a template apart.
func newEndpoint(path string) *endpoint {
	e := &endpoint{path: path, segs: strings.Split(path[1:], "/"), methods: map[string]entry{}}
	for _, seg := range e.segs {
		switch {
		case !strings.HasPrefix(seg, "{"):
			e.kinds += string(fixed)
		case strings.HasSuffix(seg, "}.{diffType}"):
			e.kinds += string(dotted)
		case seg == "{"+wildcards[path]+"}":
			e.kinds += string(wild)
		default:
			e.kinds += string(param)
		}
	}
	return e
}

// match compares the segments of a path with the template and returns them in as many
// parts as the template has, those under a wildcard joined.
// A wildcard takes at least one segment: contents without a path is a route of its own.
func (e *endpoint) match(segs []string) ([]string, bool) {
	at, more := strings.IndexByte(e.kinds, wild), len(segs)-len(e.segs)
	if at >= 0 && more > 0 {
		end := at + more + 1
		segs = slices.Concat(segs[:at], []string{strings.Join(segs[at:end], "/")}, segs[end:])
	}
	if len(segs) != len(e.segs) {
		return nil, false
	}
	for i, seg := range segs {
		ext := path.Ext(seg)
		if e.kinds[i] == fixed && e.segs[i] != seg ||
			e.kinds[i] == dotted && (ext == seg || ext != ".diff" && ext != ".patch") {
			return nil, false
		}
	}
	return segs, true
}

// lookup finds the entry for a request. Without one it returns the methods that
// the path allows; none of them means that there is no such route.
func (t *router) lookup(method string, segs []string) (entry, map[string]string, *endpoint, []string) {
	// The HTTP server drops the body of the answer to HEAD by itself.
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
		// Several templates can match a path; their methods are all named, one Allow line for
		// each.
		allow = append(allow, e.order...)
	}
	return entry{}, nil, nil, allow
}

// params decodes the values of a match, each exactly once. Names of wiki pages
// are decoded like a query, where a plus is a space.
// Decoding twice would turn a file named a%2Fb into another path.
func (e *endpoint) params(values []string) map[string]string {
	out := map[string]string{}
	for i, raw := range values {
		name, _, _ := strings.Cut(strings.Trim(e.segs[i], "{}"), "}")
		decode := url.PathUnescape
		switch {
		case e.kinds[i] == fixed:
			continue
		case e.kinds[i] == dotted:
			ext := path.Ext(raw)
			raw, out["diffType"] = strings.TrimSuffix(raw, ext), ext[1:]
		case name == "pageName":
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
// It does not know dots: "." and ".." are names of segments and match no fixed one. Fixed
// segments are compared raw, so %75ser is not user.
func segments(rawPath string) []string {
	return strings.FieldsFunc(rawPath, func(r rune) bool { return r == '/' })
}
