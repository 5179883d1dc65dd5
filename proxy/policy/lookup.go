package policy

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"aegis/proxy"
)

// Place is a repository as a call spells it, and the number of a pull request or the id of
// a release in it. Both names are known to be plain when a lookup gets them.
type Place struct {
	Owner, Repo string
	Number      int64
}

// Repository is what rules need to know of one. Its keys, and those of the types below,
// are the words of a [Suite].
type Repository struct {
	// DefaultBranch is its name, never empty.
	DefaultBranch string `yaml:"default_branch"`
	// Parent is the owner/name of what it was forked from; "" for no fork.
	Parent string `yaml:"parent"`
	// DeletesMerged says that merging deletes branches unless told not to.
	DeletesMerged bool `yaml:"deletes_merged"`
}

// Pull is what rules need to know of a pull request.
type Pull struct {
	// Base and Head are branches; HeadRepo is the owner/name of Head's repository.
	Base     string `yaml:"base"`
	Head     string `yaml:"head"`
	HeadRepo string `yaml:"head_repo"`
}

// Release is what rules need to know of a release.
type Release struct {
	// Tag is its tag, Target the revision that a tag which is still to be made gets.
	Tag    string `yaml:"tag"`
	Target string `yaml:"target"`
}

// Lookup answers what a call does not say, with the credential of the call's identity. An
// error makes the policy refuse the call. What it returns is believed for this one call and
// never kept.
type Lookup interface {
	// Repository reads a repository.
	Repository(ctx context.Context, c *proxy.Call, at Place) (Repository, error)
	// Pull reads a pull request by the number that people see.
	Pull(ctx context.Context, c *proxy.Call, at Place) (Pull, error)
	// Files reads the paths, old ones of moved files included, that a pull request
	// changes.
	Files(ctx context.Context, c *proxy.Call, at Place) ([]string, error)
	// Release reads a release by its id.
	Release(ctx context.Context, c *proxy.Call, at Place) (Release, error)
}

// Ask returns the lookup that asks Gitea: handler is what calls it, tools are the
// operations that it knows (repoGet, repoGetPullRequest, its Files, repoGetRelease). The
// handler is the innermost one, below policy and limits: a lookup is Aegis's question and
// not a call of the client's.
func Ask(handler proxy.Handler, tools []*proxy.Tool) Lookup {
	a := asker{handler: handler, tools: map[string]*proxy.Tool{}}
	for _, t := range tools {
		a.tools[t.OperationID] = t
	}
	return a
}

// asker is a Lookup by calls of Gitea. The zero one knows no operation, so that each of
// its answers is an error and the call in question is refused.
type asker struct {
	handler proxy.Handler
	tools   map[string]*proxy.Tool // by operation
}

// get runs a reading operation on behalf of a call and decodes its answer.
func (a asker) get(ctx context.Context, c *proxy.Call, op string, args proxy.Arguments, v any) error {
	tool := a.tools[op]
	if tool == nil {
		return errors.New("the catalog lacks " + op)
	}
	// The identity's own credential, never write_token: what it may not see must not be
	// told through a refusal. No options but sudo, so that the answer is whole.
	own := &proxy.Call{
		RequestID: c.RequestID, Team: c.Team, Name: tool.Name, Identity: c.Identity, Client: c.Client,
		Received: c.Received, TraceID: c.TraceID, Tool: tool, Args: args,
		Options: proxy.CallOptions{Sudo: c.Options.Sudo},
	}
	own.Resolve(tool)
	res, err := a.handler.Handle(ctx, own)
	c.Stats.Upstream += own.Stats.Upstream
	if err != nil {
		return err
	}
	return json.Unmarshal(res.Body, v)
}

// names are the arguments that name a place.
func (at Place) names(number string) proxy.Arguments {
	args := proxy.Arguments{"owner": at.Owner, "repo": at.Repo}
	if number != "" {
		args[number] = json.Number(strconv.FormatInt(at.Number, 10))
	}
	return args
}

// Repository reads a repository.
func (a asker) Repository(ctx context.Context, c *proxy.Call, at Place) (Repository, error) {
	var v struct {
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
		Deletes       bool   `json:"default_delete_branch_after_merge"`
		Fork          bool   `json:"fork"`
		Parent        *struct {
			FullName string `json:"full_name"`
		} `json:"parent"`
	}
	if err := a.get(ctx, c, "repoGet", at.names(""), &v); err != nil {
		return Repository{}, err
	}
	r := Repository{DefaultBranch: v.DefaultBranch, DeletesMerged: v.Deletes}
	switch {
	// An empty answer of a proxy must not open the branch "".
	case v.DefaultBranch == "":
		return Repository{}, errors.New("the repository names no default branch")
	case v.Parent != nil:
		r.Parent = v.Parent.FullName
	case v.Fork:
		r.Parent = "/" // of something that this identity cannot see
	}
	return r, nil
}

// Pull reads a pull request.
func (a asker) Pull(ctx context.Context, c *proxy.Call, at Place) (Pull, error) {
	type end struct {
		Ref  string `json:"ref"`
		Repo *struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	}
	var v struct{ Base, Head end }
	if err := a.get(ctx, c, "repoGetPullRequest", at.names("index"), &v); err != nil {
		return Pull{}, err
	}
	p := Pull{Base: v.Base.Ref, Head: v.Head.Ref}
	if v.Head.Repo != nil {
		p.HeadRepo = v.Head.Repo.FullName
	}
	// As with the default branch: nothing is no answer.
	if p.Base == "" {
		return Pull{}, errors.New("the pull request names no base")
	}
	return p, nil
}

// A pull request with more files than these is not judged.
const (
	filesPage  = 50
	filesPages = 20
)

// Files reads what a pull request changes, page by page until one is empty: Gitea
// may make pages shorter than they are asked for.
func (a asker) Files(ctx context.Context, c *proxy.Call, at Place) (paths []string, err error) {
	for page := 1; page <= filesPages+1; page++ {
		args := at.names("index")
		args["page"], args["limit"] = json.Number(strconv.Itoa(page)), json.Number(strconv.Itoa(filesPage))
		var files []struct {
			Name   string `json:"filename"`
			Before string `json:"previous_filename"`
		}
		if err := a.get(ctx, c, "repoGetPullRequestFiles", args, &files); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return paths, nil
		}
		for _, f := range files {
			paths = append(paths, f.Name)
			// A move deletes the old path, which is a write to it.
			if f.Before != "" {
				paths = append(paths, f.Before)
			}
		}
	}
	return nil, errors.New("the pull request changes too many files")
}

// Release reads a release.
func (a asker) Release(ctx context.Context, c *proxy.Call, at Place) (Release, error) {
	var v struct {
		Tag    string `json:"tag_name"`
		Target string `json:"target_commitish"`
	}
	if err := a.get(ctx, c, "repoGetRelease", at.names("id"), &v); err != nil {
		return Release{}, err
	}
	return Release{Tag: v.Tag, Target: v.Target}, nil
}

// unanswered is the refusal of a call of which too little is known. Gitea being slow or the
// identity lacking a scope must not open what a rule would close.
func (s *session) unanswered(rule string, err error) *denial {
	var e *proxy.Error
	// The kind of the error, not its text: that may quote what the team may not see.
	why := ""
	if errors.As(err, &e) {
		why = " (" + string(e.Kind) + ")"
	}
	return deny(rule, "what the call would write to could not be read from Gitea"+why+
		", so the rules cannot be applied; check the names, or try again later")
}
