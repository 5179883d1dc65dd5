package giteatest

import (
	"bytes"
	"html/template"
	"net/http"
)

// layout frames every page. Nothing on them needs JavaScript.
const layout = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>{{.Title}}</title>
<style>
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
</style>
</head>
<body>
<header><a href="{{.Link}}/">Gitea double</a></header>
<main>
<h1>{{.Title}}</h1>
{{template "body" .}}
</main>
</body>
</html>
`

// The pages. The names of forms and fields are those of the real server.
var (
	loginPage = parsePage(`
{{if .Data.Wrong}}<p class="bad" role="alert">Username or password is incorrect.</p>{{end}}
<form action="{{.Link}}/user/login" method="post">
<label for="user_name">Username or email address</label>
<input id="user_name" type="text" name="user_name" value="{{.Data.Name}}" autocomplete="username" autofocus required>
<label for="password">Password</label>
<input id="password" type="password" name="password" autocomplete="current-password" required>
<p class="row"><button class="main" type="submit">Sign in</button></p>
</form>`)

	prohibitedPage = parsePage(`
<p>Your account is prohibited from signing in. Ask your site administrator.</p>
<p><a href="{{.Link}}/user/logout">Sign out</a></p>`)

	failedPage = parsePage(`
<p class="bad" role="alert">{{.Data}}</p>
<p>The request of the application is not valid. Ask whoever runs the application.</p>`)

	grantPage = parsePage(`
{{with .Data}}
<p><b>{{.App}}</b>{{if .By}}, registered by @{{.By}},{{end}} asks for access to your account.</p>
{{if .Everything}}<p class="bad">It will be able to read and write everything that you can, private repositories and organizations included.</p>{{end}}
<p>With scopes: <b>{{.Scope}}</b></p>
<p>You will be sent to <code>{{.RedirectURI}}</code></p>
<form method="post" action="{{$.Link}}/login/oauth/grant">
<input type="hidden" name="client_id" value="{{.ClientID}}">
<input type="hidden" name="state" value="{{.State}}">
<input type="hidden" name="scope" value="{{.Scope}}">
<input type="hidden" name="nonce" value="{{.Nonce}}">
<input type="hidden" name="redirect_uri" value="{{.RedirectURI}}">
<p class="row">
<button class="main" type="submit" id="authorize-app" name="granted" value="true">Authorize application</button>
<button type="submit" name="granted" value="false">Cancel</button>
</p>
</form>
{{end}}`)

	applicationsPage = parsePage(`
<p>Applications that may use the account of <b>{{.Data.Login}}</b>:</p>
{{if .Data.Rows}}<ul>
{{range .Data.Rows}}<li><b>{{.App}}</b>, since {{.Since}}<br>
{{if .Everything}}Everything{{if .Scope}} (asked as <code>{{.Scope}}</code>){{end}}{{else}}<code>{{.Scope}}</code>{{end}}
<form method="post" action="{{.Revoke}}"><button type="submit">Revoke</button></form></li>
{{end}}</ul>{{else}}<p>None.</p>{{end}}`)

	homePage = parsePage(`
<p>This is a double of a Gitea server: it answers the API, and has pages for signing in only.</p>
{{if .Data}}<p>You are signed in as <b>{{.Data}}</b>.</p>
<ul><li><a href="{{.Link}}/user/settings/applications">Applications</a></li><li><a href="{{.Link}}/user/logout">Sign out</a></li></ul>
{{else}}<p><a href="{{.Link}}/user/login">Sign in</a></p>{{end}}`)
)

// parsePage compiles a page within the layout.
func parsePage(body string) *template.Template {
	return template.Must(template.Must(template.New("page").Parse(layout)).New("body").Parse(body)).Lookup("page")
}

// page answers a page.
func (c *call) page(status int, t *template.Template, title string, data any) {
	var buf bytes.Buffer
	err := t.Execute(&buf, struct {
		Title, Link string
		Data        any
	}{title, c.link(), data})
	if err != nil {
		c.plain(http.StatusInternalServerError, "Internal Server Error\n")
		return
	}
	c.out.header.Set("Content-Type", "text/html; charset=utf-8")
	c.out.status = status
	c.out.body.Write(buf.Bytes())
}
