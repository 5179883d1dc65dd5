package catalog

import (
	"fmt"
	"strings"

	"aegis/proxy"
)

// Gitea routes a path to the most literal route that matches it. So a value can
// spell a word of another route: a user called "search", a branch called
// "files". Such a call would reach an operation other than the tool's, perhaps
// one that is disabled, and is refused.

// rivalry is what a tool's route competes with.
type rivalry struct {
	own    []segment
	others []route
}

// rivals returns, by tool name, the routes of the same method that a value of
// the tool could reach. Most tools have none.
func (r *router) rivals() map[string]*rivalry {
	byMethod := map[string][]*route{} // every start compares all pairs, so only those that can meet
	for i := range r.routes {
		m := r.routes[i].tool.Method
		byMethod[m] = append(byMethod[m], &r.routes[i])
	}
	out := map[string]*rivalry{}
	for _, routes := range byMethod {
		for _, a := range routes {
			for _, b := range routes {
				if a == b || !mayMeet(a.segments, b.segments) {
					continue
				}
				if out[a.tool.Name] == nil {
					out[a.tool.Name] = &rivalry{own: a.segments}
				}
				out[a.tool.Name].others = append(out[a.tool.Name].others, *b)
			}
		}
	}
	return out
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
	rivals := s.rivals[t.Name]
	if rivals == nil {
		return false
	}
	parts := pathParts(t, args)
	// As Gitea's router would decide: the route with more literal segments.
	own, _ := match(rivals.own, parts, rank{})
	for i := range rivals.others {
		if got, ok := match(rivals.others[i].segments, parts, rank{}); ok && got.above(own) {
			return true
		}
	}
	return false
}

// pathParts returns the segments of a call's path as the server sees them: a
// value is one segment, whatever it holds, but on wildcard routes its slashes
// count.
func pathParts(t *proxy.Tool, args proxy.Arguments) (parts []string) {
	for text := range strings.SplitSeq(strings.TrimPrefix(t.Path, "/"), "/") {
		wild := false
		for i := range t.Params {
			p := &t.Params[i]
			if p.In != proxy.InPath || !strings.Contains(text, "{"+p.Wire+"}") {
				continue
			}
			value := ""
			if v := args[p.Name]; v != nil {
				value = fmt.Sprint(v) // a string or a json.Number
			}
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
