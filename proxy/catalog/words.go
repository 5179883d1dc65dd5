package catalog

import "strings"

// words splits text into lower-case word stems. "Pull request" is one thing, and
// so is the "merge request" of people who come from elsewhere.
func words(text string) []string {
	fields := strings.FieldsFunc(strings.ToLower(text), notWordRune)
	out := fields[:0]
	for _, w := range fields {
		out = append(out, stem(w))
	}
	return joinRequests(out)
}

// joinRequests makes one word of "pull request".
func joinRequests(list []string) []string {
	out := list[:0]
	for _, w := range list {
		if n := len(out); w == "request" && n > 0 && (out[n-1] == "pull" || out[n-1] == "merg") {
			out[n-1] = "pull"
			continue
		}
		out = append(out, w)
	}
	return out
}

// stem cuts the endings that differ between a question and a description. It is crude on
// purpose: both sides go through it. What it leaves need not be a word, as the lexicon and
// the names of tools are cut in the same way.
func stem(w string) string {
	// Before endings are cut, as aliases are whole words.
	if to := aliases[w]; to != "" {
		w = to
	}
	if len(w) > 4 && strings.HasSuffix(w, "ies") {
		return w[:len(w)-3] + "y"
	}
	for _, end := range []string{"ches", "shes", "sses", "xes"} {
		if strings.HasSuffix(w, end) && len(w) > len(end)+1 {
			w = w[:len(w)-2]
			break
		}
	}
	if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") {
		w = w[:len(w)-1]
	}
	for _, end := range []string{"ing", "ed"} {
		// Four letters must stay: "ring" and "bed" have no ending.
		if cut := strings.TrimSuffix(w, end); cut != w && len(cut) >= 4 {
			// pinned is pin, but called is call and passed is pass.
			if n := len(cut); cut[n-1] == cut[n-2] && cut[n-1] != 's' && cut[n-1] != 'l' {
				cut = cut[:n-1]
			}
			w = cut
		}
	}
	if len(w) > 4 && strings.HasSuffix(w, "e") {
		w = w[:len(w)-1]
	}
	return w
}

// stopWord reports whether a word says nothing about which tool is meant.
var stopWords = wordSet(`
a an the of for to in on at is are be do doe did it its this that with from and or by we you our us please can
could want need how which some any thi into has have was were been there gitea tool as so if s t named call titl
than then thes those they them their he she his her not no dont just only also still yet now already again other
another each every per via about when whil while becaus sinc until after befor onc should may must will today
yesterday tomorrow week month currently hi hello hey thank ok let wait part kind thing stuff anyth someth
anybody everybody nobody but very too am hang given talk ther pleas thos up off one someon would know old oldest
current recent exist availabl configur without own`)
