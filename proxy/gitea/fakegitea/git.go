package fakegitea

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// signature is an author or committer.
type signature struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	When  time.Time `json:"date"`
}

// String is the form that a git object has. Times are UTC always, and so is the offset.
func (s signature) String() string {
	return fmt.Sprintf("%s <%s> %d +0000", s.Name, s.Email, s.When.Unix())
}

// commit is a snapshot: a map of path to blob id, with its parents. The whole map is in
// every commit, which costs memory and saves walking trees; files are shared by their
// ids.
type commit struct {
	id, tree          string
	parents           []string
	author, committer signature
	message           string
	files             map[string]string
	seq               int // order of creation; a child is always later
}

// tagObject is an annotated tag.
type tagObject struct {
	id, target, name, message string
	tagger                    signature
}

// treeEntry is one line of a tree object. There are files and folders; links,
// submodules and executable files are not in the demo.
type treeEntry struct {
	name, id string
	dir      bool
}

// gitStore is a repository's objects and references. Ids are real git ids, so that a
// caller who computes the id of a file's content gets the one that the API shows.
type gitStore struct {
	blobs   map[string][]byte
	trees   map[string][]treeEntry
	commits map[string]*commit
	tags    map[string]*tagObject
	refs    map[string]string // full reference name to object id
	seq     int
}

// newGitStore returns an empty store.
func newGitStore() *gitStore {
	return &gitStore{
		blobs: map[string][]byte{}, trees: map[string][]treeEntry{}, commits: map[string]*commit{},
		tags: map[string]*tagObject{}, refs: map[string]string{},
	}
}

// clone copies the store for a fork; objects are immutable and shared.
func (g *gitStore) clone() *gitStore {
	return &gitStore{
		blobs: maps.Clone(g.blobs), trees: maps.Clone(g.trees), commits: maps.Clone(g.commits),
		tags: maps.Clone(g.tags), refs: maps.Clone(g.refs), seq: g.seq,
	}
}

// fetch copies the objects of another store, as a pull from a fork does. References are
// not copied. The next commit must be later than all that came, or history would sort
// it among them.
func (g *gitStore) fetch(from *gitStore) {
	maps.Copy(g.blobs, from.blobs)
	maps.Copy(g.trees, from.trees)
	maps.Copy(g.commits, from.commits)
	g.seq = max(g.seq, from.seq)
}

// objectID is the id that git gives an object.
func objectID(kind string, data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// addBlob stores content.
func (g *gitStore) addBlob(data []byte) string {
	id := objectID("blob", data)
	g.blobs[id] = data
	return id
}

// addTree stores the tree of a snapshot and of all its folders. Folders exist by their
// files only, so an empty one cannot be.
func (g *gitStore) addTree(files map[string]string) string {
	sub := map[string]map[string]string{}
	var entries []treeEntry
	for p, id := range files {
		dir, rest, nested := strings.Cut(p, "/")
		if !nested {
			entries = append(entries, treeEntry{name: p, id: id})
			continue
		}
		if sub[dir] == nil {
			sub[dir] = map[string]string{}
		}
		sub[dir][rest] = id
	}
	for dir, inner := range sub {
		entries = append(entries, treeEntry{name: dir, id: g.addTree(inner), dir: true})
	}
	slices.SortFunc(entries, func(a, b treeEntry) int { return cmp.Compare(a.sortKey(), b.sortKey()) })
	var raw []byte
	for _, e := range entries {
		mode, _ := e.kind()
		id, _ := hex.DecodeString(e.id)
		// The object has 40000 where the API shows 040000, and ids as bytes.
		raw = append(append(raw, strings.TrimPrefix(mode, "0")+" "+e.name+"\x00"...), id...)
	}
	id := objectID("tree", raw)
	g.trees[id] = entries
	return id
}

// sortKey is git's order: folders compare as if they ended in a slash.
func (e treeEntry) sortKey() string {
	if e.dir {
		return e.name + "/"
	}
	return e.name
}

// kind is the entry's file mode and object type.
func (e treeEntry) kind() (mode, kind string) {
	if e.dir {
		return "040000", "tree"
	}
	return "100644", "blob"
}

// addCommit stores a snapshot. A message that has no newline at its end gets one, as
// with git.
func (g *gitStore) addCommit(
	files map[string]string, parents []string, author, committer signature, message string,
) *commit {
	message = strings.TrimSuffix(message, "\n") + "\n"
	tree := g.addTree(files)
	var raw strings.Builder
	fmt.Fprintf(&raw, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&raw, "parent %s\n", p)
	}
	fmt.Fprintf(&raw, "author %s\ncommitter %s\n\n%s", author, committer, message)
	g.seq++
	c := &commit{
		id: objectID("commit", []byte(raw.String())), tree: tree, parents: parents,
		author: author, committer: committer, message: message, files: files, seq: g.seq,
	}
	// Same content, parents, people and second: it is the same commit, which keeps its
	// place in the history.
	if old := g.commits[c.id]; old != nil {
		return old
	}
	g.commits[c.id] = c
	return c
}

// addTag stores an annotated tag object and its reference.
func (g *gitStore) addTag(name, target, message string, tagger signature) {
	message = strings.TrimSuffix(message, "\n") + "\n"
	raw := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger %s\n\n%s", target, name, tagger, message)
	t := &tagObject{id: objectID("tag", []byte(raw)), target: target, name: name, message: message, tagger: tagger}
	g.tags[t.id] = t
	g.refs["refs/tags/"+name] = t.id
}

// branch is the head of a branch, or nil.
func (g *gitStore) branch(name string) *commit { return g.commits[g.refs["refs/heads/"+name]] }

// tag is the commit of a tag, or nil.
func (g *gitStore) tag(name string) *commit { return g.peel(g.refs["refs/tags/"+name]) }

// peel follows an annotated tag to its commit.
func (g *gitStore) peel(id string) *commit {
	if t := g.tags[id]; t != nil {
		id = t.target
	}
	return g.commits[id]
}

// names lists the short names of the references below prefix, sorted.
func (g *gitStore) names(prefix string) []string {
	var out []string
	for ref := range g.refs {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// resolve finds the commit that a branch, tag, reference, full or short id
// names.
func (g *gitStore) resolve(rev string) *commit {
	// A branch wins over a tag, and either over an id: a branch may be named like one.
	for _, ref := range []string{"refs/heads/" + rev, "refs/tags/" + rev, rev, "refs/" + rev} {
		if c := g.peel(g.refs[ref]); c != nil {
			return c
		}
	}
	if c := g.commits[rev]; c != nil {
		return c
	}
	all := slices.Collect(maps.Values(g.commits))
	// Four digits are the fewest that git takes.
	short := filter(all, func(c *commit) bool { return strings.HasPrefix(c.id, rev) })
	if len(rev) < 4 || len(short) != 1 { // several: it is ambiguous
		return nil
	}
	return short[0]
}

// ancestors is every commit reachable from c, itself included. It does not recurse: a
// history can be long.
func (g *gitStore) ancestors(c *commit) map[string]*commit {
	seen := map[string]*commit{}
	todo := []*commit{c}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == nil || seen[at.id] != nil {
			continue
		}
		seen[at.id] = at
		for _, p := range at.parents {
			todo = append(todo, g.commits[p])
		}
	}
	return seen
}

// history is the log from c, newest first, without what is reachable from not. It
// sorts by order of creation instead of by date: seeded commits share dates.
func (g *gitStore) history(c, not *commit) []*commit {
	all := g.ancestors(c)
	if not != nil {
		for id := range g.ancestors(not) {
			delete(all, id)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *commit) int { return b.seq - a.seq })
}

// mergeBase is the latest common ancestor, or nil. Where lines of history crossed there
// are several; one of them is enough here.
func (g *gitStore) mergeBase(a, b *commit) *commit {
	theirs := g.ancestors(b)
	for _, c := range g.history(a, nil) {
		if theirs[c.id] != nil {
			return c
		}
	}
	return nil
}

// at is the object at a path of a tree: a blob, a folder, or nothing.
func (g *gitStore) at(tree, p string) (treeEntry, bool) {
	if p == "" {
		return treeEntry{id: tree, dir: true}, true
	}
	name, rest, nested := strings.Cut(p, "/")
	for _, e := range g.trees[tree] {
		switch {
		case e.name != name:
		case !nested:
			return e, true
		case e.dir:
			return g.at(e.id, rest)
		}
	}
	return treeEntry{}, false
}

// lastChange is the commit that last changed the object at a path. It follows any
// parent that has the same object there, as git does, so a merge that took one side
// unchanged is passed over.
func (g *gitStore) lastChange(c *commit, p string) *commit {
	for {
		here, _ := g.at(c.tree, p)
		i := slices.IndexFunc(c.parents, func(id string) bool {
			there, ok := g.at(g.commits[id].tree, p)
			return ok && there.id == here.id
		})
		if i < 0 {
			return c
		}
		c = g.commits[c.parents[i]]
	}
}

// touched says whether a commit changed the path against its first parent.
func (g *gitStore) touched(c *commit, p string) bool {
	here, ok := g.at(c.tree, p)
	if len(c.parents) == 0 {
		return ok
	}
	there, was := g.at(g.commits[c.parents[0]].tree, p)
	return here.id != there.id || ok != was
}

// size is the size of everything stored, in KiB, with a fixed overhead for the files
// that any repository has. It is an estimate for the size that a repository shows;
// nothing is limited by it.
func (g *gitStore) size() int64 {
	n := 24 * 1024
	for _, b := range g.blobs {
		n += len(b) / 10 // text packs well
	}
	return int64(n / 1024)
}
