package build

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"aegis/spec"
)

// derive makes an entry for an operation that names.yaml does not know: a name from its id
// or route, and the strictest class that its method allows. Read from the words of the path
// alone, so it errs on the side of a class too high; an operator can lower it for single
// tools with allow_risk_by_tool.
func (b *builder) derive(op *FactOperation) nameEntry {
	lower := strings.ToLower(op.Path)
	n := nameEntry{Name: b.unique(domainOf(lower), actionOf(op))}
	yes, no := true, false
	switch {
	case issuesCredential(lower):
		n.Risk, n.ReadOnly, n.Destructive = "R4", &no, &yes
	case op.Method == "GET":
		n.Risk = "R1"
	// An unknown change to the server is the worst that a tool can be.
	case strings.HasPrefix(lower, "/admin"):
		n.Risk, n.Destructive = "R4", &yes
	// An unknown write may be anything up to the deletion of a repository.
	default:
		n.Risk, n.Destructive = "R3", &yes
	}
	return n
}

// issuesCredential recognises routes that hand out or accept access. Lists of public keys
// are excepted: what they show is public.
func issuesCredential(path string) bool {
	hands := func(word string) bool { return strings.Contains(path, word) && !strings.HasSuffix(path, "/keys") }
	return strings.Contains(path, "registration") ||
		slices.ContainsFunc([]string{"token", "keys", "oauth", "secrets", "hooks/git"}, hands)
}

// domainOf places a route where a person would look for it. The order matters: the first
// one wins, so that /repos/{owner}/{repo}/actions belongs to actions. Words that occur
// anywhere in a path come before those that only mean something at its start.
func domainOf(path string) string {
	for _, rule := range [][2]string{
		{"/actions", "actions"}, {"/admin", "admin"}, {"/notifications", "notification"}, {"/packages", "package"},
		{"/projects", "project"}, {"/releases", "release"}, {"/pulls", "pull"}, {"/issues", "issue"},
		{"/labels", "issue"}, {"/milestones", "issue"}, {"/contents", "contents"}, {"/git/", "contents"},
		{"/settings", "settings"},
	} {
		if strings.Contains(path, rule[0]) && (rule[0] != "/settings" || strings.HasPrefix(path, rule[0])) {
			return rule[1]
		}
	}
	for _, rule := range [][2]string{
		{"/repos", "repository"}, {"/repositories", "repository"}, {"/topics", "repository"}, {"/org", "organization"},
		{"/teams", "organization"}, {"/user", "user"},
	} {
		if strings.HasPrefix(path, rule[0]) {
			return rule[1]
		}
	}
	return "miscellaneous"
}

var (
	camel    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	notName  = regexp.MustCompile(`[^a-z0-9]+`)
	prefixes = []string{
		"repo_", "repository_", "issue_", "org_", "organization_", "user_", "admin_", "notify_", "actions_",
	}
)

// actionOf makes words of the operation's id, or of its route when it has none. An id is
// preferred, as its author chose a verb. The first word of Gitea's ids repeats the domain
// and is cut.
func actionOf(op *FactOperation) string {
	if op.ID != "" {
		s := snake(camel.ReplaceAllString(op.ID, "${1}_${2}"))
		for _, p := range prefixes {
			if rest, ok := strings.CutPrefix(s, p); ok && rest != "" {
				return rest
			}
		}
		if s != "" {
			return s
		}
	}
	parts := []string{map[string]string{
		"GET": "get", "POST": "create", "PUT": "set", "PATCH": "edit", "DELETE": "delete",
	}[op.Method]}
	for _, seg := range strings.Split(op.Path, "/") {
		if strings.HasPrefix(seg, "{") || seg == "repos" || seg == "admin" {
			continue
		}
		if seg = snake(seg); seg != "" {
			parts = append(parts, seg)
		}
	}
	return strings.Join(parts, "_")
}

// snake makes text a part of a tool's name.
func snake(s string) string {
	return strings.Trim(notName.ReplaceAllString(strings.ToLower(s), "_"), "_")
}

// unique fits a name into the length that clients bear and keeps it unique: a name that is
// too long or taken ends in a short hash. A hash and not a counter: a counter would give a
// tool another name when an operation is added before it, and clients keep names in their
// settings.
func (b *builder) unique(domain, action string) string {
	full := domain + "_" + action
	name, limit := full, spec.MaxName-len("gitea_")
	for i := 0; len(name) > limit || b.names[name]; i++ {
		h := fnv.New32a()
		fmt.Fprintf(h, "%s#%d", full, i)
		suffix := fmt.Sprintf("_%06x", h.Sum32()&0xffffff)
		name = strings.TrimRight(full[:min(len(full), limit-len(suffix))], "_") + suffix
	}
	return name
}
