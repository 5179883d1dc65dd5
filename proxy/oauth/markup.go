package oauth

import (
	"cmp"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"aegis/proxy/oauth/client"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/oauth/scope"
)

// The pages are built of components, which escape every text and attribute. The
// templates of the standard library would do it too, but they call methods by name,
// and for that the linker keeps every method of every package in the binary.

// address is where a page leads. Its scheme was checked before it became one.
type address string

// para is a paragraph of text.
func para(text string) g.Node { return h.P(g.Text(text)) }

func anchor(to, text string) g.Node { return h.A(h.Href(to), g.Text(text)) }

func actions(children ...g.Node) g.Node { return h.Div(h.Class("actions"), g.Group(children)) }

func warning(children ...g.Node) g.Node { return h.Div(h.Class("warn"), g.Group(children)) }

func tag(class, text string) g.Node { return h.Span(h.Class(class), g.Text(text)) }

// textIf returns nodes when there is a text.
func textIf(text string, nodes ...g.Node) g.Node { return g.If(text != "", g.Group(nodes)) }

// soft is text that is read second.
func soft(children ...g.Node) g.Node { return h.Span(h.Class("soft"), g.Group(children)) }

// softly is a paragraph of it.
func softly(children ...g.Node) g.Node { return h.P(h.Class("soft"), g.Group(children)) }

// hidden is a field of a form that the person does not see. It is not secret: what must not
// be changed in it is signed.
func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// form is one that is answered by this server: the policy of the page allows no other.
func form(action string, children ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(action), g.Group(children))
}

// button is one of several of a form: without scripts, its name and value alone say which
// was pressed.
func button(name, value, class string, children ...g.Node) g.Node {
	return h.Button(g.If(class != "", h.Class(class)), h.Name(name), h.Value(value), g.Group(children))
}

// document is a whole page.
func document(style string, v view) g.Node {
	main := h.Main(g.If(v.Wide, h.Class("wide")), brand(), v.Body)
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("robots"), h.Content("noindex")),
			g.If(v.Refresh != "", h.Meta(g.Attr("http-equiv", "refresh"), h.Content("0; url="+string(v.Refresh)))),
			h.TitleEl(g.Text(v.Title+" · Aegis")),
			h.StyleEl(g.Raw(style)), g.Text("\n"),
		),
		h.Body(main),
	))
}

// brand is the head of every page. It is drawn in place, as the policy allows no image.
func brand() g.Node {
	return h.P(h.Class("brand"),
		g.Raw(`<svg viewBox="0 0 24 24" aria-hidden="true">`+
			`<path d="M12 3 5 6v5c0 4.6 2.9 8.2 7 10 4.1-1.8 7-5.4 7-10V6z"/>`+
			`<path d="m9 11.5 2.2 2.2 4.3-4.2"/></svg>`),
		g.Text("Aegis for Gitea"))
}

// markup is a page that says what happened and what to do.
func (n *notice) markup() g.Node {
	var links []g.Node
	class := "button go"
	for _, l := range []*link{n.Help, n.Link} {
		if l != nil {
			links = append(links, h.A(h.Class(class), h.Href(string(l.URL)), g.Text(l.Text)))
			class = "button"
		}
	}
	return g.Group{
		h.H1(g.Text(n.Title)),
		g.Map(n.Text, para),
		g.If(len(links) > 0, actions(links...)),
		textIf(n.Hint, softly(g.Text(n.Hint))),
	}
}

// markup is the consent page.
func (v consentView) markup() g.Node {
	host, where := redirectHost(v.asked.RedirectURI)
	rows, writes := v.areas()
	return g.Group{
		h.H1(g.Text("Allow "), g.El("bdi", g.Text(displayName(v.client.Name))), g.Text(" to use Gitea as you?")),
		textIf(v.problem, warning(h.Role("alert"), para(v.problem))),
		trust(v.client),
		h.Div(h.Class("to"), soft(g.Text("After this, you are sent to")), h.Strong(g.Text(host)), soft(g.Text(where))),
		g.If(v.loopback(), warning(para("This client runs on your own computer. "+
			"Any program there can listen for its answer, so go on only if you started it a moment ago "+
			"and trust what runs on this computer."))),
		form(v.Action, h.AutoComplete("off"),
			hidden("request", v.form), hidden("token", v.Token),
			h.FieldSet(h.Legend(g.Text("What may it do, with your rights?")),
				v.option(chooseAll, g.Text("Everything it asks for")),
				g.If(writes, v.option(chooseRead, g.Text("Only read "), soft(g.Text("– it changes nothing")))),
				v.option(choosePick, g.Text("Let me choose")),
			),
			h.Ul(h.Class("areas"), rows),
			actions(button("say", sayAllow, "go", g.Text("Allow")), button("say", sayDeny, "", g.Text("Deny"))),
		),
		softly(g.Text("If you allow it, "+v.Gitea+" asks you to sign in next. You can take this back at any time on "),
			anchor(v.Account, "your page of connected clients"), g.Text(".")),
		h.Details(h.Summary(g.Text("Details")), h.Dl(
			detail("Client", v.client.ID), detail("Address that gets the answer", v.asked.RedirectURI),
			detail("Endpoint", v.asked.Resource),
		)),
	}
}

// trust says how much is known of a client. A document proves who describes it, and
// anybody can publish one.
func trust(c *client.Client) g.Node {
	class, what := "tag bad", "not verified"
	says := "The name is the client's own word. Allow it only if you have just started this yourself."
	switch c.Kind {
	case client.Static:
		class, what, says = "tag", "known client", "Named by whoever runs this server"
	case client.Document:
		what = "Described by " + c.Host
		says = "Anybody can publish such a description, under any name. " +
			"Allow it only if you know this host and have just started this yourself."
	}
	return h.P(tag(class, what), g.Text(" "), soft(g.Text(says)))
}

// option is one of the ways to narrow what a client gets.
func (v consentView) option(value string, words ...g.Node) g.Node {
	return h.Label(h.Class("choice"),
		h.Input(h.Type("radio"), h.Name("access"), h.Value(value), h.ID("access-"+value),
			g.If(cmp.Or(v.choice.How, chooseAll) == value, h.Checked())),
		h.Span(g.Group(words)))
}

// detail is an identifier as it was sent, for people who want to compare it.
func detail(term, value string) g.Node {
	return g.Group{h.Dt(g.Text(term)), h.Dd(h.Code(g.Text(value)))}
}

// areas are the parts of Gitea that a client wants, each with how much of it; writes:
// reading only would leave something out.
func (v consentView) areas() (rows g.Group, writes bool) {
	for i, most := range scope.Of(v.asked.Scopes) {
		if most == scope.None {
			continue
		}
		picked := most
		if v.choice.How == choosePick {
			picked = min(most, v.choice.Picked[i])
		}
		rows = append(rows, areas[i].markup(scope.Area(i), most, picked))
		writes = writes || most == scope.Write
	}
	return rows, writes
}

// markup is one part of Gitea, of which a client can get up to most.
func (a area) markup(name string, most, picked scope.Level) g.Node {
	says := soft(g.Text(a.Read))
	if most == scope.Write {
		says = g.Group{tag("soft full", a.Write), tag("soft less", a.Read)}
	}
	option := func(l scope.Level, value, words string) g.Node {
		return h.Option(h.Value(value), g.If(picked == l, h.Selected()), g.Text(words))
	}
	return h.Li(h.Class("row"),
		h.Div(h.Strong(g.Text(a.Title)),
			g.If(a.Risky, g.Group{g.Text(" "), tag("tag bad", "sensitive")}), h.Br(), says),
		h.Select(h.Class("pick"), h.Name("area."+name), h.Aria("label", a.Title),
			g.If(most == scope.Write, option(scope.Write, "write", "read and change")),
			option(scope.Read, "read", "read only"), option(scope.None, "none", "nothing")))
}

// markup is the page of connected clients.
func (v accountView) markup() g.Node {
	if v.Login == "" {
		return g.Group{
			h.H1(g.Text("Connected clients")),
			para("Sign in to see which MCP clients may use Gitea as you, and to disconnect them."),
			v.form(actions(button("do", actSignIn, "go", g.Text("Sign in with Gitea")))),
		}
	}
	return g.Group{
		h.H1(g.Text("Connected clients")),
		h.Div(h.Class("row"), h.P(g.Text("Signed in as "), h.Strong(g.Text(v.Login))),
			v.form(h.Class("inline"), button("do", actSignOut, "small", g.Text("Sign out")))),
		g.If(len(v.Codes) > 0, g.Group{
			h.H2(g.Text("Waiting for your confirmation")),
			softly(g.Text("An agent asked to do this. Give it the code only if you want it done.")),
			g.Map(v.Codes, PendingCode.markup),
		}),
		h.H2(g.Text("Your clients")),
		v.mine(),
		softly(g.Text("When no client is left, Aegis forgets its access to your Gitea account. "+
			"To take back the permission itself, revoke Aegis in Gitea under "),
			anchor(v.RevokeURL, "Settings, Applications"), g.Text(".")),
		g.If(v.Admin, v.others()),
	}
}

// form is one that sends its children and the token to the page itself.
func (v accountView) form(children ...g.Node) g.Node {
	return form(v.Action, hidden("token", v.Token), g.Group(children))
}

// mine are the clients of the person who is signed in.
func (v accountView) mine() g.Node {
	if len(v.Mine) == 0 {
		return para("None. A client appears here once you have allowed it.")
	}
	return g.Group{
		g.Map(v.Mine, v.client),
		v.form(actions(button("do", actRevokeAll, "", g.Text("Disconnect all of them")))),
	}
}

// others are those of everybody else, for admins.
func (v accountView) others() g.Node {
	return g.Group{
		h.H2(g.Text("Everybody else's clients")),
		g.If(len(v.Others) == 0, para("None.")),
		g.Map(v.Others, v.client),
		g.If(v.More, softly(g.Text("There are more. The command line lists all of them."))),
	}
}

// client is one connected client.
func (v accountView) client(one grant.Grant) g.Node {
	known := tag("tag bad", "not verified")
	switch {
	case strings.HasPrefix(one.ClientID, "https://"): // described by a document there
		known = tag("tag", "described by "+hostOf(one.ClientID))
	case one.Verified:
		known = tag("tag", "known client")
	}
	used := "never"
	if !one.LastUsed.IsZero() {
		used = moment(one.LastUsed)
	}
	name := displayName(one.ClientName)
	return h.Div(h.Class("client"), h.Div(h.Class("row"),
		h.Div(
			h.H3(g.El("bdi", g.Text(name)), g.Text(" "), known),
			g.If(one.UserID != v.userID, h.P(g.Text("of "), h.Strong(g.Text(one.Login)))),
			h.Ul(h.Class("plain soft"), describe(one.Scopes)),
			softly(g.Text("Connected "+day(one.Created)+", last used "+used)),
		),
		v.form(h.Class("inline"), hidden("id", one.ID),
			button("do", actRevoke, "small", g.Text("Disconnect"), h.Span(h.Class("unseen"), g.Text(" "+name)))),
	))
}

// describe says in plain words what scopes permit, for /account.
func describe(scopes []string) (list g.Group) {
	for i, l := range scope.Of(scopes) {
		switch l {
		case scope.Read:
			list = append(list, h.Li(g.Text(areas[i].Title+": read")))
		case scope.Write:
			list = append(list, h.Li(g.Text(areas[i].Title+": read and change")))
		}
	}
	return list
}

// markup is a call that waits for its code.
func (p PendingCode) markup() g.Node {
	return h.Div(h.Class("client"), h.P(h.Class("code"), g.Text(p.Code)), h.P(g.Text(p.Summary)),
		softly(h.Code(g.Text(p.Tool)), g.Text(" · until "+moment(p.Expires))))
}
