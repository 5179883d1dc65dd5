package policy

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"aegis/proxy"
)

//go:embed sites.yaml
var sitesYAML []byte

// site is one entry of sites.yaml; its head says what the keys mean.
type site struct {
	Repos       []repoSite        `yaml:"repos"`
	Owners      []string          `yaml:"owners"`
	Heads       []string          `yaml:"heads"`
	Links       []string          `yaml:"links"`
	Contexts    []string          `yaml:"contexts"`
	Opaque      []string          `yaml:"opaque"`
	Parent      bool              `yaml:"parent"`
	Reach       string            `yaml:"reach"`
	Why         string            `yaml:"why"`
	Rows        string            `yaml:"rows"`
	Foreign     bool              `yaml:"foreign"`
	Branches    [][]string        `yaml:"branches"`
	Targets     [][]string        `yaml:"targets"`
	Patterns    []string          `yaml:"patterns"`
	Locks       []string          `yaml:"locks"`
	EveryBranch bool              `yaml:"every_branch"`
	Wipes       bool              `yaml:"wipes"`
	Pull        string            `yaml:"pull"`
	Release     []string          `yaml:"release"`
	Paths       []string          `yaml:"paths"`
	Commits     []string          `yaml:"commits"`
	Patch       bool              `yaml:"patch"`
	Files       []string          `yaml:"files"`
	Texts       []string          `yaml:"texts"`
	None        map[string]string `yaml:"none"`
}

// repoSite is where a call names one repository: alternatives, of which the first that
// is given counts.
type repoSite struct {
	Owner []string `yaml:"owner"`
	Name  []string `yaml:"name"`
}

// The places that are no arguments.
const (
	placeSelf    = "self"
	placeDefault = "default"
)

// The values of reach and rows.
const (
	reachAccount = "account"
	reachResult  = "result"
	reachRefuse  = "refuse"
	rowsCross    = "cross"
	rowsMixed    = "mixed"
)

// loadSites reads the table once: all teams judge by the same one, and nothing changes it.
var loadSites = sync.OnceValues(func() (map[string]*site, error) {
	dec := yaml.NewDecoder(bytes.NewReader(sitesYAML))
	dec.KnownFields(true)
	table := map[string]*site{}
	if err := dec.Decode(&table); err != nil {
		return nil, fmt.Errorf("sites.yaml: %w", err)
	}
	// The decoder would ignore a second document without a word.
	if err := dec.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("sites.yaml: more than one document")
	}
	for id, s := range table {
		if !slices.Contains([]string{"", reachAccount, reachResult, reachRefuse}, s.Reach) ||
			!slices.Contains([]string{"", rowsCross, rowsMixed}, s.Rows) ||
			!slices.Contains([]string{"", "merge", "update"}, s.Pull) || (s.Reach == reachRefuse) != (s.Why != "") {
			return nil, fmt.Errorf("sites.yaml: %s: unknown reach, rows or pull, or a refusal without a reason", id)
		}
	}
	return table, nil
})

// places returns every argument that the entry is about.
func (s *site) places() map[string]bool {
	out := map[string]bool{}
	add := func(lists ...[]string) {
		for _, p := range slices.Concat(lists...) {
			out[p] = true
		}
	}
	for _, r := range s.Repos {
		add(r.Owner, r.Name)
	}
	add(s.Branches...)
	add(s.Targets...)
	add(s.Owners, s.Heads, s.Links, s.Contexts, s.Opaque, s.Patterns, s.Locks, s.Release, s.Paths, s.Commits,
		s.Files, s.Texts, slices.Collect(maps.Keys(s.None)))
	delete(out, placeSelf)
	delete(out, placeDefault)
	return out
}

// operation is a tool of the catalog and what is known of it. It is made from the catalog
// and the table together, as either alone could miss an argument that the other one knows.
type operation struct {
	tool     *proxy.Tool
	site     *site
	segments []string // of the path template
	// owner and repo are the path parameters that name the repository; only owner
	// where the path names an account, whose repositories the call then concerns.
	owner, repo string
	// unknownRepo names an argument that may name a repository, unknownFile one
	// that may name a branch or file, in a way that sites.yaml does not say; "" when
	// there is none. Then calls are refused where a rule could concern it.
	unknownRepo, unknownFile string
	// nested are the members inside arguments that are judged, by their folded name.
	nested map[string]string
	// bytes are the names, in lower case, of the arguments that hold files; true
	// for base64.
	bytes map[string]bool
}

// newOperation puts together what the table and the path say of a tool.
func newOperation(t *proxy.Tool, s *site) *operation {
	if s == nil {
		s = &site{}
	}
	op := &operation{
		tool: t, site: s, segments: strings.Split(strings.Trim(t.Path, "/"), "/"),
		bytes: map[string]bool{}, nested: map[string]string{},
	}
	op.owner, op.repo = pathNames(op.segments)
	for _, p := range slices.Concat(s.Files, s.Texts) {
		name := strings.ToLower(p[strings.LastIndexAny(p, ".")+1:])
		op.bytes[name] = !slices.Contains(s.Texts, p) && !strings.HasSuffix(name, "_text")
	}
	// The plain-text twin that the catalog puts beside base64.
	if op.bytes["content"] || op.bytes["content_base64"] {
		op.bytes["content_text"] = false
	}
	known := op.site.places()
	for p := range known {
		if _, name, found := strings.Cut(p, "[]."); found {
			op.nested[folded(name)] = name
		}
	}
	suspects(t, func(place string, repo bool) {
		switch {
		case known[place], place == "path."+op.owner, place == "path."+op.repo:
		case repo:
			op.unknownRepo = place
		default:
			op.unknownFile = place
		}
	})
	return op
}

// pathNames returns the parameters of a path template that name a repository, or
// an account.
func pathNames(segments []string) (owner, repo string) {
	for i, seg := range segments {
		name, isParam := param(seg)
		if !isParam {
			continue
		}
		// Owner and repo must be neighbours: {owner} alone is an account.
		next := ""
		if i+1 < len(segments) {
			next, _ = param(segments[i+1])
		}
		switch {
		case (name == "owner" || name == "org") && next == "repo", name == "template_owner" && next == "template_repo":
			return name, next
		case i == 1 && (segments[0] == "orgs" || segments[0] == "org") && name == "org",
			i == 1 && segments[0] == "packages" && name == "owner":
			return name, ""
		}
	}
	return "", ""
}

// param returns the name of a segment that is one parameter.
func param(segment string) (string, bool) {
	name, ok := strings.CutPrefix(segment, "{")
	if !ok || !strings.HasSuffix(name, "}") || strings.Contains(name, "{") {
		return "", false
	}
	return strings.TrimSuffix(name, "}"), true
}

// suspects reports the arguments of a tool that, by their names, may name a repository or
// an owner, or else a branch or a file that is written. This is the net under the table: an
// argument that a new version of Gitea, or a catalog of the operator's, brings along is
// refused where rules could concern it until somebody has looked at it.
func suspects(t *proxy.Tool, report func(place string, repo bool)) {
	note := func(place, wire string, in proxy.In) {
		switch {
		case namesRepo(wire, in):
			report(place, true)
		case !t.ReadOnly && namesFile(wire, in):
			report(place, false)
		}
	}
	for i := range t.Params {
		p := &t.Params[i]
		place := string(p.In) + "." + p.Wire
		note(place, p.Wire, p.In)
		// Lists of files: each has a path and a branch of its own.
		if p.In == proxy.InBody && p.Schema != nil && p.Schema.Items != nil && !t.ReadOnly {
			for j := range p.Schema.Items.Properties {
				q := &p.Schema.Items.Properties[j]
				note(place+"[]."+q.Name, q.Name, p.In)
			}
		}
	}
}

// namesRepo reports whether an argument may name a repository or an owner.
func namesRepo(wire string, in proxy.In) bool {
	switch strings.ToLower(wire) {
	case "owner", "repo", "template_owner", "template_repo", "repo_name", "repo_owner", "new_owner", "organization",
		"uid", "head", "basehead", "team_id", "team_ids", "priority_owner_id", "scoped_workflow_source_repo_id",
		"clone_addr", "remote_address", "lfs_endpoint", "context", "starredby", "issue_id", "new_name",
		"repository", "repository_id", "repo_id", "source_repo":
		return in != proxy.InBody || wire != "context" // the context of a commit status
	case "org", "team":
		return in != proxy.InPath
	}
	return false
}

// namesFile reports whether an argument of a write may name a branch or a file.
func namesFile(wire string, in proxy.In) bool {
	switch strings.ToLower(wire) {
	case "branch", "base", "ref", "tag", "tag_name", "target_commitish", "filepath", "path", "from_path",
		"new_branch", "new_branch_name", "old_branch_name", "old_ref_name", "default_branch", "branch_name",
		"rule_name", "name_pattern", "attachment":
		return true
	case "target":
		return in != proxy.InPath
	}
	return false
}
