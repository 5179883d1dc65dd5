package fakegitea

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// changesOf is what a commit changed against its first parent.
// A first commit is compared with nothing, so that every file of it is added.
func (g *gitStore) changesOf(c *commit) []change {
	var before map[string]string
	if len(c.parents) > 0 {
		before = g.commits[c.parents[0]].files
	}
	return g.changes(before, c.files)
}

// patchText is a commit as "git format-patch" prints it.
func (g *gitStore) patchText(c *commit) string {
	cs := g.changesOf(c)
	subject, rest, _ := strings.Cut(strings.TrimSpace(c.message), "\n")
	var out strings.Builder
	// The date is the same in every patch that git writes; it marks the file as one.
	fmt.Fprintf(&out, "From %s Mon Sep 17 00:00:00 2001\n", c.id)
	fmt.Fprintf(&out, "From: %s <%s>\n", c.author.Name, c.author.Email)
	fmt.Fprintf(&out, "Date: %s\n", c.author.When.Format(time.RFC1123Z))
	fmt.Fprintf(&out, "Subject: [PATCH] %s\n\n%s---\n", subject, strings.TrimLeft(rest+"\n", "\n"))
	var plus, minus int
	for _, ch := range cs {
		plus, minus = plus+ch.plus, minus+ch.minus
		fmt.Fprintf(&out, " %s | %d %s\n", ch.path, ch.plus+ch.minus, graph(ch.plus, ch.minus))
	}
	// A patch ends with the version of git. Any will do, as nothing reads it.
	fmt.Fprintf(&out, " %s\n\n%s-- \n2.39.5\n\n", summary(len(cs), plus, minus), diffText(cs))
	return out.String()
}

// graph is the row of signs of a diff statistic, at most 60 wide.
func graph(plus, minus int) string {
	if n := plus + minus; n > 60 {
		plus, minus = plus*60/n, minus*60/n
	}
	return strings.Repeat("+", plus) + strings.Repeat("-", minus)
}

// summary is the last line of a diff statistic.
func summary(files, plus, minus int) string {
	out := fmt.Sprintf("%d file%s changed", files, plural(files))
	// git names the insertions also when no line changed at all.
	if plus > 0 || minus == 0 {
		out += fmt.Sprintf(", %d insertion%s(+)", plus, plural(plus))
	}
	if minus > 0 {
		out += fmt.Sprintf(", %d deletion%s(-)", minus, plural(minus))
	}
	return out
}

// plural is the s of a plural.
func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// mergeFiles merges two snapshots over their base. A path that both sides
// changed differently is a conflict.
// It works on whole files, so that changes of different lines in one file conflict here and
// merge on the real server.
func mergeFiles(base, ours, theirs map[string]string) (merged map[string]string, ok bool) {
	merged = map[string]string{}
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	for p := range all { // what is only in base was removed on both sides
		// A path that is not there has the id "", so that a deletion is a change like any
		// other.
		b, o, t := base[p], ours[p], theirs[p]
		pick := o
		switch {
		case o == t || b == t:
		case b == o:
			pick = t
		default:
			return nil, false
		}
		if pick != "" {
			merged[p] = pick
		}
	}
	return merged, true
}
