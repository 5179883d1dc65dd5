package catalog_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/catalog"
)

// question is one line of testdata/retrieval.txt.
type question struct {
	text string
	want []string
}

// benchmark is testdata/retrieval.txt: the phrasings that search may be tuned
// with, and the parts that nobody looks at while tuning.
type benchmark struct {
	tuning, heldOut, second, third []question
}

// questions reads the benchmark.
func questions(tb testing.TB, set *catalog.Set) benchmark {
	tb.Helper()
	text, err := os.ReadFile("testdata/retrieval.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var all benchmark
	section, n := "", 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			section, n = line, 0
			continue
		}
		n++
		part := &all.tuning
		switch {
		case section == "[second held out]":
			part = &all.second
		case section == "[third held out]":
			part = &all.third
		case section == "[every third is held out]" && n%3 == 0:
			part = &all.heldOut
		}
		*part = append(*part, parseQuestion(tb, set, line))
	}
	return all
}

// parseQuestion reads "phrasing | tool, tool".
func parseQuestion(tb testing.TB, set *catalog.Set, line string) question {
	tb.Helper()
	text, names, ok := strings.Cut(line, " | ")
	if !ok {
		tb.Fatalf("no tools in %q", line)
	}
	q := question{text: text}
	for _, name := range strings.Split(names, ", ") {
		if near, ok := set.Has("gitea_" + name); !ok {
			tb.Errorf("%q expects %s, which does not exist (%s?)", text, name, near)
		}
		q.want = append(q.want, "gitea_"+name)
	}
	return q
}

// score asks all questions. It returns for how many the first tool, and one of
// the first five, is right, and what was answered instead.
func score(sel *catalog.Selection, list []question) (first, five int, misses []string) {
	for _, q := range list {
		var got []string
		for _, t := range sel.Search(q.text, nil, false) {
			if got = append(got, t.Name); len(got) == 5 {
				break
			}
		}
		rank := slices.IndexFunc(got, func(name string) bool { return slices.Contains(q.want, name) })
		switch {
		case rank == 0:
			first++
			five++
		case rank > 0:
			five++
			misses = append(misses, q.text+": "+got[rank]+" is behind "+strings.Join(got[:rank], ", "))
		default:
			misses = append(misses, q.text+": none of the first five is right: "+strings.Join(got, ", "))
		}
	}
	return first, five, misses
}

// TestRetrieval holds the quality of gitea_search_tools: how often the right tool
// is among the first five and how often it is first, in the part that search was
// tuned with and in the parts that it was not. With -v it prints the figures and
// the misses of the first part.
func TestRetrieval(t *testing.T) {
	t.Parallel()
	set := builtin(t)
	sel, _ := set.Select(config.Tools{Mode: "search"})
	all := questions(t, set)
	showHeldOut := os.Getenv("AEGIS_SHOW_HELD_OUT") != ""
	for _, part := range []struct {
		name        string
		list        []question
		least       int
		first, five float64 // percent
		show        bool
	}{
		{"tuned with", all.tuning, 200, 75, 95, true},
		{"held out", all.heldOut, 70, 75, 95, showHeldOut},
		{"second held out", all.second, 60, 75, 95, showHeldOut},
		{"third held out", all.third, 0, 75, 95, showHeldOut},
	} {
		if len(part.list) == 0 && part.least == 0 {
			continue
		}
		first, five, misses := score(sel, part.list)
		n := len(part.list)
		t.Logf("%s: %d phrasings, first %.1f %%, first five %.1f %%", part.name, n, percent(first, n), percent(five, n))
		if n < part.least {
			t.Errorf("%s: %d phrasings; %d make the figures mean something", part.name, n, part.least)
		}
		if percent(first, n) < part.first || percent(five, n) < part.five {
			t.Errorf("%s: the right tool is first for %.1f %% (%v wanted) and in the first five for %.1f %% (%v wanted)",
				part.name, percent(first, n), part.first, percent(five, n), part.five)
		}
		if part.show {
			for _, m := range misses {
				t.Log("  " + m)
			}
		}
	}
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) }
