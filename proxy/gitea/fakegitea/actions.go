package fakegitea

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// actionsOwner is what a repository, organisation, user or the instance has for
// its workflows.
type actionsOwner struct {
	secrets   []*secret
	variables []*variable
	runners   []*runner
	runs      []*run
	artifacts []*artifact
}

// secret is a secret; its value is kept but never shown.
type secret struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	CreatedAt   time.Time `json:"created_at"`
	data        string
}

// variable is a variable.
type variable struct {
	OwnerID     int64  `json:"owner_id"`
	RepoID      int64  `json:"repo_id"`
	Name        string `json:"name"`
	Data        string `json:"data"`
	Description string `json:"description"`
}

// runner is a registered runner.
type runner struct {
	ID        int64         `json:"id"`
	Name      string        `json:"name"`
	Status    string        `json:"status"`
	Busy      bool          `json:"busy"`
	Disabled  bool          `json:"disabled"`
	Ephemeral bool          `json:"ephemeral"`
	Labels    []runnerLabel `json:"labels"`
}

// runnerLabel is a label of a runner.
type runnerLabel struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// actionsAt finds the settings for workflows that a path is about: the repository's or
// the organisation's.
func (c *call) actionsAt() (o *actionsOwner, ownerID, repoID int64) {
	if c.repo != nil {
		return &c.repo.actions, 0, c.repo.ID
	}
	return &c.owner.actions, c.owner.ID, 0
}

// handleActionsConfig registers secrets, variables and runners.
func handleActionsConfig(t table) {
	for path, n := range map[string]need{"/repos/{owner}/{repo}": needAdmin, "/orgs/{org}": needOrgOwner} {
		p := path + "/actions"
		t.on("GET "+p+"/secrets", func(c *call) error {
			o, _, _ := c.actionsAt()
			return c.ok(linked(c, o.secrets))
		}, n)
		t.on("GET "+p+"/variables", func(c *call) error {
			o, _, _ := c.actionsAt()
			return c.ok(linked(c, o.variables))
		}, n)
		t.on("PUT "+p+"/secrets/{secretname}", putSecret, n)
		t.on("POST "+p+"/variables/{variablename}", createVariable, n)
	}
	const p = "/repos/{owner}/{repo}/actions"
	t.on("GET "+p+"/runners", func(c *call) error { return c.listRunners(c.repo.actions.runners) }, needAdmin)
	t.on("GET /admin/actions/runners", func(c *call) error { return c.listRunners(nil) }, needSiteAdmin)
}

// listRunners lists runners in the body's own form, without headers.
func (c *call) listRunners(all []*runner) error {
	return c.ok(obj{"runners", append([]*runner{}, all...), "total_count", len(all)})
}

// settingName is what a secret or variable may be called.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// goodName checks the name of a secret or variable and spells it as stored.
func goodName(name string) (string, error) {
	upper := strings.ToUpper(name)
	if !settingName.MatchString(name) || strings.HasPrefix(upper, "GITEA_") || strings.HasPrefix(upper, "GITHUB_") ||
		upper == "CI" {
		return "", fail(http.StatusBadRequest, "invalid variable or secret name")
	}
	return upper, nil
}

// putSecret creates a secret, 201, or replaces it, 204.
func putSecret(c *call) error {
	var in struct {
		Data        string `json:"data" binding:"Required"`
		Description string `json:"description"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	name, err := goodName(c.params["secretname"])
	if err != nil {
		return err
	}
	o, _, _ := c.actionsAt()
	if s, ok := find(o.secrets, func(s *secret) bool { return s.Name == name }); ok {
		s.data, s.Description = in.Data, in.Description
		return c.done()
	}
	o.secrets = append(o.secrets, &secret{name, in.Description, c.now, in.Data})
	return c.empty(http.StatusCreated)
}

// createVariable creates a variable that must not exist.
func createVariable(c *call) error {
	var in struct {
		Value       string `json:"value" binding:"Required"`
		Description string `json:"description"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	name, err := goodName(c.params["variablename"])
	if err != nil {
		return err
	}
	o, ownerID, repoID := c.actionsAt()
	if _, ok := find(o.variables, func(v *variable) bool { return v.Name == name }); ok {
		return fail(http.StatusConflict, "variable name %s already exists", name)
	}
	o.variables = append(o.variables, &variable{ownerID, repoID, name, in.Value, in.Description})
	return c.empty(http.StatusCreated)
}
