package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"aegis/config"
)

const (
	// keepMember is how long a person's organisations and teams are believed.
	keepMember = 2 * time.Minute
	// pageSize and maxPages bound the lists of one person: who is in more
	// organisations or teams is not recognised by those beyond.
	pageSize = 50
	maxPages = 40
	// maxMembers and maxNames bound the memory of all lists.
	maxMembers = 4096
	maxNames   = 100_000
)

// Member reports whether the user is one of p; an empty p means everybody. Logins are
// compared with the last one that Gitea gave (at the sign-in and at each refresh);
// organisations and teams are asked for with the user's own token and believed for two
// minutes, or until the next sign-in. A user whom Gitea has deactivated or forbidden to
// sign in is in no organisation or team. The error is an [*Error] as of
// [Gitea.Credential]; Config when the scopes do not reach.
func (g *Gitea) Member(ctx context.Context, userID int64, p config.People) (bool, error) {
	if p.Empty() {
		return true, nil
	}
	r, err := g.usable(ctx, userID)
	if err != nil {
		return false, err
	}
	// Logins cost no request, so they come first.
	if holds(p.Logins, r.login) {
		return true, nil
	}
	for _, list := range []struct {
		kind  kindOfList
		names []string
	}{{listTeams, p.Teams}, {listOrgs, p.Organizations}} {
		if len(list.names) == 0 {
			continue
		}
		have, err := g.names(ctx, userID, list.kind)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(list.names, func(n string) bool { return holds(have, n) }) {
			return true, nil
		}
	}
	return false, nil
}

// holds reports whether names has name; case does not matter in Gitea's names.
func holds(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// kindOfList is a list of Gitea's API.
type kindOfList string

const (
	listOrgs  kindOfList = "/api/v1/user/orgs"
	listTeams kindOfList = "/api/v1/user/teams"
)

// names returns the user's organisations, or teams as org/team.
func (g *Gitea) names(ctx context.Context, userID int64, kind kindOfList) ([]string, error) {
	if names, ok := g.members.get(userID, kind, g.o.Now()); ok {
		return names, nil
	}
	return join(ctx, g, string(kind), userID, func(ctx context.Context) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, g.pace.ask+g.pace.work)
		defer cancel()
		asked := g.o.Now()
		names, err := g.ask(ctx, userID, kind)
		if err == nil {
			g.members.put(userID, kind, names, asked.Add(keepMember))
		}
		return names, err
	})
}

// ask reads a list with the user's token. A token that Gitea refuses is renewed
// once.
func (g *Gitea) ask(ctx context.Context, userID int64, kind kindOfList) ([]string, error) {
	for again := true; ; again = false {
		cred, err := g.Credential(ctx, userID)
		if err != nil {
			return nil, err
		}
		names, status, err := g.pages(ctx, cred.Token.Secret(), kind)
		if status != http.StatusUnauthorized || !again {
			return names, err
		}
		if err := g.Rejected(ctx, userID, cred.Token); err != nil {
			return nil, err
		}
	}
}

// pages reads all pages of a list, up to the first that is empty.
func (g *Gitea) pages(ctx context.Context, token string, kind kindOfList) (names []string, status int, err error) {
	for page := 1; page <= maxPages; page++ {
		status, body, err := g.get(ctx, fmt.Sprintf("%s?page=%d&limit=%d", kind, page, pageSize), token)
		switch {
		case err != nil:
			return nil, status, unavailable(textDown, err)
		case status == http.StatusForbidden && lacksScope(body):
			return nil, status, misconfigured(textScopes, nil)
		case status == http.StatusForbidden:
			return nil, status, nil // barred
		case status != http.StatusOK:
			return nil, status, unavailable(textDown, &failure{status: status, what: "no list from Gitea's API"})
		}
		more, err := readNames(body, kind)
		if err != nil {
			return nil, status, unavailable(textDown, err)
		}
		if len(more) == 0 {
			break
		}
		names = append(names, more...)
	}
	return names, status, nil
}

// readNames reads one page of a list. A row without a usable name has the name
// "", which no configuration has.
func readNames(body []byte, kind kindOfList) ([]string, error) {
	type org struct {
		Name     string `json:"name"`
		Username string `json:"username"`
	}
	var rows []struct {
		org
		Organization org `json:"organization"`
	}
	err := json.Unmarshal(body, &rows)
	names := make([]string, len(rows))
	for i, row := range rows {
		of := cmp.Or(row.Organization.Name, row.Organization.Username)
		switch {
		case kind == listOrgs:
			names[i] = cmp.Or(row.Name, row.Username)
		case of != "" && row.Name != "":
			names[i] = of + "/" + row.Name
		}
	}
	if err != nil || len(names) > 10*pageSize {
		return nil, &failure{status: http.StatusOK, what: "the list makes no sense"}
	}
	return names, nil
}

// members remembers lists for a while.
type members struct {
	mu    sync.Mutex
	lists map[memberKey]memberList
	names int
}

type memberKey struct {
	id   int64
	kind kindOfList
}

type memberList struct {
	names []string
	until time.Time
}

func newMembers() *members { return &members{lists: map[memberKey]memberList{}} }

func (m *members) get(id int64, kind kindOfList, now time.Time) ([]string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.lists[memberKey{id, kind}]
	return l.names, ok && now.Before(l.until)
}

// put remembers a list. When there are too many they are all forgotten: they
// cost a request each to have again.
func (m *members) put(id int64, kind kindOfList, names []string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lists) >= maxMembers || m.names+len(names) > maxNames {
		clear(m.lists)
		m.names = 0
	}
	m.remove(memberKey{id, kind})
	m.lists[memberKey{id, kind}] = memberList{names, until}
	m.names += len(names)
}

// drop forgets a user's lists.
func (m *members) drop(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(memberKey{id, listOrgs})
	m.remove(memberKey{id, listTeams})
}

func (m *members) remove(k memberKey) {
	m.names -= len(m.lists[k].names)
	delete(m.lists, k)
}
