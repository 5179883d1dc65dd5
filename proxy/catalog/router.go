package catalog

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"aegis/proxy"
)

// router finds the operation that a method and a path mean, and the values in the
// path: nothing else reads paths that a client wrote. That serves the raw tool only,
// so it is a plain scan.
type router struct {
	routes []*route
	byName map[string]*route // by tool name, for rivals
}

// route is the path template of a tool, taken apart once.
type route struct {
	tool     *proxy.Tool
	segments []segment
	rivals   func() []*route // see [router.rivals]
}

// segment is one part of a path template: a literal, or text with parameters.
type segment struct {
	literal string
	param   string // a parameter that is the whole segment
	many    bool   // that keeps slashes
	prefix  string // of a segment that is more than a parameter: text before …
	between string // … and between its two parameters …
	first   string // … which have these names
	second  string
	enum    []string
}

// newRouter takes the routes of a whole catalog; see Set.with.
func newRouter(tools []*proxy.Tool) *router {
	r := &router{byName: make(map[string]*route, len(tools))}
	for _, t := range tools {
		rt := &route{tool: t}
		for text := range strings.SplitSeq(strings.TrimPrefix(t.Path, "/"), "/") {
			rt.segments = append(rt.segments, parseSegment(t, text))
		}
		// Compared with all others at the tool's first call and not at the start: all pairs
		// of some five hundred routes cost more than a start should.
		rt.rivals = sync.OnceValue(func() []*route { return r.rivals(rt) })
		r.routes, r.byName[t.Name] = append(r.routes, rt), rt
	}
	return r
}

// parseSegment reads one segment of a template: "issues", "{index}" or
// "{index}.{diffType}". Gitea has no segment of more than two parameters.
func parseSegment(t *proxy.Tool, text string) segment {
	open := strings.IndexByte(text, '{')
	end := strings.IndexByte(text, '}')
	switch {
	case open < 0 || end < open:
		return segment{literal: text}
	case open == 0 && end == len(text)-1:
		p := t.Param(proxy.InPath, text[1:end])
		return segment{param: text[1:end], many: p != nil && p.Wildcard}
	}
	s := segment{prefix: text[:open], between: text[end+1:], first: text[open+1 : end]}
	if next := strings.IndexByte(s.between, '{'); next >= 0 {
		s.second = strings.Trim(s.between[next:], "{}")
		s.between = s.between[:next]
		if p := t.Param(proxy.InPath, s.second); p != nil && p.Schema != nil {
			s.enum = p.Schema.Enum
		}
	}
	return s
}

// find returns the tool of the most literal route that matches, and the values of
// the route's parameters by their names; nil for none.
func (r *router) find(method, path string) (*proxy.Tool, map[string]string) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var best *route
	bestRank := rank{literal: -1}
	for _, rt := range r.routes {
		if rt.tool.Method != method {
			continue
		}
		if got, ok := match(rt.segments, parts, rank{}); ok && got.above(bestRank) {
			best, bestRank = rt, got
		}
	}
	if best == nil {
		return nil, nil
	}
	return best.tool, values(best.segments, parts)
}

// values returns the values of a template's parameters in a path that matches it.
func values(segments []segment, parts []string) map[string]string {
	out := map[string]string{}
	for i, s := range segments {
		n := 1
		switch {
		case s.many: // all that the segments behind it leave
			n = len(parts) - (len(segments) - i - 1)
			out[s.param] = strings.Join(parts[:n], "/")
		case s.param != "":
			out[s.param] = parts[0]
		case s.literal == "":
			out[s.first], out[s.second] = s.cut(parts[0])
		}
		parts = parts[n:]
	}
	delete(out, "") // of a segment with one parameter and text behind it
	return out
}

// rank orders matches: literal segments, then segments with literal text in
// them, then the fewer segments a wildcard took.
type rank struct{ literal, mixed, eaten int }

// above reports whether a match wins over another, as Gitea's router decides.
func (r rank) above(o rank) bool {
	return cmp.Or(cmp.Compare(r.literal, o.literal), cmp.Compare(r.mixed, o.mixed), cmp.Compare(o.eaten, r.eaten)) > 0
}

// match follows a template along a path. Templates have at most one wildcard,
// so the backtracking is bounded by the length of the path.
func match(segments []segment, parts []string, r rank) (rank, bool) {
	for i, s := range segments {
		if len(parts) == 0 {
			return r, false
		}
		switch {
		// Shortest first: the segments behind it say where it ends.
		case s.many:
			for n := 1; n <= len(parts); n++ {
				next := r
				next.eaten += n
				if got, ok := match(segments[i+1:], parts[n:], next); ok {
					return got, true
				}
			}
			return r, false
		case s.param != "":
			if parts[0] == "" {
				return r, false
			}
		case s.literal != "":
			if parts[0] != s.literal {
				return r, false
			}
			r.literal++
		default:
			if !s.fits(parts[0]) {
				return r, false
			}
			r.mixed++
		}
		parts = parts[1:]
	}
	return r, len(parts) == 0
}

// fits reports whether a segment such as {sha}.{diffType} matches text.
func (s *segment) fits(text string) bool {
	rest, ok := strings.CutPrefix(text, s.prefix)
	// The last one: a value may hold the text between, as main...v1.0 or a name with
	// dots does.
	i := strings.LastIndex(rest, s.between)
	if !ok || i < 1 && s.prefix == "" || i < 0 {
		return false
	}
	_, last := s.cut(text)
	return len(s.enum) == 0 || slices.Contains(s.enum, last)
}

// cut returns the values of the parameters of such a segment in text that fits.
func (s *segment) cut(text string) (first, second string) {
	rest := text[len(s.prefix):]
	i := strings.LastIndex(rest, s.between)
	return rest[:i], rest[i+len(s.between):]
}
