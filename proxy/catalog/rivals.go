package catalog

import (
	"slices"
	"strings"

	"aegis/proxy"
)

// Gitea routes a path to the most literal route that matches it. So a value can
// spell a word of another route: a user called "search", a branch called
// "files". Such a call would reach an operation other than the tool's, perhaps
// one that is disabled, and is refused.

// rivals returns the routes of the same method that a value in the path of own could
// reach. Most routes have none.
func (r *router) rivals(own *route) (list []*route) {
	for _, other := range r.routes {
		if other != own && other.tool.Method == own.tool.Method && mayMeet(own.segments, other.segments) {
			list = append(list, other)
		}
	}
	return list
}

// mayMeet reports whether a path of template a can be one of template b.
func mayMeet(a, b []segment) bool {
	for len(a) > 0 && len(b) > 0 {
		if a[0].many || b[0].many {
			return true
		}
		if a[0].literal != "" && b[0].literal != "" && a[0].literal != b[0].literal {
			return false
		}
		a, b = a[1:], b[1:]
	}
	return len(a) == 0 && len(b) == 0
}

// strays reports whether the path that the arguments make belongs to another
// route than the tool's.
func (s *Set) strays(t *proxy.Tool, args proxy.Arguments) bool {
	rt := s.routes().byName[t.Name] // nil for the raw tool, whose route is found by its path
	if rt == nil || len(rt.rivals()) == 0 {
		return false
	}
	parts := pathParts(t, args)
	// As Gitea's router would decide: the route with more literal segments.
	own, _ := match(rt.segments, parts, rank{})
	return slices.ContainsFunc(rt.rivals(), func(other *route) bool {
		got, ok := match(other.segments, parts, rank{})
		return ok && got.above(own)
	})
}

// pathParts returns the segments of a call's path as the server sees them: a value is one
// segment, whatever it holds, but on wildcard routes its slashes count. Not by splitting
// the finished path: a slash inside of a value is escaped on the way and would be taken for
// a border here.
func pathParts(t *proxy.Tool, args proxy.Arguments) (parts []string) {
	for text := range strings.SplitSeq(strings.TrimPrefix(t.Path, "/"), "/") {
		wild := false
		for i := range t.Params {
			p := &t.Params[i]
			if p.In != proxy.InPath || !strings.Contains(text, "{"+p.Wire+"}") {
				continue
			}
			value, _ := proxy.Scalar(args[p.Name])
			wild = wild || p.Wildcard
			text = strings.ReplaceAll(text, "{"+p.Wire+"}", value)
		}
		if wild {
			parts = append(parts, strings.Split(text, "/")...)
			continue
		}
		parts = append(parts, text)
	}
	return parts
}
