package fakegitea

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// actionsOwner is what a repository or organisation has for its workflows. Those of a
// user are not in the demo.
type actionsOwner struct {
	secrets   []*secret
	variables []*variable
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

// variable is a variable. It is rendered as it is stored. One of the two owner ids is
// 0: which one tells a repository's variable from an organisation's.
type variable struct {
	OwnerID     int64  `json:"owner_id"`
	RepoID      int64  `json:"repo_id"`
	Name        string `json:"name"`
	Data        string `json:"data"`
	Description string `json:"description"`
}

// handleActionsConfig registers the secrets and variables of repositories and
// organisations.
func handleActionsConfig(t table) {
	// Gitea registers both paths by one function, with the same checks. No route here
	// needs an active repository: secrets of an archived one can be changed.
	for path, n := range map[string]need{"/repos/{owner}/{repo}": needAdmin, "/orgs/{org}": needOrgOwner} {
		secrets, variables := path+"/actions/secrets", path+"/actions/variables"
		t.on("GET "+secrets, func(c *call) error { return c.ok(linked(c, c.actions().secrets)) }, n)
		t.on("PUT "+secrets+"/{secretname}", reads(putSecret), n)
		t.on("DELETE "+secrets+"/{secretname}", deleteSecret, n)
		t.on("GET "+variables, func(c *call) error { return c.ok(linked(c, c.actions().variables)) }, n)
		one := variables + "/{variablename}"
		t.on("GET "+one, onVariable(func(c *call, v *variable) error { return c.ok(v) }), n)
		t.on("POST "+one, reads(createVariable), n)
		t.on("PUT "+one, onVariable(readsFor(updateVariable)), n)
		t.on("DELETE "+one, onVariable(func(c *call, v *variable) error {
			c.actions().variables = without(c.actions().variables, v)
			return c.done()
		}), n)
	}
}

// actions is what the repository or organisation of the path has for its workflows. A
// path with a repository has loaded its owner too, so the repository is asked for
// first.
func (c *call) actions() *actionsOwner {
	if c.repo != nil {
		return &c.repo.actions
	}
	return &c.owner.actions
}

// onVariable finds the variable of the path.
func onVariable(f func(*call, *variable) error) handler {
	return func(c *call) error {
		v, ok := find(c.actions().variables, func(v *variable) bool {
			// Names are stored in upper case and looked up in upper case, so any
			// spelling finds them.
			return strings.EqualFold(v.Name, c.params["variablename"])
		})
		if !ok {
			return fail(http.StatusNotFound, "variable not found")
		}
		return f(c, v)
	}
}

// settingName is what a secret or variable may be called.
var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// goodName checks the name of a secret or variable and returns it as stored: in upper
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

// putSecret creates a secret, 201, or replaces it, 204. Neither answer has a body. The
// body of the request was validated before the name of the path, so an empty one is 422
// even under a bad name, which is 400.
func putSecret(c *call, in *putSecretInput) error {
	name, err := goodName(c.params["secretname"])
	if err != nil {
		return err
	}
	o := c.actions()
	if s, ok := find(o.secrets, func(s *secret) bool { return s.Name == name }); ok {
		s.data, s.Description = in.Data, in.Description
		return c.done()
	}
	o.secrets = append(o.secrets, &secret{name, in.Description, c.now, in.Data})
	return c.empty(http.StatusCreated)
}

// deleteSecret deletes a secret. The name is missing in the message of an unknown one,
// as on the real server.
func deleteSecret(c *call) error {
	o := c.actions()
	s, ok := find(o.secrets, func(s *secret) bool { return strings.EqualFold(s.Name, c.params["secretname"]) })
	if !ok {
		return fail(http.StatusNotFound, "secret was not found [name: ]")
	}
	o.secrets = without(o.secrets, s)
	return c.done()
}

// variableInput is the body of a variable; a name in it renames.
type variableInput struct {
	Name        string  `json:"name"`
	Value       string  `json:"value" binding:"Required"`
	Description *string `json:"description"`
}

// createVariable creates a variable that must not exist.
func createVariable(c *call, in *variableInput) error {
	name, err := goodName(c.params["variablename"])
	if err != nil {
		return err
	}
	o := c.actions()
	if _, ok := find(o.variables, func(v *variable) bool { return v.Name == name }); ok {
		// Creating is POST and never replaces; changing is PUT and never creates. A
		// secret has PUT for both.
		return fail(http.StatusConflict, "variable name %s already exists", name)
	}
	v := &variable{Name: name, Data: in.Value}
	set(&v.Description, in.Description)
	if c.repo != nil {
		v.RepoID = c.repo.ID
	} else {
		v.OwnerID = c.owner.ID
	}
	o.variables = append(o.variables, v)
	return c.empty(http.StatusCreated)
}

// updateVariable changes the value and, when it is given, the name. The new name is not
// looked up among the others. A description that is left out stays.
func updateVariable(c *call, v *variable, in *variableInput) error {
	// A rename passes the same check as a new name, and is stored in upper case like
	// one.
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
