package fakegitea

import (
	_ "embed"
	"net/http"
	"net/url"
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
	"/repos/{owner}/{repo}/tarball/{ref}":             "ref",
	"/repos/{owner}/{repo}/zipball/{ref}":             "ref",
}

// endpoint is one path template with its methods.
type endpoint struct {
	path    string
	names   []string // parameter names, in order
	methods map[string]entry
	order   []string // methods, as listed
}

// node is one segment position of the route tree.
type node struct {
	static map[string]*node
	dotted *node // {index}.{diffType}
	param  *node // {name}
	wild   []wildEnd
	leaf   *endpoint
}

// wildEnd is a parameter over one or more segments, followed by fixed words.
type wildEnd struct {
	suffix []string
	leaf   *endpoint
}

// router finds the handler of a raw path. It is not net/http's ServeMux, which decodes
// before it matches: here %2F inside a parameter must stay apart from a slash.
type router struct {
	root   *node
	routes []Route
}

// match is an endpoint with the still escaped values of its parameters.
type match struct {
	leaf   *endpoint
	values []string
}

// newRouter builds the tree of all operations and attaches the handlers.
func newRouter() *router {
	t := &router{root: &node{}}
	table := handlers()
	leaves := map[string]*endpoint{}
	add := func(method, path string) entry {
		leaf := leaves[path]
		if leaf == nil {
			leaf = &endpoint{path: path, methods: map[string]entry{}}
			leaves[path] = leaf
			t.insert(leaf)
		}
		e, ok := table[method+" "+path]
		if !ok {
			e = entry{handle: notInDemo}
		}
		leaf.methods[method] = e
		leaf.order = append(leaf.order, method)
		return e
	}
	listed := map[string]bool{}
	for line := range strings.Lines(routesText) {
		method, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		_, ok := table[method+" "+path]
		add(method, path)
		listed[method+" "+path] = true
		t.routes = append(t.routes, Route{Method: method, Path: path, Implemented: ok})
	}
	for key := range table {
		if !listed[key] { // served by the real server, absent from its description
			method, path, _ := strings.Cut(key, " ")
			add(method, path)
		}
	}
	return t
}

// insert puts the endpoint into the tree.
func (t *router) insert(leaf *endpoint) {
	wild := wildcards[leaf.path]
	segs := strings.Split(leaf.path[1:], "/")
	at := t.root
	for i, seg := range segs {
		switch {
		case !strings.HasPrefix(seg, "{"):
			at = at.child(seg)
		case strings.Contains(seg, "}.{"):
			first, second, _ := strings.Cut(seg, "}.{")
			leaf.names = append(leaf.names, first[1:], second[:len(second)-1])
			if at.dotted == nil {
				at.dotted = &node{}
			}
			at = at.dotted
		case seg == "{"+wild+"}":
			leaf.names = append(leaf.names, wild)
			at.wild = append(at.wild, wildEnd{suffix: segs[i+1:], leaf: leaf})
			return
		default:
			leaf.names = append(leaf.names, seg[1:len(seg)-1])
			if at.param == nil {
				at.param = &node{}
			}
			at = at.param
		}
	}
	at.leaf = leaf
}

// child returns the node of a fixed word, made when missing.
func (n *node) child(word string) *node {
	if n.static == nil {
		n.static = map[string]*node{}
	}
	if n.static[word] == nil {
		n.static[word] = &node{}
	}
	return n.static[word]
}

// find collects the endpoints that match the segments: fixed words before
// parameters, parameters before wildcards.
func (n *node) find(segs, values []string, out *[]match) {
	if len(segs) == 0 {
		if n.leaf != nil {
			*out = append(*out, match{n.leaf, append([]string(nil), values...)})
		}
		return
	}
	if next := n.static[segs[0]]; next != nil {
		next.find(segs[1:], values, out)
	}
	if n.dotted != nil {
		for _, ext := range []string{"diff", "patch"} {
			if stem, ok := strings.CutSuffix(segs[0], "."+ext); ok && stem != "" {
				n.dotted.find(segs[1:], append(values[:len(values):len(values)], stem, ext), out)
			}
		}
	}
	if n.param != nil {
		n.param.find(segs[1:], append(values[:len(values):len(values)], segs[0]), out)
	}
	n.findWild(segs, values, out)
}

// findWild tries the wildcards that begin at n.
func (n *node) findWild(segs, values []string, out *[]match) {
	for _, end := range n.wild {
		cut := len(segs) - len(end.suffix)
		if cut < 1 || strings.Join(segs[cut:], "/") != strings.Join(end.suffix, "/") {
			continue
		}
		all := append(values[:len(values):len(values)], strings.Join(segs[:cut], "/"))
		*out = append(*out, match{end.leaf, all})
	}
}

// lookup finds the entry for a request. Without one it returns the methods that
// the path allows; none of them means that there is no such route.
func (t *router) lookup(method string, segs []string) (entry, map[string]string, *endpoint, []string) {
	var found []match
	t.root.find(segs, nil, &found)
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allow []string
	for _, m := range found {
		e, ok := m.leaf.methods[method]
		if !ok {
			allow = append(allow, m.leaf.order...)
			continue
		}
		return e, params(m), m.leaf, nil
	}
	return entry{}, nil, nil, allow
}

// params decodes the values of a match, each exactly once. Names of wiki pages
// are decoded like a query, where a plus is a space.
func params(m match) map[string]string {
	out := make(map[string]string, len(m.values))
	for i, raw := range m.values {
		decode := url.PathUnescape
		if m.leaf.names[i] == "pageName" {
			decode = url.QueryUnescape
		}
		value, err := decode(raw)
		if err != nil { // the HTTP server refuses bad escapes before this
			value = raw
		}
		out[m.leaf.names[i]] = value
	}
	return out
}

// segments splits a raw path the way the real server normalises it: repeated
// and trailing slashes are dropped, escapes stay.
func segments(rawPath string) []string {
	return strings.FieldsFunc(rawPath, func(r rune) bool { return r == '/' })
}
