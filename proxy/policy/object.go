package policy

import (
	"bytes"
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"aegis/proxy/internal/jsonscan"
)

// object is what is known of a JSON object of Gitea's from its own members: enough to know
// of which repository it is. Members that are objects are kept as they lie in the
// answer: a list has hundreds of objects, and most are judged by one or two members.
type object struct {
	// Members that name a repository in words, or say what kind of thing the object is.
	fullName, opType, kind  string
	repoOwnerName, repoName string
	// Members that are objects, or texts, and are looked into on demand.
	owner, repository, repo    []byte
	organization, body         []byte
	hasName, hasUnits, hasRepo bool
	hasVersion, hasLogin       bool
	ofOwner                    bool // a project of an account, not of a repository
	urls                       [][]byte
	others                     [][]byte // objects that decide for the whole: a reference in a timeline
	objects                    int
}

// look reads an object's members.
func look(data []byte) (o object) {
	for name, v := range jsonscan.Members(data) {
		if jsonscan.Kind(v) == '{' {
			o.objects++
		}
		// A name with an escape is the same name: \u0066ull_name must not go unseen.
		if bytes.IndexByte(name, '\\') >= 0 {
			name = jsonscan.AppendQuote(nil, jsonscan.Unquote(name))
		}
		o.note(string(name[1:len(name)-1]), v)
	}
	return o
}

// note keeps a member that may say of which repository the object is.
func (o *object) note(name string, v []byte) {
	switch name {
	case "full_name":
		o.fullName = jsonscan.Unquote(v)
	case "name":
		o.hasName = true
	case "owner":
		o.owner = v
	case "repository":
		o.repository, o.hasRepo = v, true
	case "repo":
		o.repo = v
	case "op_type":
		o.opType = jsonscan.Unquote(v)
	case "type":
		o.kind = jsonscan.Unquote(v)
	case "body":
		o.body = v
	case "repo_owner_name":
		o.repoOwnerName = jsonscan.Unquote(v)
	case "repo_name":
		o.repoName = jsonscan.Unquote(v)
	case "organization":
		o.organization = v
	case "units", "permission":
		o.hasUnits = true
	case "version":
		o.hasVersion = true
	case "login":
		o.hasLogin = true
	// A comment in a timeline shows the title of what it refers to.
	case "issue", "ref_issue", "dependent_issue", "ref_comment":
		if jsonscan.Kind(v) == '{' {
			o.others = append(o.others, v)
		}
	case "url", "html_url", "issue_url", "pull_request_url", "repository_url", "run_url", "commit_url", "diff_url",
		"git_url", "download_url":
		if jsonscan.Kind(v) == '"' {
			o.urls = append(o.urls, v)
			o.ofOwner = o.ofOwner || bytes.Contains(v, []byte("/-/projects/"))
		}
	}
}

// judge says of which repository an object is. All ways are tried although the first that
// answers would do: an object that names two repositories is only shown when both may be
// seen.
func (w *view) judge(o *object) verdict {
	seen := unknown
	for _, v := range []verdict{w.byName(o), w.byMember(o), w.byReference(o), w.byURL(o)} {
		seen = max(seen, v) // denied wins
	}
	return seen
}

// byName judges a repository, and what names one in two words.
func (w *view) byName(o *object) verdict {
	switch {
	// Only a repository has all three; full_name alone is also a person's.
	case o.fullName != "" && o.owner != nil && o.hasName:
		return w.named(o.fullName)
	case o.repoOwnerName != "":
		return w.named(o.repoOwnerName + "/" + o.repoName)
	}
	return unknown
}

// byMember judges what has its repository, or its owner, as a member.
func (w *view) byMember(o *object) verdict {
	switch {
	case jsonscan.Kind(o.repository) == '{':
		return w.named(text(o.repository, "full_name"))
	case o.hasRepo && o.hasVersion && jsonscan.Kind(o.owner) == '{': // a package that no repository is linked to
		return w.account(text(o.owner, "login"))
	case o.opType != "" && jsonscan.Kind(o.repo) == '{':
		return w.named(text(o.repo, "full_name"))
	case o.hasUnits && jsonscan.Kind(o.organization) == '{': // a team
		return w.account(cmp.Or(text(o.organization, "username"), text(o.organization, "name")))
	}
	return unknown
}

// byReference judges what is about an issue, perhaps of another repository.
func (w *view) byReference(o *object) verdict {
	seen := unknown
	for _, v := range o.others {
		inner := look(v)
		seen = max(seen, w.judge(&inner))
	}
	if o.kind == "commit_ref" {
		seen = max(seen, w.commitReference(o.body))
	}
	return seen
}

// hrefs finds links in the markup that Gitea writes itself, always in this form.
var hrefs = regexp.MustCompile(`href="([^"]*)"`)

// commitReference judges a mark that a commit, perhaps of another repository,
// left at an issue. Its text is a link to the commit.
func (w *view) commitReference(body []byte) verdict {
	links := hrefs.FindAllStringSubmatch(jsonscan.Unquote(body), -1)
	if len(links) == 0 {
		return denied // where it comes from cannot be told
	}
	// Every link: one of them is the commit, and which cannot be told.
	for _, link := range links {
		name, found := namedBy(afterHost(link[1]))
		if !found || w.named(name.owner+"/"+name.repo) == denied {
			return denied
		}
	}
	return allowed
}

// byURL judges by the object's own addresses: those of the API, which say exactly what they
// are about, or else those of web pages. Last in rank, since addresses in web pages depend
// on where Gitea is mounted.
func (w *view) byURL(o *object) verdict {
	seen, page := unknown, unknown
	for _, quoted := range o.urls {
		if !bytes.Contains(quoted, []byte("/")) {
			continue
		}
		path := afterHost(jsonscan.Unquote(quoted))
		if _, rest, found := strings.Cut(path, "/api/v1/"); found {
			segments := strings.SplitN(rest, "/", 4)
			// /repos/issues/search is a route and no repository.
			if len(segments) >= 3 && segments[0] == "repos" && segments[1] != "issues" {
				seen = max(seen, w.named(segments[1]+"/"+segments[2]))
			}
			continue
		}
		if name, found := namedBy(path); found {
			page = max(page, w.named(name.owner+"/"+name.repo))
		}
	}
	if seen == unknown {
		return page
	}
	return seen
}

// afterHost returns the path of an address, decoded once.
func afterHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Path
}

// named judges owner/name as Gitea spells it.
func (w *view) named(full string) verdict {
	owner, repo, ok := fullName(full)
	// A name that cannot be read is of nothing that may be seen.
	if !ok || w.scope.repo(owner, repo) != "" {
		return denied
	}
	return allowed
}

// account judges the owner of something that no repository has. Such things show what an
// account has, so one of whom some repositories may be seen is enough.
func (w *view) account(name string) verdict {
	owner, ok := ownerName(name)
	if !ok || w.scope.account(owner) != "" {
		return denied
	}
	return allowed
}

// text returns a text member of an object.
func text(data []byte, name string) string { return jsonscan.Unquote(jsonscan.Member(data, name)) }

// drops reports whether a member names other repositories although the object
// may be seen: counts over all of them, and addresses of others.
func (w *view) drops(o *object, quoted, v []byte) bool {
	repository := o.fullName != "" && o.owner != nil
	switch string(quoted) {
	case `"starred_repos_count"`:
		return o.hasLogin
	// Forks and the other side of a transfer are repositories of others.
	case `"forks_count"`, `"repo_transfer"`:
		return repository
	case `"num_issues"`, `"num_open_issues"`, `"num_closed_issues"`:
		return !w.ofRepo || o.ofOwner
	case `"repo_count"`:
		return true
	case `"original_url"`, `"remote_address"`:
		return w.link(jsonscan.Unquote(v)) == denied
	// The old name of a repository that was renamed or moved.
	case `"content"`:
		return o.opType == "rename_repo" || o.opType == "transfer_repo"
	}
	return false
}

// link judges the address of another repository.
func (w *view) link(address string) verdict {
	if address == "" {
		return unknown
	}
	segments := strings.Split(strings.Trim(afterHost(address), "/"), "/")
	// Elsewhere, or somewhere in Gitea that is no repository: not shown, as it may show
	// a name.
	if len(segments) < 2 {
		return denied
	}
	return w.named(segments[len(segments)-2] + "/" + segments[len(segments)-1])
}
