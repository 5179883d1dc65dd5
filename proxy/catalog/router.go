package catalog

import (
	"cmp"
	"regexp"
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

// segment is one part of a path template: a literal, a parameter, or text with parameters
// in it, such as {index}.{diffType}.
type segment struct {
	literal string
	param   string         // a parameter that is the whole segment
	many    bool           // that keeps slashes
	mixed   *regexp.Regexp // of text with parameters, with a group for each …
	names   []string       // … of these
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

// parseSegment reads one segment of a template. Of several places where a mixed one could be
// divided the last counts: a value may hold the text between, as main...v1.0 or a name with
// dots does.
func parseSegment(t *proxy.Tool, text string) segment {
	found := pathParameter.FindAllString(text, -1)
	if len(found) == 0 {
		return segment{literal: text}
	}
	s, expr := segment{}, regexp.QuoteMeta(text)
	for _, name := range found {
		wire, group := strings.Trim(name, "{}"), "(.*)"
		p := t.Param(proxy.InPath, wire)
		switch {
		case name == text:
			return segment{param: wire, many: p != nil && p.Wildcard}
		case p != nil && p.Schema != nil && len(p.Schema.Enum) > 0:
			// Quoted as a whole, and the bars between the values taken back.
			group = "(" + strings.ReplaceAll(regexp.QuoteMeta(strings.Join(p.Schema.Enum, "|")), `\|`, "|") + ")"
		case strings.HasPrefix(text, name):
			group = "(.+)" // as a whole segment is never empty
		}
		expr = strings.Replace(expr, regexp.QuoteMeta(name), group, 1)
		s.names = append(s.names, wire)
	}
	s.mixed = regexp.MustCompile("(?s)^" + expr + "$")
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
		case s.mixed != nil:
			for i, value := range s.mixed.FindStringSubmatch(parts[0])[1:] {
				out[s.names[i]] = value
			}
		}
		parts = parts[n:]
	}
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
		case s.mixed != nil && s.mixed.MatchString(parts[0]):
			r.mixed++
		default:
			return r, false
		}
		parts = parts[1:]
	}
	return r, len(parts) == 0
}
