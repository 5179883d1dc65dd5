package policy_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy"
)

// The oracle of these tests knows nothing of sites.yaml: it reads paths and the
// names of arguments, as a person would who has only the API's description.

var (
	repoInPath  = regexp.MustCompile(`\{(owner|org|template_owner)\}/\{(repo|template_repo)\}`)
	ownerInPath = regexp.MustCompile(`^/(?:orgs?/\{(org)\}|packages/\{(owner)\})`)
	namesOwner  = regexp.MustCompile(`^(?:new_|repo_)?owner$|^organization$`)
	namesRepo   = regexp.MustCompile(`^repo$|^repo_name$`)
	namesRemote = regexp.MustCompile(`^(?:clone_addr|remote_address)$`)
	namesHead   = regexp.MustCompile(`^(?:head|basehead)$`)
	namesBranch = regexp.MustCompile(`^(?:branch|new_branch|new_branch_name|tag_name|target_commitish|target|rule_name|name_pattern|default_branch)$`)
	namesFile   = regexp.MustCompile(`^(?:filepath|from_path|path)$`)
)

// sampler makes valid arguments of any tool.
type sampler struct {
	owner, repo, branch, file string
}

func (s sampler) args(tool *proxy.Tool) args {
	out := args{}
	for i := range tool.Params {
		p := &tool.Params[i]
		if p.Encode != proxy.EncodeNone || !p.Required && !s.wants(tool, p) {
			continue
		}
		out[p.Name] = s.value(p.Wire, p.In, p.Schema, 0)
	}
	return out
}

// wants picks the optional arguments that name something.
func (s sampler) wants(tool *proxy.Tool, p *proxy.Param) bool {
	switch {
	case tool.OperationID == "repoEdit" && p.Wire == "default_branch":
		return false
	case p.In == proxy.InBody && (namesOwner.MatchString(p.Wire) || namesRepo.MatchString(p.Wire)):
		return true
	case tool.ReadOnly:
		return false
	}
	return p.In == proxy.InBody && (namesBranch.MatchString(p.Wire) || namesFile.MatchString(p.Wire))
}

func (s sampler) value(wire string, in proxy.In, schema *proxy.Schema, depth int) any {
	if v, ok := s.named(wire, in); ok && schema.Type == "string" {
		return v
	}
	if len(schema.Enum) > 0 {
		return schema.Enum[0]
	}
	switch schema.Type {
	case "integer", "number":
		return 1
	case "boolean":
		return false
	case "array":
		if schema.Items == nil || depth > 3 {
			return []any{}
		}
		return []any{s.value(wire, in, schema.Items, depth+1)}
	case "object", "":
		out := args{}
		for i := range schema.Properties {
			if q := &schema.Properties[i]; q.Encode == proxy.EncodeNone && (q.Required || q.Name == "path") {
				out[q.Name] = s.value(q.Name, in, q.Schema, depth+1)
			}
		}
		return out
	}
	switch schema.Format {
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "date":
		return "2026-01-31"
	case "email":
		return "a@example.com"
	}
	return "x1"
}

// named returns the sample for an argument that names something.
func (s sampler) named(wire string, in proxy.In) (string, bool) {
	switch {
	case wire == "template_owner", wire == "org", in == proxy.InPath &&
		wire == "username", namesOwner.MatchString(wire):
		return s.owner, true
	case wire == "template_repo", namesRepo.MatchString(wire):
		return s.repo, true
	case namesRemote.MatchString(wire):
		return "https://git.example/" + s.owner + "/" + s.repo + ".git", true
	case wire == "basehead":
		return "dev..." + s.owner + "/" + s.repo + ":dev", true
	case wire == "head":
		return s.owner + "/" + s.repo + ":" + s.branch, true
	case namesBranch.MatchString(wire) && (wire != "target" || in != proxy.InPath):
		return s.branch, true
	case namesFile.MatchString(wire):
		return s.file, true
	case wire == "email":
		return "a@example.com", true
	case wire == "color":
		return "#00aabb", true
	case strings.HasSuffix(wire, "_id") || wire == "sha":
		return "0000000000000000000000000000000000000000", true
	case wire == "content" || wire == "image" || wire == "attachment" || wire == "content_base64":
		return "eA==", true
	}
	return "", false
}

// namesWhere returns the arguments of a tool that name a repository or an owner.
func namesWhere(tool *proxy.Tool) (names []string) {
	inPath := map[string]bool{}
	for _, m := range append(repoInPath.FindAllStringSubmatch(tool.Path, -1),
		ownerInPath.FindAllStringSubmatch(tool.Path, -1)...) {
		for _, name := range m[1:] {
			inPath[name] = name != ""
		}
	}
	for i := range tool.Params {
		p := &tool.Params[i]
		switch {
		case p.In == proxy.InPath && (inPath[p.Wire] || tool.Path == "/admin/users/{username}/repos"),
			p.In == proxy.InBody && (namesOwner.MatchString(p.Wire) || namesRepo.MatchString(p.Wire) && p.Wire != "repo_name" || namesRemote.MatchString(p.Wire)),
			namesHead.MatchString(p.Wire):
			names = append(names, p.Name)
		}
	}
	return names
}

// Operations that stay refused although all their names are allowed: what they
// reach cannot be told from names.
var opaque = map[string]bool{"acceptRepoTransfer": true}

// Writes to the caller's own account that concern no repository.
var account = map[string]bool{
	"userAddEmail": true, "userDeleteEmail": true, "userCurrentPutFollow": true, "userCurrentDeleteFollow": true, "userBlockUser": true,
	"userUnblockUser": true, "updateUserSettings": true, "userUpdateAvatar": true, "userDeleteAvatar": true, "userCurrentDeleteGPGKey": true,
	"userCurrentDeleteKey": true, "userDeleteOAuth2Application": true,
}

// TestEveryOperationNamesItsRepositories calls all operations with names that are
// allowed, and then with one of them at a time replaced by one that is not.
func TestEveryOperationNamesItsRepositories(t *testing.T) {
	t.Parallel()
	inside := sampler{"acme", "web", "ai/x", "docs/a.md"}
	outside := sampler{"other", "secret", "main", ".gitea/workflows/ci.yml"}
	for policyName, edit := range map[string]func(*config.Policy){
		"allow": repos([]string{"acme/web"}, nil),
		"deny":  repos(nil, []string{"other/*", "acme/secret"}),
		"bind":  func(p *config.Policy) { p.Bind = config.Bind{Owner: "acme", Repo: "web"} },
		"both":  repos([]string{"acme/*"}, []string{"acme/secret"}),
	} {
		tr := newTrial(t, rules(t, edit), world{})
		named, refused := 0, 0
		for _, tool := range tr.set.Tools() {
			if tool.BasicAuthOnly {
				continue
			}
			base := inside.args(tool)
			v := tr.try(tool.OperationID, base)
			names := namesWhere(tool)
			switch {
			case v.Rule == "arguments":
				t.Fatalf("%s: the sample %v does not fit: %s", tool.OperationID, base, v.Text)
			case len(names) == 0 && !tool.ReadOnly && !account[tool.OperationID] && policyName != "deny" && v.Allowed:
				t.Errorf("%s: %s writes without naming a repository, and is allowed", policyName, tool.OperationID)
			case repoInPath.MatchString(tool.Path) && !opaque[tool.OperationID] && !v.Allowed &&
				!(tool.OperationID == "generateRepo" && (policyName == "allow" || policyName == "bind")): // a new name
				t.Errorf("%s: %s with allowed names: %v", policyName, tool.OperationID, v)
			}
			wrong := outside.args(tool)
			for _, name := range names {
				named++
				attack := maps.Clone(base)
				attack[name] = wrong[name]
				if policyName == "both" && (name == "owner" || name == "org" || name == "template_owner") &&
					!ownerInPath.MatchString(tool.Path) {
					attack[name] = "other"
				}
				if got := tr.try(tool.OperationID, attack); got.Allowed {
					t.Errorf("%s: %s is allowed with %s = %v", policyName, tool.OperationID, name, attack[name])
				} else {
					refused++
				}
			}
		}
		if named < 500 || refused != named {
			t.Errorf("%s: %d of %d outside names refused", policyName, refused, named)
		}
		t.Logf("%s: %d names", policyName, named)
	}
}

// TestEveryWriteNamesItsBranch does the same with branches and files.
func TestEveryWriteNamesItsBranch(t *testing.T) {
	t.Parallel()
	inside := sampler{"acme", "web", "ai/x", "docs/a.md"}
	outside := sampler{"acme", "web", "main", "src/a.go"}
	for _, c := range []struct {
		name  string
		edit  func(*config.Policy)
		names *regexp.Regexp
		least int
		free  map[string]bool // name what is only read, or a new repository's
	}{
		{"branches", branches([]string{"ai/**"}, nil, false), namesBranch, 20, map[string]bool{
			"createCurrentUserRepo": true, "createOrgRepo": true, "createOrgRepoDeprecated": true, "adminCreateRepo": true, "generateRepo": true}},
		{"paths", paths([]string{"docs/**"}, nil), namesFile, 4, nil},
	} {
		tr := newTrial(t, rules(t, c.edit), world{})
		tried := 0
		for _, tool := range tr.set.Tools() {
			if tool.ReadOnly || tool.BasicAuthOnly {
				continue
			}
			base := inside.args(tool)
			for i := range tool.Params {
				p := &tool.Params[i]
				if !c.names.MatchString(p.Wire) || p.In == proxy.InQuery || c.free[tool.OperationID] ||
					p.Wire == "target" && tool.Path == "/users/{username}/following/{target}" {
					continue
				}
				attack := maps.Clone(base)
				attack[p.Name] = outside.args(tool)[p.Name]
				if tool.OperationID == "repoEdit" {
					attack[p.Name] = "main"
				}
				delete(attack, "new_branch")
				if p.Name == "new_branch" {
					attack[p.Name] = "main"
				}
				tried++
				if v := tr.try(tool.OperationID, attack); v.Allowed || v.Rule == "arguments" {
					t.Errorf("%s: %s with %s = %v: %v", c.name, tool.OperationID, p.Name, attack[p.Name], v)
				}
			}
		}
		if tried < c.least {
			t.Errorf("%s: only %d arguments tried", c.name, tried)
		}
		t.Logf("%s: %d arguments", c.name, tried)
	}
}

// TestRawToolIsJudgedAlike sends every operation through the raw tool too: what
// is refused by name is refused by path.
func TestRawToolIsJudgedAlike(t *testing.T) {
	t.Parallel()
	for _, edit := range []func(*config.Policy){
		repos([]string{"acme/*"}, []string{"acme/secret"}), branches([]string{"ai/**"}, nil,
			true), paths([]string{"docs/**"}, nil),
	} {
		tr := newTrial(t, rules(t, edit), world{})
		for _, s := range []sampler{{"acme", "web", "ai/x", "docs/a.md"}, {"other", "secret", "main", "src/a.go"},
			{"acme", "secret", "ai/x", "docs/a.md"}} {
			for _, tool := range tr.set.Tools() {
				if tool.BasicAuthOnly || tool.OperationID == "repoGetEditorConfig" ||
					strings.HasPrefix(tool.Consumes, "multipart/") || strings.HasPrefix(tool.Consumes, "text/") {
					continue
				}
				given := s.args(tool)
				direct, raw := tr.try(tool.OperationID, given), tr.try("raw", asRaw(t, tool, given))
				if direct.Allowed != raw.Allowed {
					t.Errorf("%s %v: by name %v, raw %v", tool.OperationID, given, direct, raw)
				}
			}
		}
	}
}

// asRaw turns a call of a tool into one of the raw tool.
func asRaw(t *testing.T, tool *proxy.Tool, given args) args {
	t.Helper()
	path, query, body := tool.Path, args{}, args{}
	for _, p := range tool.Params {
		v, ok := given[p.Name]
		if !ok {
			continue
		}
		switch p.In {
		case proxy.InPath:
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			path = strings.Replace(path, "{"+p.Wire+"}", strings.Trim(string(text), `"`), 1)
		case proxy.InQuery:
			query[p.Wire] = v
		case proxy.InBody:
			body[p.Wire] = v
		case proxy.InWhole:
			if object, ok := v.(args); ok {
				body = object
			}
		}
	}
	out := args{"method": tool.Method, "path": path, "query": query}
	if tool.Method != "GET" && (len(body) > 0 ||
		slices.ContainsFunc(tool.Params, func(p proxy.Param) bool { return p.In == proxy.InBody })) {
		out["body"] = body
	}
	return out
}
