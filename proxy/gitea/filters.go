package gitea

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"aegis/proxy"
)

// issueRow is the part of an issue that filters look at. Decoded only where such a filter
// was asked for.
type issueRow struct {
	Labels    []labelRow `json:"labels"`
	Milestone *struct {
		ID    int64  `json:"id"`
		Title string `json:"title"`
	} `json:"milestone"`
}

type labelRow struct {
	Name string `json:"name"`
}

// hasLabel compares as Gitea does: labels in their exact case.
func (r *issueRow) hasLabel(name string) bool {
	return slices.ContainsFunc(r.Labels, func(l labelRow) bool { return l.Name == name })
}

// hasMilestone compares as Gitea does: titles in any case, or the id.
func (r *issueRow) hasMilestone(name string) bool {
	return r.Milestone != nil &&
		(strings.EqualFold(r.Milestone.Title, name) || strconv.FormatInt(r.Milestone.ID, 10) == name)
}

// ignoredFilters warns of labels and milestones that Gitea has dropped from a
// filter because it does not know them. It then answers as if they had not been
// asked for, in the worst case with everything. The rows give it away: a row
// that lacks what was asked for proves that Gitea's database was not asked for
// it. No row is proof of nothing, so an empty page has no warning.
func ignoredFilters(call *proxy.Call, res *proxy.Result) []string {
	if res.Kind != proxy.BodyJSON {
		return nil
	}
	labels, milestones := issueFilters(call, res.Method, res.Path)
	if len(labels)+len(milestones) == 0 {
		return nil
	}
	var rows []issueRow
	if json.Unmarshal(res.Body, &rows) != nil || len(rows) == 0 {
		return nil
	}
	var ignored []string
	if res.Path == issueSearch { // any of the labels suffices
		ignored = noneOf(rows, labels, (*issueRow).hasLabel)
	} else { // every label is needed
		for _, name := range labels {
			ignored = append(ignored, noneOf(rows, []string{name}, (*issueRow).hasLabel)...)
		}
	}
	return append(warnIgnored("label", "labels", ignored),
		warnIgnored("milestone", "milestones", noneOf(rows, milestones, (*issueRow).hasMilestone))...)
}

// issueSearch is the path of the search in all repositories.
const issueSearch = "/repos/issues/search"

// issueFilters returns the labels and milestones that a list of issues is to be
// narrowed to, nothing for other requests.
func issueFilters(call *proxy.Call, method, path string) (labels, milestones []string) {
	if method != http.MethodGet || path != issueSearch && !listsIssues(path) {
		return nil, nil
	}
	return filterArg(call, "labels"), filterArg(call, "milestones")
}

// listsIssues reports whether path is /repos/{owner}/{repo}/issues.
func listsIssues(path string) bool {
	return strings.HasPrefix(path, "/repos/") && strings.HasSuffix(path, "/issues") && strings.Count(path, "/") == 4
}

// noneOf returns names when some row matches none of them, which Gitea's answer
// could not hold had it known one of them.
func noneOf(rows []issueRow, names []string, match func(*issueRow, string) bool) []string {
	for i := range rows {
		if !slices.ContainsFunc(names, func(name string) bool { return match(&rows[i], name) }) {
			return names
		}
	}
	return nil
}

// filterArg returns the values of a comma-separated filter.
func filterArg(call *proxy.Call, wire string) []string {
	f := proxy.Find(call.Wire.Query, wire)
	if f == nil {
		return nil
	}
	joined, _ := f.Value.(string)
	list, _ := f.Value.([]any)
	for _, item := range list {
		if text, ok := proxy.Scalar(item); ok {
			joined += "," + text
		}
	}
	return strings.FieldsFunc(joined, func(r rune) bool { return r == ',' })
}

// warnIgnored is the warning about ignored filter values. They are the caller's
// own words, so they are shown.
func warnIgnored(what, arg string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	// A warning must stay readable, however many labels were given.
	shown := names[:min(len(names), 10)]
	quoted := make([]string, len(shown))
	for i, name := range shown {
		quoted[i] = strconv.Quote(proxy.Shorten(clean(name), 60))
	}
	return []string{fmt.Sprintf("Gitea ignored the %s filter for %s: "+
		"no such %s here (case and spaces count), so the list is not narrowed by it",
		arg, strings.Join(quoted, ", "), what)}
}
