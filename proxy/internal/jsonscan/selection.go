package jsonscan

import (
	"bytes"
	"errors"
	"strings"
)

// MaxPathDepth is how many names a path of a [Selection] may have.
const MaxPathDepth = 8

// The errors of [NewSelection].
var (
	ErrPathName  = errors.New("a path has an empty name")
	ErrPathDepth = errors.New("a path has more than 8 names")
)

// Selection is a set of members to keep of a document, by paths such as number,
// user.login or labels[].name. It never changes and may be shared.
type Selection struct {
	root    *selected
	nodes   int // how many nodes there are, root included
	paths   []string
	ends    []*selected // by path
	longest int         // bytes of the longest name
}

// selected is one name of a selection. A node where a path ends keeps its value
// whole.
type selected struct {
	id       int
	parent   *selected
	children map[string]*selected
	end      bool
}

// NewSelection reads paths. Names are joined with dots; [] after a name is
// optional, as arrays are entered by themselves. Without paths all is kept. The
// error is [ErrPathName] or [ErrPathDepth].
func NewSelection(paths ...string) (*Selection, error) {
	s := &Selection{root: &selected{}, nodes: 1, paths: paths}
	for _, p := range paths {
		names := strings.Split(strings.ReplaceAll(p, "[]", ""), ".")
		// Gitea's answers are less deep; the bound is on what a caller may have built.
		if len(names) > MaxPathDepth {
			return nil, ErrPathDepth
		}
		n := s.root
		for _, name := range names {
			if name == "" {
				return nil, ErrPathName
			}
			n = s.enter(n, name)
		}
		n.end = true
		s.ends = append(s.ends, n)
	}
	return s, nil
}

// enter returns the node called name below n, a new one if need be.
func (s *Selection) enter(n *selected, name string) *selected {
	if c := n.children[name]; c != nil {
		return c
	}
	if n.children == nil {
		n.children = map[string]*selected{}
	}
	c := &selected{id: s.nodes, parent: n}
	n.children[name] = c
	s.nodes++
	s.longest = max(s.longest, len(name))
	return c
}

// Paths returns the paths as they were given, none of a nil Selection. Do not modify the
// slice.
func (s *Selection) Paths() []string {
	if s == nil {
		return nil
	}
	return s.paths
}

// Project is [Projector] for a document that is there as a whole.
func (s *Selection) Project(data []byte, maxDepth int) (kept []byte, unknown []string, err error) {
	p := s.Projector(maxDepth)
	p.out = make([]byte, 0, min(len(data), 4<<10))
	if _, err := p.Write(data); err != nil {
		return nil, nil, err
	}
	if err := p.Close(); err != nil {
		return nil, nil, err
	}
	return p.Kept(), p.Unknown(), nil
}

// whole reports whether a value at n is kept whatever it is.
func (n *selected) whole() bool { return n.end || n.children == nil }

// child returns the node of a member by its name with quotes and escapes, nil
// when the member is not selected.
func (n *selected) child(quoted []byte) *selected {
	if len(quoted) < 2 {
		return nil
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return n.children[string(quoted[1:len(quoted)-1])]
	}
	// Names with escapes are rare, so only they are decoded.
	return n.children[Unquote(quoted)]
}
