package catalog_test

import (
	"bufio"
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

// questions reads the benchmark: the phrasings that search may be tuned with,
// and every third one, which nobody looks at while tuning.
func questions(tb testing.TB, set *catalog.Set) (tuning, heldOut []question) {
	tb.Helper()
	f, err := os.Open("testdata/retrieval.txt")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 0; lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
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
		if n++; n%3 == 0 {
			heldOut = append(heldOut, q)
		} else {
			tuning = append(tuning, q)
		}
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return tuning, heldOut
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

// TestRetrieval holds the quality of gitea_search_tools: the right tool is among
// the first five for 95 of 100 phrasings and first for 75, in the part that search
// was tuned with and in the part that it was not. With -v it prints the figures
// and the misses of the first part.
func TestRetrieval(t *testing.T) {
	set := builtin(t)
	sel, _ := set.Select(config.Tools{Mode: "search"})
	tuning, heldOut := questions(t, set)
	if len(tuning)+len(heldOut) < 200 {
		t.Errorf("%d phrasings; 200 make the figures mean something", len(tuning)+len(heldOut))
	}
	for _, part := range []struct {
		name string
		list []question
		show bool
	}{{"tuned with", tuning, true}, {"held out", heldOut, os.Getenv("AEGIS_SHOW_HELD_OUT") != ""}} {
		first, five, misses := score(sel, part.list)
		n := len(part.list)
		t.Logf("%s: %d phrasings, first %.1f %%, first five %.1f %%", part.name, n, percent(first, n), percent(five, n))
		if percent(first, n) < 75 || percent(five, n) < 95 {
			t.Errorf("%s: the right tool is first for %.1f %% (75 wanted) and in the first five for %.1f %% (95 wanted)",
				part.name, percent(first, n), percent(five, n))
		}
		if part.show {
			for _, m := range misses {
				t.Log("  " + m)
			}
		}
	}
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) }
