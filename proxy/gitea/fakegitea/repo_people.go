package fakegitea

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// handleRepoPeople registers collaborators, watchers, stars and topics.
func handleRepoPeople(t table) {
	const p = "/repos/{owner}/{repo}"
	t.on("GET "+p+"/collaborators", func(c *call) error {
		// Members of teams are none of them, whatever they may do.
		return c.ok(c.users(counted(c, c.collaborators())))
	}, needToken)
	t.on("PUT "+p+"/collaborators/{collaborator}", addCollaborator, needAdmin)
	t.on("GET "+p+"/collaborators/{collaborator}/permission", getPermission, needToken)
	// Assignees and reviewers are not paged.
	t.on("GET "+p+"/assignees", func(c *call) error { return c.ok(c.users(c.workers())) })
	t.on("GET "+p+"/reviewers", func(c *call) error { return c.ok(c.users(c.workers())) }, needToken)
	t.on("GET "+p+"/subscribers", func(c *call) error { return c.ok(c.users(linked(c, c.repo.Watchers))) })
	t.on("GET "+p+"/stargazers", func(c *call) error { return c.ok(c.users(linked(c, c.w.stargazers(c.repo)))) })
	t.on("GET "+p+"/subscription", getSubscription, needToken)
	t.on("PUT "+p+"/subscription", func(c *call) error {
		c.repo.Watchers = with(c.repo.Watchers, c.doer)
		return getSubscription(c)
	}, needToken)
	handleTopics(t)
}

// getSubscription answers how the caller watches; not at all is 404.
// The time is that of the repository, and ignoring a repository is not known here.
func getSubscription(c *call) error {
	if !slices.Contains(c.repo.Watchers, c.doer) {
		return errNotFound
	}
	return c.ok(obj{
		"subscribed", true, "ignored", false, "reason", nil, "created_at", c.repo.Created,
		"url", c.api(c.repo, "subscription"), "repository_url", c.api(c.repo),
	})
}

// collaborators lists the collaborators in the order of their ids.
func (c *call) collaborators() []*user {
	return filter(c.w.people(), func(u *user) bool { return c.repo.Collaborators[u.ID] > accessNone })
}

// workers lists who can be assigned: who may write, and the members of teams.
func (c *call) workers() []*user {
	return filter(c.w.people(), func(u *user) bool {
		return !u.Admin && (c.w.access(u, c.repo) >= accessWrite || c.w.isMember(c.repo.Owner, u)) ||
			u == c.repo.Owner ||
			c.repo.Collaborators[u.ID] > accessNone
	})
}

// addCollaborator adds or changes a collaborator; write is the default.
func addCollaborator(c *call) error {
	var in struct {
		Permission string `json:"permission" binding:"In(read,write,admin)"`
	}
	// The body may be left out altogether, which other PUT routes refuse for want of a content
	// type.
	if len(c.body) > 0 {
		if err := c.bind(&in); err != nil {
			return err
		}
	}
	u := c.w.userByLogin(c.params["collaborator"])
	if u == nil { // 422 here, 404 where the permission is read
		return errNoUser(http.StatusUnprocessableEntity, c.params["collaborator"])
	}
	level := accessWrite
	if in.Permission != "" {
		level = accessOf(in.Permission)
	}
	// A second PUT changes the level and may lower it.
	c.repo.Collaborators[u.ID] = level
	return c.done()
}

// getPermission answers the permission of a user; one's own, or anyone's to
// administrators.
func getPermission(c *call) error {
	u := c.w.userByLogin(c.params["collaborator"])
	if u == nil {
		return errNoUser(http.StatusNotFound, c.params["collaborator"])
	}
	if u != c.doer && c.perm < accessAdmin {
		return fail(http.StatusForbidden, "Only admins can query all permissions, "+
			"repo admins can query all repo permissions, collaborators can query only their own")
	}
	a := c.w.access(u, c.repo).String()
	return c.ok(obj{"permission", a, "role_name", a, "user", c.user(u)})
}

// topicPattern is what a topic may look like.
// At most 35 characters, after the name was trimmed and put in lower case.
var topicPattern = regexp.MustCompile(`^[a-z0-9][-.a-z0-9]{0,34}$`)

// handleTopics registers topics.
func handleTopics(t table) {
	const p = "/repos/{owner}/{repo}/topics"
	t.on("GET "+p, func(c *call) error {
		// The view of the repository has them in the order in which they were set.
		sorted := slices.Clone(c.repo.Topics)
		slices.Sort(sorted)
		return c.ok(map[string][]string{"topics": counted(c, sorted)})
	})
	t.on("PUT "+p, func(c *call) error {
		var in struct {
			Topics []string `json:"topics"`
		}
		if err := c.bind(&in); err != nil {
			return err
		}
		var good, bad []string
		for _, name := range in.Topics {
			name = strings.ToLower(strings.TrimSpace(name))
			if topicPattern.MatchString(name) {
				good = with(good, name)
			} else if name != "" {
				bad = append(bad, name)
			}
		}
		switch {
		case len(good)+len(bad) > 25:
			return c.badTopics(nil, "Exceeding maximum number of topics per repo")
		case len(bad) > 0:
			return c.badTopics(bad, "Topic names are invalid")
		}
		c.repo.Topics = good
		return c.done()
	}, needAdmin)
}

// badTopics is the one 422 with its own body.
// It has no url member, and invalidTopics is null when the count is wrong. The count is of
// valid names on the real server and of both kinds here.
func (c *call) badTopics(names any, message string) error {
	return c.json(http.StatusUnprocessableEntity, obj{"invalidTopics", names, "message", message})
}
