package fakegitea

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// change is one file that differs between two snapshots.
type change struct {
	path, oldPath string
	status        string // added, removed, modified, renamed
	before, after []byte
	oldID, newID  string
	plus, minus   int
	hunks         string
	binary        bool
}

// changes compares two snapshots, with the text of the differences.
func (g *gitStore) changes(from, to map[string]string) []change {
	paths := map[string]bool{}
	for p, id := range from {
		paths[p] = paths[p] || to[p] != id
	}
	for p, id := range to {
		paths[p] = paths[p] || from[p] != id
	}
	var out []change
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if !paths[p] {
			continue
		}
		c := change{path: p, oldPath: p, status: "modified", oldID: from[p], newID: to[p]}
		c.before, c.after = g.blobs[c.oldID], g.blobs[c.newID]
		switch {
		case c.oldID == "":
			c.status = "added"
		case c.newID == "":
			c.status = "removed"
		}
		out = append(out, c)
	}
	out = pairRenames(out)
	for i := range out {
		out[i].compare()
	}
	return out
}

// pairRenames joins a removed and an added file of the same content.
func pairRenames(in []change) []change {
	out := in[:0:0]
	for _, c := range in {
		if c.status == "removed" && slices.ContainsFunc(in, func(o change) bool {
			return o.status == "added" &&
				o.newID == c.oldID
		}) {
			continue
		}
		if c.status == "added" {
			i := slices.IndexFunc(in, func(o change) bool { return o.status == "removed" && o.oldID == c.newID })
			if i >= 0 {
				c.status, c.oldPath, c.oldID, c.before = "renamed", in[i].path, in[i].oldID, in[i].before
			}
		}
		out = append(out, c)
	}
	return out
}

// compare fills in the hunks and the counts.
func (c *change) compare() {
	if bytes.IndexByte(c.before, 0) >= 0 || bytes.IndexByte(c.after, 0) >= 0 {
		c.binary = true
		return
	}
	ops := diffLines(lines(c.before), lines(c.after))
	for _, op := range ops {
		switch op.kind {
		case '+':
			c.plus++
		case '-':
			c.minus++
		}
	}
	c.hunks = hunks(ops)
}

// noNewline follows the last line of a file that does not end in a newline, so
// that it differs from the same line with one, and prints as git prints it.
const noNewline = "\n\\ No newline at end of file"

// lines splits text, without the newlines; a last line that has none is marked.
func lines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	text, whole := strings.CutSuffix(string(b), "\n")
	out := strings.Split(text, "\n")
	if !whole {
		out[len(out)-1] += noNewline
	}
	return out
}

// edit is one line of a diff: kept, added or removed.
type edit struct {
	kind byte
	text string
}

// diffLines is a line diff by longest common subsequence. Equal lines at both ends are
// cut off first, which is nearly everything in an ordinary change. Very different big
// files are replaced as a whole, to keep the table small.
func diffLines(a, b []string) []edit {
	var out []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		out = append(out, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	var tail []edit
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, edit{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	slices.Reverse(tail)
	if len(a)*len(b) > 4_000_000 {
		for _, l := range a {
			out = append(out, edit{'-', l})
		}
		for _, l := range b {
			out = append(out, edit{'+', l})
		}
		return append(out, tail...)
	}
	return append(append(out, lcs(a, b)...), tail...)
}

// lcs is the diff of two short sequences.
func lcs(a, b []string) []edit {
	t := make([][]int32, len(a)+1)
	for i := range t {
		t[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	var out []edit
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, edit{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && t[i+1][j] >= t[i][j+1]:
			out = append(out, edit{'-', a[i]})
			i++
		default:
			out = append(out, edit{'+', b[j]})
			j++
		}
	}
	return out
}

// context is how many unchanged lines surround a change.
const context = 3

// hunks writes the edits as a unified diff body.
func hunks(ops []edit) string {
	var out strings.Builder
	oldLine, newLine := 1, 1
	for i := 0; i < len(ops); {
		if ops[i].kind == ' ' && !changeWithin(ops, i, context) {
			i, oldLine, newLine = i+1, oldLine+1, newLine+1
			continue
		}
		end := i
		for end < len(ops) && (ops[end].kind != ' ' || changeWithin(ops, end, context) || changedBefore(ops, i, end)) {
			end++
		}
		writeHunk(&out, ops[i:end], oldLine, newLine)
		for ; i < end; i++ {
			if ops[i].kind != '+' {
				oldLine++
			}
			if ops[i].kind != '-' {
				newLine++
			}
		}
	}
	return out.String()
}

// changeWithin says whether a change follows within n lines.
func changeWithin(ops []edit, at, n int) bool {
	for _, op := range ops[at:min(at+n+1, len(ops))] {
		if op.kind != ' ' {
			return true
		}
	}
	return false
}

// changedBefore says whether a change lies within the context before at.
func changedBefore(ops []edit, from, at int) bool {
	for _, op := range ops[max(from, at-context):at] {
		if op.kind != ' ' {
			return true
		}
	}
	return false
}

// writeHunk writes one hunk with its header.
func writeHunk(out *strings.Builder, ops []edit, oldLine, newLine int) {
	var olds, news int
	for _, op := range ops {
		if op.kind != '+' {
			olds++
		}
		if op.kind != '-' {
			news++
		}
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(oldLine, olds), span(newLine, news))
	for _, op := range ops {
		fmt.Fprintf(out, "%c%s\n", op.kind, op.text)
	}
}

// span is a line range of a hunk header.
func span(line, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, n)
}

// diffText is a whole diff as git prints it.
func diffText(cs []change) string {
	var out strings.Builder
	for _, c := range cs {
		fmt.Fprintf(&out, "diff --git a/%s b/%s\n", c.oldPath, c.path)
		oldID, newID := shortID(c.oldID), shortID(c.newID)
		oldName, newName := "a/"+c.oldPath, "b/"+c.path
		switch c.status {
		case "added":
			out.WriteString("new file mode 100644\n")
			oldName = "/dev/null"
		case "removed":
			out.WriteString("deleted file mode 100644\n")
			newName = "/dev/null"
		case "renamed":
			fmt.Fprintf(&out, "similarity index 100%%\nrename from %s\nrename to %s\n", c.oldPath, c.path)
			continue
		}
		fmt.Fprintf(&out, "index %s..%s", oldID, newID)
		if c.status == "modified" {
			out.WriteString(" 100644")
		}
		out.WriteByte('\n')
		if c.binary {
			fmt.Fprintf(&out, "Binary files %s and %s differ\n", oldName, newName)
		} else if c.hunks != "" {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n%s", oldName, newName, c.hunks)
		}
	}
	return out.String()
}

// shortID abbreviates an object id; a missing object is zeros.
func shortID(id string) string {
	if id == "" {
		return "0000000"
	}
	return id[:7]
}
