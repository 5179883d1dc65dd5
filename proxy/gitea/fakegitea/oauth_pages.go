package fakegitea

import (
	"bytes"
	"net/http"

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

func (c *call) loginPage(f loginForm) {
	c.page("Sign in",
		g.If(f.Wrong, h.P(h.Class("bad"), h.Role("alert"), g.Text("Username or password is incorrect."))),
		h.Form(h.Action(c.link()+"/user/login"), h.Method("post"),
			h.Label(h.For("user_name"), g.Text("Username or email address")),
			h.Input(h.ID("user_name"), h.Type("text"), h.Name("user_name"), h.Value(f.Name),
				h.AutoComplete("username"), h.AutoFocus(), h.Required()),
			h.Label(h.For("password"), g.Text("Password")),
			h.Input(h.ID("password"), h.Type("password"), h.Name("password"), h.AutoComplete("current-password"),
				h.Required()),
			h.P(h.Class("row"), h.Button(h.Class("main"), h.Type("submit"), g.Text("Sign in")))))
}

func (c *call) prohibitedPage() {
	c.page("Sign-In Prohibited",
		h.P(g.Text("Your account is prohibited from signing in. Ask your site administrator.")),
		h.P(h.A(h.Href(c.link()+"/user/logout"), g.Text("Sign out"))))
}

func (c *call) failedPage(why string) {
	c.page("Authorization failed",
		h.P(h.Class("bad"), h.Role("alert"), g.Text(why)),
		h.P(g.Text("The request of the application is not valid. Ask whoever runs the application.")))
	c.out.status = http.StatusBadRequest
}

func (c *call) grantPage(d consent) {
	by := " asks for access to your account."
	if d.By != "" {
		by = ", registered by @" + d.By + "," + by
	}
	hidden := func(name, value string) g.Node { return h.Input(h.Type("hidden"), h.Name(name), h.Value(value)) }
	c.page("Authorize "+d.App,
		h.P(h.B(g.Text(d.App)), g.Text(by)),
		g.If(d.Everything, h.P(h.Class("bad"), g.Text("It will be able to read and write everything that you can, "+
			"private repositories and organizations included."))),
		h.P(g.Text("With scopes: "), h.B(g.Text(d.Scope))),
		h.P(g.Text("You will be sent to "), h.Code(g.Text(d.RedirectURI))),
		h.Form(h.Method("post"), h.Action(c.link()+"/login/oauth/grant"),
			hidden("client_id", d.ClientID), hidden("state", d.State), hidden("scope", d.Scope), hidden("nonce",
				d.Nonce), hidden("redirect_uri", d.RedirectURI),
			h.P(h.Class("row"),
				h.Button(h.Class("main"), h.Type("submit"), h.ID("authorize-app"), h.Name("granted"), h.Value("true"),
					g.Text("Authorize application")),
				h.Button(h.Type("submit"), h.Name("granted"), h.Value("false"), g.Text("Cancel")))))
}

func (c *call) applicationsPage(login string, rows []grantRow) {
	list := h.P(g.Text("None."))
	if len(rows) > 0 {
		list = h.Ul(g.Map(rows, func(r grantRow) g.Node {
			scope := g.Node(h.Code(g.Text(r.Scope)))
			if r.Everything {
				scope = g.Text("Everything")
				if r.Scope != "" {
					scope = g.Group{g.Text("Everything (asked as "), h.Code(g.Text(r.Scope)), g.Text(")")}
				}
			}
			return h.Li(h.B(g.Text(r.App)), g.Text(", since "+r.Since), h.Br(), scope,
				h.Form(h.Method("post"), h.Action(r.Revoke), h.Button(h.Type("submit"), g.Text("Revoke"))))
		}))
	}
	c.page("Applications", h.P(g.Text("Applications that may use the account of "), h.B(g.Text(login)), g.Text(":")),
		list)
}

func (c *call) homePage(login string) {
	links := g.Node(h.P(h.A(h.Href(c.link()+"/user/login"), g.Text("Sign in"))))
	if login != "" {
		links = g.Group{h.P(g.Text("You are signed in as "), h.B(g.Text(login)), g.Text(".")), h.Ul(
			h.Li(h.A(h.Href(c.link()+"/user/settings/applications"), g.Text("Applications"))),
			h.Li(h.A(h.Href(c.link()+"/user/logout"), g.Text("Sign out"))))}
	}
	const what = "This is a double of a Gitea server: it answers the API, and has pages for signing in only."
	c.page("Gitea double", h.P(g.Text(what)), links)
}

// page answers a page, with status 200.
func (c *call) page(title string, body ...g.Node) {
	var buf bytes.Buffer
	err := h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
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
