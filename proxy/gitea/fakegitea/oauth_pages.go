package fakegitea

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// style is that of every page. Nothing on them needs JavaScript.
const style = `
body { margin: 0; background: #f3f4f1; color: #24292b; font: 16px/1.5 system-ui, sans-serif }
header { background: #fff; border-bottom: 1px solid #dcdfd8; padding: .7rem 1.2rem; font-weight: 600 }
header a { color: #4c8a2b; text-decoration: none }
main { max-width: 30rem; margin: 2rem auto; padding: 1.2rem 1.6rem; background: #fff; border: 1px solid #dcdfd8; border-radius: 8px }
h1 { font-size: 1.25rem; margin: .2rem 0 1rem }
label { display: block; margin: .8rem 0 .2rem }
input { width: 100%; box-sizing: border-box; font: inherit; padding: .45rem; border: 1px solid #b9beb4; border-radius: 5px }
button { font: inherit; padding: .45rem 1rem; border: 1px solid #b9beb4; border-radius: 5px; background: #fff; cursor: pointer }
button.main { background: #4c8a2b; border-color: #4c8a2b; color: #fff }
.row { display: flex; gap: .6rem; margin-top: 1.2rem }
.bad { background: #fdecea; border: 1px solid #e6a9a3; border-radius: 5px; padding: .5rem .8rem }
code { overflow-wrap: anywhere }
li { margin-bottom: 1rem }
`

// The pages. The names of forms and fields are those of the real server.

// Tests fill them in by these names, and so does a person's password manager. There is no CSRF
// field on any of them: Gitea refuses posts of other sites by the headers that browsers add.
func (c *call) loginPage(name string, wrong bool) {
	c.page("Sign in",
		g.If(wrong, h.P(h.Class("bad"), h.Role("alert"), g.Text("Username or password is incorrect."))),
		h.Form(h.Action(c.link()+"/user/login"), h.Method("post"),
			h.Label(h.For("user_name"), g.Text("Username or email address")),
			h.Input(h.ID("user_name"), h.Type("text"), h.Name("user_name"), h.Value(name), h.AutoComplete("username"),
				h.AutoFocus(), h.Required()),
			h.Label(h.For("password"), g.Text("Password")),
			h.Input(h.ID("password"), h.Type("password"), h.Name("password"), h.AutoComplete("current-password"),
				h.Required()),
			h.P(h.Class("row"), h.Button(h.Class("main"), h.Type("submit"), g.Text("Sign in")))))
}

// prohibitedPage is all that a barred user gets, with status 200. A program that expects JSON
// and reads the status alone takes it for a success.
func (c *call) prohibitedPage() {
	c.page("Sign-In Prohibited",
		h.P(g.Text("Your account is prohibited from signing in. Ask your site administrator.")),
		h.P(h.A(h.Href(c.link()+"/user/logout"), g.Text("Sign out"))))
}

// failedPage is for requests that must not be answered by a redirect.
func (c *call) failedPage(why string) {
	c.page("Authorization failed",
		h.P(h.Class("bad"), h.Role("alert"), g.Text(why)),
		h.P(g.Text("The request of the application is not valid. Ask whoever runs the application.")))
	c.out.status = http.StatusBadRequest
}

// grantPage asks for consent. The challenge is not among its fields: it stays in the session.
func (c *call) grantPage(a *authorization) {
	by := " asks for access to your account."
	if a.app.user != nil { // without one it is the instance's
		by = ", registered by @" + a.app.user.Login + "," + by
	}
	hidden := func(name, value string) g.Node { return h.Input(h.Type("hidden"), h.Name(name), h.Value(value)) }
	c.page("Authorize "+a.app.Name,
		h.P(h.B(g.Text(a.app.Name)), g.Text(by)),
		// The warning is for scopes that Gitea does not know, which look narrow and grant
		// everything.
		g.If(grantScopes(a.scope).all, h.P(h.Class("bad"), g.Text("It will be able to read and write everything that "+
			"you can, private repositories and organizations included."))),
		h.P(g.Text("With scopes: "), h.B(g.Text(a.scope))),
		h.P(g.Text("You will be sent to "), h.Code(g.Text(a.redirectURI))),
		h.Form(h.Method("post"), h.Action(c.link()+"/login/oauth/grant"),
			hidden("client_id", a.app.ClientID), hidden("state", a.state), hidden("scope", a.scope),
			hidden("redirect_uri", a.redirectURI),
			h.P(h.Class("row"),
				h.Button(h.Class("main"), h.Type("submit"), h.ID("authorize-app"), h.Name("granted"), h.Value("true"),
					g.Text("Authorize application")),
				h.Button(h.Type("submit"), h.Name("granted"), h.Value("false"), g.Text("Cancel")))))
}

// applicationsPage lists what the person allowed, each with a button that takes it back.
func (c *call) applicationsPage(mine []*oauthGrant) {
	c.page("Applications",
		h.P(g.Text("Applications that may use the account of "), h.B(g.Text(c.doer.Login)), g.Text(":")),
		g.If(len(mine) == 0, h.P(g.Text("None."))),
		h.Ul(g.Map(mine, func(m *oauthGrant) g.Node {
			action := fmt.Sprintf("%s/user/settings/applications/oauth2/%d/revoke/%d", c.link(), m.app.ID, m.id)
			return h.Li(h.B(g.Text(m.app.Name)), g.Text(", since "+m.created.Format(time.DateOnly)), h.Br(),
				g.If(grantScopes(m.scope).all, g.Text("Everything, asked as ")), h.Code(g.Text(m.scope)),
				h.Form(h.Method("post"), h.Action(action), h.Button(h.Type("submit"), g.Text("Revoke"))))
		})))
}

// homePage is where a login without a target ends.
func (c *call) homePage() {
	links := g.Node(h.P(h.A(h.Href(c.link()+"/user/login"), g.Text("Sign in"))))
	if c.doer != nil {
		links = g.Group{h.P(g.Text("You are signed in as "), h.B(g.Text(c.doer.Login)), g.Text(".")), h.Ul(
			h.Li(h.A(h.Href(c.link()+"/user/settings/applications"), g.Text("Applications"))),
			h.Li(h.A(h.Href(c.link()+"/user/logout"), g.Text("Sign out"))))}
	}
	const what = "This is a double of a Gitea server: it answers the API, and has pages for signing in only."
	c.page("Gitea double", h.P(g.Text(what)), links)
}

// page answers a page, with status 200.
// Callers that need another status set it afterwards.
func (c *call) page(title string, body ...g.Node) {
	var buf bytes.Buffer
	err := h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			// The address of the consent page has the state and the challenge in it, which are
			// nobody else's business.
			h.Meta(h.Name("referrer"), h.Content("same-origin")),
			h.TitleEl(g.Text(title)),
			h.StyleEl(g.Raw(style)),
		),
		h.Body(
			h.Header(h.A(h.Href(c.link()+"/"), g.Text("Gitea double"))),
			h.Main(h.H1(g.Text(title)), g.Group(body)),
		),
	)).Render(&buf)
	if err != nil {
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	c.out.header.Set("Content-Type", "text/html; charset=utf-8")
	c.out.status = http.StatusOK
	c.out.body.Write(buf.Bytes())
}
