package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// Bind returns a set whose tools work on one owner, or on one repository, only.
// The arguments that name these are gone from schemas, search and examples, and
// are filled in after validation; giving one is an unknown argument. Tools that
// reach beyond the binding are gone, for the raw tool too:
//
//   - what is below one repository stays, unless it moves or copies the repository
//     elsewhere or reads another one;
//   - what is about an organization, its packages and its list of repositories
//     stays when only an owner is bound;
//   - searches for issues, and for repositories when only an owner is bound, stay:
//     a policy removes the rows of others;
//   - what is only about the server stays (version, settings, templates,
//     rendering), and who the caller is;
//   - everything else goes: administration, the caller's account, other accounts,
//     notifications, things that are named by an id alone.
//
// The set hides; that nothing gets around it is for a policy with the same binding. Without
// an owner the set itself is returned. Errors name the key. It is done before the
// selection, so that a team's own filters cannot bring back what the binding takes away.
func (s *Set) Bind(b config.Bind) (*Set, error) {
	switch {
	case b.Owner == "" && b.Repo == "":
		return s, nil
	// A repository's name alone does not say which account it belongs to.
	case b.Owner == "":
		return nil, fmt.Errorf("bind.repo: needs bind.owner")
	case !plainName(b.Owner) || b.Repo != "" && !plainName(b.Repo):
		return nil, fmt.Errorf("bind: owner and repo must be names of letters, digits, '-', '_' and '.'")
	}
	var tools []*proxy.Tool
	outside := map[string]bool{}
	for _, t := range s.tools {
		if bound := bindTool(t, b); bound != nil {
			tools = append(tools, bound)
		} else {
			outside[t.Name] = true
		}
	}
	out := s.with(tools)
	out.bind, out.outside = b, outside
	return out, nil
}

// plainName reports whether a name is one that Gitea gives to accounts and
// repositories.
func plainName(s string) bool {
	return len(s) <= 100 && strings.Trim(s, ".") != "" && strings.Trim(s, alphanumeric+"-_.") == ""
}

// alphanumeric are the letters and digits of names. Written out, as letters of other
// scripts look like these and are other accounts to Gitea.
const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// bindTool returns a tool inside a binding, nil when it has no place there. Nothing of the
// operation changes but its arguments: scopes, risk and route stay what the policy and the
// audit know.
func bindTool(t *proxy.Tool, b config.Bind) *proxy.Tool {
	if leaves(t, b) {
		return nil
	}
	fixed, dropped, ok := bindArguments(t, b)
	if !ok {
		return nil
	}
	bound := *t
	bound.Params = nil
	for _, p := range t.Params {
		if slices.Contains(dropped, p.Name) {
			continue
		}
		// The argument stays, so that the request is made as before; to callers it does
		// not exist.
		if value := fixed[p.Name]; value != "" {
			p.Fixed = value
		}
		bound.Params = append(bound.Params, p)
	}
	gone := func(name string) bool { return fixed[name] != "" || slices.Contains(dropped, name) }
	// Tools are shared by all teams, so this is a copy with schemas of its own.
	bound.InputSchema = edited(t.InputSchema, "", nil, gone)
	if t.ListSchema != nil {
		bound.ListSchema = edited(t.ListSchema, "", nil, gone)
	}
	bound.Example = withoutMembers(t.Example, gone)
	return &bound
}

// leaves reports whether an operation moves or copies things out of a binding, or
// brings them in, or is about more than the binding holds.
func leaves(t *proxy.Tool, b config.Bind) bool {
	id := t.OperationID
	return leaving[id] || b.Repo != "" && (id == "generateRepo" || id == "repoSearch") ||
		slices.ContainsFunc(t.Params, func(p proxy.Param) bool { return naming[p.Wire] })
}

// leaving are the operations that cross the border of a binding, naming the wire names
// of arguments that name something on its other side. A policy would refuse such calls;
// without the tools a model does not try them.
var (
	leaving = wordSet(`createFork repoTransfer acceptRepoTransfer repoMergeUpstream repoAddPushMirror renameOrg
		orgAddIssueToProjectColumn`)
	naming = wordSet("new_owner organization repo_owner clone_addr remote_address repository_id")
	// choosing are arguments that choose among the things of several owners or
	// repositories. Where they are optional, the tool is as good without them.
	choosing = wordSet("uid team_id priority_owner_id starredBy scoped_workflow_source_repo_id team_ids")
	// serverPaths are the first segments of routes about the server alone.
	serverPaths = wordSet("version settings gitignore licenses label markdown markup signing-key.gpg signing-key.pub")
)

// bindArguments returns what the binding makes of a tool's arguments: values by name, and
// those that go because they could only mean others. Ok is false when the operation does
// not belong into the binding. By route and not by a list of operations, so that one which
// a later version of Gitea adds below a repository is inside, and one of an unknown kind
// outside.
func bindArguments(t *proxy.Tool, b config.Bind) (fixed map[string]string, dropped []string, ok bool) {
	fixed = map[string]string{}
	// An empty value fixes nothing: with an owner alone, repo stays the caller's to
	// give.
	set := func(in proxy.In, wire, value string) {
		for i := range t.Params {
			if p := &t.Params[i]; p.In == in && p.Wire == wire && value != "" {
				fixed[p.Name] = value
			}
		}
	}
	path := t.Path + "/" // so that the route of the repository itself has the prefix too
	switch {
	case strings.HasPrefix(path, "/repos/{owner}/{repo}/"), strings.HasPrefix(path, "/user/starred/{owner}/{repo}/"):
		set(proxy.InPath, "owner", b.Owner)
		set(proxy.InPath, "repo", b.Repo)
		// Some operations name the repository in the body once more. It would not be
		// the bound one if the client could set it.
		set(proxy.InBody, "owner", b.Owner)
		set(proxy.InBody, "repo", b.Repo)
	case strings.HasPrefix(path, "/repos/{template_owner}/{template_repo}/"):
		// The template's name stays open, and so does the new repository's: leaves has
		// sent the tool away where one repository is bound.
		set(proxy.InPath, "template_owner", b.Owner)
		set(proxy.InBody, "owner", b.Owner)
	case strings.HasPrefix(path, "/orgs/{org}/"), strings.HasPrefix(path, "/org/{org}/"):
		set(proxy.InPath, "org", b.Owner)
		return fixed, nil, b.Repo == ""
	case strings.HasPrefix(path, "/packages/{owner}/"):
		set(proxy.InPath, "owner", b.Owner)
		return fixed, nil, b.Repo == ""
	case t.OperationID == "userListRepos":
		set(proxy.InPath, "username", b.Owner)
		return fixed, nil, b.Repo == ""
	// Only the owner can be given; rows of the owner's other repositories are removed
	// by the policy.
	case t.OperationID == "issueSearchIssues":
		set(proxy.InQuery, "owner", b.Owner)
	case t.OperationID == "repoSearch", t.OperationID == "userGetCurrent":
	default:
		return nil, nil, aboutServer(t)
	}
	for i := range t.Params {
		if !choosing[t.Params[i].Wire] {
			continue
		}
		// An operation that cannot do without one is about others.
		if t.Params[i].Required {
			return nil, nil, false
		}
		dropped = append(dropped, t.Params[i].Name)
	}
	return fixed, dropped, true
}

// aboutServer reports whether an operation is only about the server. What writes is
// never among them: rendering is a POST that changes nothing, and is marked as reading.
func aboutServer(t *proxy.Tool) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(t.Path, "/"), "/")
	return t.ReadOnly && serverPaths[first]
}

// withoutMembers returns an object without some of its members; nil stays nil.
func withoutMembers(object json.RawMessage, gone func(string) bool) json.RawMessage {
	if object == nil {
		return nil
	}
	out := []byte{'{'}
	for name, v := range jsonscan.Members(object) {
		if !gone(jsonscan.Unquote(name)) {
			out = append(startMember(out, bytes.TrimSpace(name)), v...)
		}
	}
	return append(out, '}')
}

// fill adds the arguments that the binding fixes. After validation, as to the client these
// arguments do not exist and must be refused when given.
func fill(t *proxy.Tool, args proxy.Arguments) {
	for i := range t.Params {
		if p := &t.Params[i]; p.Fixed != "" {
			args[p.Name] = p.Fixed
		}
	}
}

// boundPath is a tool's route as its caller sees it: with the values that are
// fixed in their place.
func boundPath(t *proxy.Tool) string {
	path := t.Path
	for i := range t.Params {
		if p := &t.Params[i]; p.Fixed != "" && p.In == proxy.InPath {
			path = strings.Replace(path, "{"+p.Wire+"}", p.Fixed, 1)
		}
	}
	return path
}

// Arguments explains the arguments that listed tools do not describe, as [CommonArguments]
// does, in the words of the set's binding. Text of the catalog's that names what a binding
// took away would send a model looking for it.
func (s *Set) Arguments() string {
	if s.bind.Owner == "" {
		return CommonArguments
	}
	scope := "repositories belong to " + s.bind.Owner + ", and repo is the name of one;"
	if s.bind.Repo != "" {
		scope = "everything is about the repository " + s.bind.Owner + "/" + s.bind.Repo + ";"
	}
	text := strings.Replace(CommonArguments, commonAdmin, "", 1)
	return strings.Replace(text, commonOwner, scope, 1)
}

// The parts of [CommonArguments] that a binding changes.
const (
	commonAdmin = "Tools with admin in their name are for site administrators. "
	commonOwner = "owner is the user or organization that a repository (repo) belongs to; " +
		"org is an organization, username a login;"
)
