package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages lists every Markdown file that people read: the README and all of docs.
func pages(t *testing.T) []string {
	t.Helper()
	list := []string{"../README.md"}
	for _, pattern := range []string{"*.md", "adr/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, more...)
	}
	return list
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence = regexp.MustCompile("(?ms)^[ 0-9.]*```.*?^ *```")
	code  = regexp.MustCompile("`[^`\n]*`")
	link  = regexp.MustCompile(`\]\(<?([^)>\s]+)>?\)`)
	title = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	named = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	odd   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns what links into a page may name, in the form that Git forges
// give headings.
func anchors(text string) map[string]bool {
	text = fence.ReplaceAllString(text, "")
	list := map[string]bool{}
	for _, m := range title.FindAllStringSubmatch(text, -1) {
		words := link.ReplaceAllString(m[1], "]")
		slug := strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(words), ""), " ", "-")
		name := slug
		for n := 1; list[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		list[name] = true
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		list[m[1]] = true
	}
	return list
}

// TestLinks: every relative link of the documentation leads to a file, and its
// anchor to a heading.
func TestLinks(t *testing.T) {
	seen := 0
	known := map[string]map[string]bool{} // anchors by file; some files are large
	for _, page := range pages(t) {
		text := code.ReplaceAllString(fence.ReplaceAllString(read(t, page), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			seen++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if known[target] == nil {
				known[target] = anchors(read(t, target))
			}
			if !known[target][anchor] {
				t.Errorf("%s: %s: %s has no heading of this name", page, m[1], target)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d links were looked at; has their form changed?", seen)
	}
}

// TestAnchors holds the form of anchors, by which TestLinks judges.
func TestAnchors(t *testing.T) {
	got := anchors("# A `b`, c & d\n## Über [x](y.md)\n## Twice\n## Twice\n```\n# no\n```\n<a id=\"here\"></a>\n")
	want := []string{"a-b-c--d", "here", "twice", "twice-1", "über-x"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// TestIndexIsWhole: every page can be reached from the index.
func TestIndexIsWhole(t *testing.T) {
	index := read(t, "index.md")
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "..") || strings.HasPrefix(page, "adr") || page == "index.md" {
			continue
		}
		if !strings.Contains(index, "]("+page+")") && !strings.Contains(index, "]("+page+"#") {
			t.Errorf("docs/index.md has no link to %s", page)
		}
	}
}
