package gitea

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"

	"aegis/proxy"
)

// What Aegis asks Gitea for itself, to decide about a call.

const (
	factPage = "50"
	// maxFactPages bounds the lists: 5000 organizations or teams.
	maxFactPages = 100
)

// Memberships returns the organizations that a credential's user is in, and the
// teams as org/team, all in lower case. The credential needs the scopes read:user
// and read:organization. Errors are [*proxy.Error].
func (c *Client) Memberships(ctx context.Context, cred proxy.Credential) (orgs, teams []string, err error) {
	type org struct {
		Username string `json:"username"`
		Name     string `json:"name"`
	}
	name := func(o org) string { return strings.ToLower(cmp.Or(o.Username, o.Name)) }
	err = pages(ctx, c, "/user/orgs", cred, func(o org) { orgs = append(orgs, name(o)) })
	if err != nil {
		return nil, nil, err
	}
	err = pages(ctx, c, "/user/teams", cred, func(t struct {
		Name         string `json:"name"`
		Organization org    `json:"organization"`
	}) {
		teams = append(teams, name(t.Organization)+"/"+strings.ToLower(t.Name))
	})
	return orgs, teams, err
}

// pages reads a list of Gitea's to its end. A list that is cut short would keep somebody
// out who belongs in, so one without an end is an error.
func pages[T any](ctx context.Context, c *Client, path string, cred proxy.Credential, each func(T)) error {
	for page := 1; page <= maxFactPages; page++ {
		var rows []T
		query := "page=" + strconv.Itoa(page) + "&limit=" + factPage
		if err := c.ask(ctx, path, query, cred, &rows); err != nil {
			return err
		}
		// Not a short page: Gitea may make pages shorter than they are asked for.
		if len(rows) == 0 {
			return nil
		}
		for _, r := range rows {
			each(r)
		}
	}
	return proxy.NewError(proxy.KindUpstreamError, "Gitea's list of organizations or teams does not end", nil)
}

// RepoFacts says how much is in a repository, for a person who is to confirm what becomes
// of it, such as "214 open issues and pull requests, 2 forks". Errors are [*proxy.Error].
// With the caller's credential: a question must not show people more than Gitea would.
func (c *Client) RepoFacts(ctx context.Context, cred proxy.Credential, owner, repo string) (string, error) {
	var r struct {
		Issues   int64 `json:"open_issues_count"`
		Pulls    int64 `json:"open_pr_counter"`
		Releases int64 `json:"release_counter"`
		Forks    int64 `json:"forks_count"`
	}
	if err := c.ask(ctx, "/repos/"+url.PathEscape(owner)+"/"+url.PathEscape(repo), "", cred, &r); err != nil {
		return "", err
	}
	var parts []string
	for _, f := range []struct {
		n         int64
		one, many string
	}{
		{r.Issues, "open issue", "open issues"}, {r.Pulls, "open pull request", "open pull requests"},
		{r.Releases, "release", "releases"}, {r.Forks, "fork", "forks"},
	} {
		switch {
		case f.n == 1:
			parts = append(parts, "1 "+f.one)
		case f.n > 1:
			parts = append(parts, strconv.FormatInt(f.n, 10)+" "+f.many)
		}
	}
	return strings.Join(parts, ", "), nil
}
