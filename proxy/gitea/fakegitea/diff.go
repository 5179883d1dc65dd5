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
	oldID, newID  string
	plus, minus   int
	hunks         string
	binary        bool
}

// changes compares two snapshots, with the text of the differences. A removed and an
// added file of the same content are one that was renamed. git finds files that are
// alike, too; here a file that was renamed and edited is one removed and one added.
func (g *gitStore) changes(from, to map[string]string) []change {
	all := map[string]string{}
	maps.Copy(all, from)
	maps.Copy(all, to)
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(p string) bool { return from[p] == to[p] })
	removed, added := map[string]string{}, map[string]bool{} // by content
	// Backwards, so that of several removed files with one content the first by name is
	// taken.
	for _, p := range slices.Backward(paths) {
		if to[p] == "" {
			removed[from[p]] = p
		} else if from[p] == "" {
			added[to[p]] = true
		}
	}
	var out []change
	for _, p := range paths {
		c := change{path: p, oldPath: p, status: "modified", oldID: from[p], newID: to[p]}
		switch {
		case c.newID == "" && added[c.oldID]:
			continue // it is listed by its new name
		case c.newID == "":
			c.status = "removed"
		case c.oldID == "" && removed[c.newID] != "":
			c.status, c.oldPath, c.oldID = "renamed", removed[c.newID], c.newID
		case c.oldID == "":
			c.status = "added"
		}
		c.compare(g.blobs[c.oldID], g.blobs[c.newID])
		out = append(out, c)
	}
	return out
}

// compare fills in the hunks and the counts. A file with a NUL byte is binary and has
// no lines to count.
func (c *change) compare(before, after []byte) {
	if bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		c.binary = true
		return
	}
	edits := diffLines(lines(before), lines(after))
	c.plus, c.minus = countEdits(edits)
	c.hunks = hunks(edits)
}

// noNewline follows the last line of a file that does not end in a newline, so
// that it differs from the same line with one, and prints as git prints it.
const noNewline = "\n\\ No newline at end of file"

// lines splits text, without the newlines; a last line that has none is marked. An
// empty file has no line, rather than one that is empty.
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

// marked puts a sign before each line: a space keeps it, a minus removes it, a plus
// adds it. A diff is a list of such lines.
func marked(sign string, lines []string) []string {
	return mapped(lines, func(l string) string { return sign + l })
}

// diffLines is a line diff. Equal lines at both ends are cut off first, which is
// nearly everything in an ordinary change.
func diffLines(a, b []string) []string {
	head, tail, short := 0, 0, min(len(a), len(b))
	for head < short && a[head] == b[head] {
		head++
	}
	// The ends must not overlap: in a text that repeats itself both could claim the
	// same lines.
	for tail < short-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := append(marked(" ", a[:head]), lcs(a[head:len(a)-tail], b[head:len(b)-tail])...)
	return append(out, marked(" ", a[len(a)-tail:])...)
}

// maxTable bounds the memory of lcs. It is in cells of four bytes, 16 MB, for a diff
// that is made with the world locked.
const maxTable = 4_000_000

// lcs is a diff by longest common subsequence. Very different big texts are replaced as
// a whole. The diff is right then, but longer than git's.
func lcs(a, b []string) []string {
	if len(a)*len(b) > maxTable {
		return append(marked("-", a), marked("+", b)...)
	}
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		// On a tie the removal goes first, so that a changed line shows as the old one
		// and then the new one.
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return append(append(out, marked("-", a[i:])...), marked("+", b[j:])...)
}

// countEdits counts the added and removed lines of a diff.
func countEdits(edits []string) (plus, minus int) {
	for _, e := range edits {
		switch e[0] {
		case '+':
			plus++
		case '-':
			minus++
		}
	}
	return plus, minus
}

// context is how many unchanged lines surround a change. It is the default of git diff.
const context = 3

// hunks writes a diff as the body of a unified one: runs of the lines that are changed
// or near a change. Changes whose surroundings meet share a hunk.
func hunks(edits []string) string {
	shown := make([]bool, len(edits))
	for i, e := range edits {
		for k := max(i-context, 0); e[0] != ' ' && k < min(i+context+1, len(edits)); k++ {
			shown[k] = true
		}
	}
	var out strings.Builder
	oldLine, newLine := 1, 1
	for at, end := 0, 0; at < len(edits); at = end {
		for end = at; end < len(edits) && shown[end] == shown[at]; {
			end++
		}
		plus, minus := countEdits(edits[at:end])
		olds, news := end-at-plus, end-at-minus
		if shown[at] {
			fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(oldLine, olds), span(newLine, news))
			out.WriteString(strings.Join(edits[at:end], "\n") + "\n")
		}
		oldLine, newLine = oldLine+olds, newLine+news
	}
	return out.String()
}

// span is a line range of a hunk header. A count of 1 is left out. A range of no lines
// names the line before it, which is 0 at the beginning of a file.
func span(line, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, n)
}

// diffText is a whole diff as git prints it. Every file has the mode 100644, as the
// store knows no other.
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
			// Only files of the same content count as renamed, so nothing follows.
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
