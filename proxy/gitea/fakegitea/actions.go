package fakegitea

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// actionsOwner is what a repository, organisation, user or the instance has for
// its workflows.
type actionsOwner struct {
	secrets   []*secret
	variables []*variable
	runners   []*runner
	token     string
	runs      []*run
}

// secret is a secret. Its value is kept, so that a test can see that it arrived, but no
// route shows it.
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

// level is one of the places where settings for workflows live. The same handlers
// serve all of them; only what a level lacks is left out when routes are registered.
type level struct {
	path string
	need need
	of   func(*call) (o *actionsOwner, ownerID, repoID int64)
}

// levels lists those places.
func levels() []level {
	return []level{
		{"/repos/{owner}/{repo}", needAdmin,
			func(c *call) (*actionsOwner, int64, int64) { return &c.repo.actions, 0, c.repo.ID }},
		{"/orgs/{org}", needOrgOwner,
			func(c *call) (*actionsOwner, int64, int64) { return &c.owner.actions, c.owner.ID, 0 }},
		{"/user", needToken, func(c *call) (*actionsOwner, int64, int64) { return &c.doer.actions, c.doer.ID, 0 }},
		{"/admin", needSiteAdmin, func(c *call) (*actionsOwner, int64, int64) { return &c.w.system, 0, 0 }},
	}
}

// handleActionsConfig registers secrets, variables and runners at every level.
func handleActionsConfig(t table) {
	for _, l := range levels() {
		p := l.path + "/actions"
		t.on("GET "+p+"/runners", l.with(listRunners), l.need)
		t.on("POST "+p+"/runners/registration-token", l.with(registrationToken), l.need)
		if l.path == "/admin" {
			continue
		}
		if l.path != "/user" { // the API has no list of a user's own secrets
			t.on("GET "+p+"/secrets",
				l.with(func(c *call, o *actionsOwner) error { return c.ok(linked(c, o.secrets)) }), l.need)
		}
		t.on("PUT "+p+"/secrets/{secretname}", l.with(readsFor(putSecret)), l.need)
		t.on("DELETE "+p+"/secrets/{secretname}", l.with(deleteSecret), l.need)
		t.on("GET "+p+"/variables",
			l.with(func(c *call, o *actionsOwner) error { return c.ok(linked(c, o.variables)) }), l.need)
		t.on("GET "+p+"/variables/{variablename}",
			l.withVariable(func(c *call, _ *actionsOwner, v *variable) error { return c.ok(v) }), l.need)
		t.on("POST "+p+"/variables/{variablename}", l.createVariable, l.need)
		t.on("PUT "+p+"/variables/{variablename}", l.withVariable(updateVariable), l.need)
		t.on("DELETE "+p+"/variables/{variablename}", l.withVariable(func(c *call, o *actionsOwner, v *variable) error {
			o.variables = without(o.variables, v)
			return c.done()
		}), l.need)
	}
}

// with hands the level's settings to f.
func (l level) with(f func(*call, *actionsOwner) error) handler {
	return func(c *call) error {
		o, _, _ := l.of(c)
		return f(c, o)
	}
}

// withVariable finds the variable of the path.
func (l level) withVariable(f func(*call, *actionsOwner, *variable) error) handler {
	return l.with(func(c *call, o *actionsOwner) error {
		v, ok := find(o.variables, func(v *variable) bool {
			return strings.EqualFold(v.Name, c.params["variablename"])
		})
		if !ok {
			return fail(http.StatusNotFound, "variable not found")
		}
		return f(c, o, v)
	})
}

// listRunners lists runners in the body's own form, without headers.
func listRunners(c *call, o *actionsOwner) error {
	return c.ok(obj{
		"runners", append([]*runner{}, o.runners...), "total_count", len(o.runners),
	})
}

// registrationToken hands out the token with which runners register; it stays
// the same until it is used.
func registrationToken(c *call, o *actionsOwner) error {
	if o.token == "" {
		o.token = randomHex(20)
	}
	return c.ok(map[string]string{"token": o.token})
}

// settingName is what a secret or variable may be called.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// goodName checks the name of a secret or variable and spells it as stored: in upper
// case. The prefixes that it refuses are those of variables that runners set.
func goodName(name string) (string, error) {
	upper := strings.ToUpper(name)
	if !settingName.MatchString(name) || strings.HasPrefix(upper, "GITEA_") || strings.HasPrefix(upper, "GITHUB_") ||
		upper == "CI" {
		return "", fail(http.StatusBadRequest, "invalid variable or secret name")
	}
	return upper, nil
}

// putSecretInput is the body of putSecret.
type putSecretInput struct {
	Data        string `json:"data" binding:"Required"`
	Description string `json:"description"`
}

// putSecret creates a secret, 201, or replaces it, 204.
func putSecret(c *call, o *actionsOwner, in *putSecretInput) error {
	name, err := goodName(c.params["secretname"])
	if err != nil {
		return err
	}
	if s, ok := find(o.secrets, func(s *secret) bool { return s.Name == name }); ok {
		s.data, s.Description = in.Data, in.Description
		return c.done()
	}
	o.secrets = append(o.secrets, &secret{name, in.Description, c.now, in.Data})
	return c.empty(http.StatusCreated)
}

// deleteSecret deletes a secret. The name is missing in the message of an unknown one,
// as on the real server.
func deleteSecret(c *call, o *actionsOwner) error {
	n := len(o.secrets)
	o.secrets = slices.DeleteFunc(o.secrets, func(s *secret) bool {
		return strings.EqualFold(s.Name, c.params["secretname"])
	})
	if len(o.secrets) == n {
		return fail(http.StatusNotFound, "secret was not found [name: ]")
	}
	return c.done()
}

// createVariable creates a variable that must not exist.
func (l level) createVariable(c *call) error {
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
	o, ownerID, repoID := l.of(c)
	if _, ok := find(o.variables, func(v *variable) bool { return v.Name == name }); ok {
		return fail(http.StatusConflict, "variable name %s already exists", name)
	}
	o.variables = append(o.variables, &variable{ownerID, repoID, name, in.Value, in.Description})
	return c.empty(http.StatusCreated)
}

// updateVariableInput is the body of updateVariable.
type updateVariableInput struct {
	Name        string  `json:"name"`
	Value       string  `json:"value" binding:"Required"`
	Description *string `json:"description"`
}

// updateVariable changes the value and, when it is given, the name.
func updateVariable(c *call, _ *actionsOwner, v *variable) error {
	var in updateVariableInput
	if err := c.bind(&in); err != nil {
		return err
	}
	if in.Name != "" {
		name, err := goodName(in.Name)
		if err != nil {
			return err
		}
		v.Name = name
	}
	v.Data = in.Value
	set(&v.Description, in.Description)
	return c.done()
}
