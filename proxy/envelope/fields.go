package envelope

import (
	"strings"

	"aegis/internal/jsonscan"
	"aegis/proxy"
)

// Bounds of the fields argument.
const (
	maxFields     = 64
	maxFieldDepth = 8
)

// Fields is a parsed selection of members: number, user.login, labels[].name.
type Fields struct {
	root  *fieldNode
	nodes int // how many nodes there are, root included
	paths []string
	ends  []*fieldNode // by path
}

// fieldNode is one name of the selection. A node where a path ends keeps its
// value whole.
type fieldNode struct {
	id       int
	parent   *fieldNode
	children map[string]*fieldNode
	end      bool
}

// ParseFields reads paths. Names are joined with dots; [] after a name is
// optional, as arrays are entered anyway. The error is of kind
// invalid_arguments and does not repeat the path.
func ParseFields(paths []string) (*Fields, error) {
	if len(paths) > maxFields {
		return nil, proxy.NewError(proxy.KindInvalidArguments, "fields: more than 64 paths; name fewer", nil)
	}
	f := &Fields{root: &fieldNode{}, nodes: 1, paths: paths}
	for _, p := range paths {
		names := strings.Split(strings.ReplaceAll(p, "[]", ""), ".")
		if len(names) > maxFieldDepth {
			return nil, proxy.NewError(proxy.KindInvalidArguments, "fields: a path deeper than 8 names; stop at a parent", nil)
		}
		n := f.root
		for _, name := range names {
			if name == "" {
				return nil, proxy.NewError(proxy.KindInvalidArguments, "fields: an empty name in a path; write paths like number, user.login or labels[].name", nil)
			}
			if n.children == nil {
				n.children = map[string]*fieldNode{}
			}
			if n.children[name] == nil {
				n.children[name] = &fieldNode{id: f.nodes, parent: n}
				f.nodes++
			}
			n = n.children[name]
		}
		n.end = true
		f.ends = append(f.ends, n)
	}
	return f, nil
}

// Project returns data with only the selected members, in the order and
// spelling of data. Arrays are entered element by element. unknown lists the
// paths with a name that no object had where one was looked for; a null or an
// empty array on the way says nothing about what is below it.
func (f *Fields) Project(data []byte) (kept []byte, unknown []string) {
	p := projector{looked: make([]bool, f.nodes), found: make([]bool, f.nodes)}
	kept = p.value(make([]byte, 0, len(data)/2), data, f.root)
	for i, end := range f.ends {
		for n := end; n != f.root; n = n.parent {
			if p.looked[n.id] && !p.found[n.id] {
				unknown = append(unknown, f.paths[i])
				break
			}
		}
	}
	return kept, unknown
}

// projector gathers, by node, whether its name was looked for and found.
type projector struct {
	looked, found []bool
}

func (p *projector) value(dst, v []byte, n *fieldNode) []byte {
	if n.end || n.children == nil {
		return append(dst, v...)
	}
	switch jsonscan.Kind(v) {
	case '[':
		dst = append(dst, '[')
		first := true
		for el := range jsonscan.Elements(v) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = p.value(dst, el, n)
		}
		return append(dst, ']')
	case '{':
		return p.object(dst, v, n)
	}
	return append(dst, v...)
}

func (p *projector) object(dst, v []byte, n *fieldNode) []byte {
	for _, c := range n.children {
		p.looked[c.id] = true
	}
	dst = append(dst, '{')
	first := true
	for k, el := range jsonscan.Members(v) {
		child := n.child(k)
		if child == nil {
			continue
		}
		p.found[child.id] = true
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(dst, k...), ':')
		dst = p.value(dst, el, child)
	}
	return append(dst, '}')
}

func (n *fieldNode) child(quoted []byte) *fieldNode {
	if len(quoted) >= 2 {
		if c, ok := n.children[string(quoted[1:len(quoted)-1])]; ok {
			return c
		}
	}
	return n.children[jsonscan.Unquote(quoted)]
}
