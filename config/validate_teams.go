package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

var teamName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// teams checks the rules of every endpoint, the default one included.
func (v *validator) teams() {
	v.policy(v.c.Policy, "policy")
	toolKeys(v, "tools.allow_risk_by_tool", v.c.Tools.AllowRiskByTool, exampleTool)
	v.members(v.c.Members, "members")
	const do = "list logins, tokens, organizations or teams, or write members: {everyone: true}"
	v.addIf(len(v.c.Teams) > 0 && v.c.Members.Empty(), "members",
		"says not who may use the default endpoint, /mcp, while there are teams", do)
	for _, name := range slices.Sorted(maps.Keys(v.c.Teams)) {
		v.team(v.c.Teams[name], name)
		v.addIf(v.c.Teams[name].Members.Empty(), join("teams", name)+".members", "admits nobody", do)
	}
}

// withoutInherited drops the problems that a team only has because the top of the
// file has them.
func withoutInherited(ps Problems) Problems {
	said := map[string]bool{}
	for _, p := range ps {
		said[p.Key+"\x00"+p.What] = true
	}
	return slices.DeleteFunc(ps, func(p Problem) bool {
		rest, ok := strings.CutPrefix(p.Key, "teams.")
		_, rest, found := strings.Cut(rest, ".")
		return ok && found && said[rest+"\x00"+p.What]
	})
}

func (v *validator) team(t Team, name string) {
	key := join("teams", name)
	v.addIf(!teamName.MatchString(name), key, "is not a team's name",
		"write 1 to 40 characters of a-z 0-9 -, beginning with a letter or digit: it becomes the path /mcp/<name>")
	v.members(t.Members, key+".members")
	v.masking(t.Masking, key+".masking")
	v.results(t.Results, key+".results")
	v.policy(t.Policy, key+".policy")
	toolKeys(v, key+".tools.allow_risk_by_tool", t.Tools.AllowRiskByTool, exampleTool)
	v.buckets(key+".limits", reflect.ValueOf(t.Limits))
}

// members refuses names that no token of auth.tokens has.
func (v *validator) members(m Members, key string) {
	names := make([]string, len(v.c.Auth.Tokens))
	for i, t := range v.c.Auth.Tokens {
		names[i] = t.Name
	}
	for i, name := range m.Tokens {
		v.addIf(!slices.Contains(names, name), item(key+".tokens", i),
			"no token of auth.tokens has this name", suggest(name, names, "use the name of one of auth.tokens"))
	}
	lists := m
	lists.Everyone = false
	v.addIf(m.Everyone && !lists.Empty(), key+".everyone",
		"is true beside lists, which then mean nothing", "remove it, or the lists")
}

// exampleTool is one whose risk somebody may want to allow.
const exampleTool = "gitea_issue_delete"

var (
	giteaName  = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	repoGlob   = regexp.MustCompile(`^[A-Za-z0-9._*?-]+/[A-Za-z0-9._*?-]+$`)
	refGlob    = regexp.MustCompile(`^[^\x00-\x20~^:\\\x7f[\]{}]+$`)
	pathGlob   = regexp.MustCompile(`^[^\x00-\x1f\\\x7f]+$`)
	riskOrTool = regexp.MustCompile(`^(R[0-4]|gitea[_.].*|.*[*?].*)$`)
)

// policy checks what the tags of Policy cannot say.
func (v *validator) policy(p Policy, key string) {
	for name, value := range map[string]string{"owner": p.Bind.Owner, "repo": p.Bind.Repo} {
		v.addIf(value != "" && !giteaName.MatchString(value), key+".bind."+name,
			quote(value)+" is not a name of Gitea's",
			"write letters, digits, . _ and - only, without a slash; no globs: policy.repos takes those")
	}
	v.addIf(p.Bind.Repo != "" && p.Bind.Owner == "", key+".bind.repo",
		"is set without an owner", "set "+key+".bind.owner too")
	v.globs(key+".repos", p.Repos, repoGlob,
		"write owner/name, with * and ? as wild cards, such as acme/* or acme/web-*")
	v.globs(key+".branches", Patterns{p.Branches.Allow, p.Branches.Deny}, refGlob,
		"write a branch, with * within and ** across slashes, such as ai/**")
	v.globs(key+".paths", p.Paths, pathGlob,
		"write a path from the repository's root, with * within and ** across folders, such as docs/**")
	for i, t := range p.Confirm.Tools {
		v.addIf(!riskOrTool.MatchString(t), item(key+".confirm.tools", i),
			quote(t)+" is neither a risk class nor a tool",
			"write R2, R3 or R4, or a name or glob such as gitea_*_delete*")
	}
}

// branchPrefixes are those that a branch is judged without.
var branchPrefixes = regexp.MustCompile("^(refs|heads|tags)/")

// deadGlob reports whether a pattern matches no name as it is judged: without
// refs/heads/ before a branch, without empty segments and dots in a path. Such a deny
// would close nothing and raise no error.
func deadGlob(key, g string) bool {
	never := func(seg string) bool { return seg == "" || seg == "." || seg == ".." }
	return strings.HasSuffix(key, ".branches") && branchPrefixes.MatchString(g) ||
		slices.ContainsFunc(strings.Split(g, "/"), never)
}

func (v *validator) globs(key string, p Patterns, form *regexp.Regexp, do string) {
	for name, list := range map[string][]string{"allow": p.Allow, "deny": p.Deny} {
		for i, g := range list {
			v.addIf(!form.MatchString(g) || strings.Contains(g, "***") || deadGlob(key, g),
				item(key+"."+name, i), quote(g)+" is no pattern that could match", do)
		}
	}
}
