package setup

import (
	"slices"
	"strings"
)

// clients are the MCP clients, as docs/clients.md lists them. In texts, {name} and {url}
// stand for the server's, and {header} for what a command line needs for a static token.
var clients = []mcpClient{
	{command: "claude", title: "Claude on the web, Desktop and mobile", hosted: true, intro: []part{
		says("Open Settings, Connectors, and press Add custom connector. Give it a name and this address; the advanced settings stay empty:"),
		shell("{url}"),
		says("Press Connect. The browser shows Aegis' page, then Gitea's. A connector that was added on the web is there in Desktop and on the phone too."),
	}},
	{command: "claude-code", title: "Claude Code",
		intro: []part{
			says("In a shell:"),
			shell("claude mcp add --transport http {name} {url}{header}"),
			says("Or, for everybody who works in a repository, in .mcp.json at its top:"),
		},
		path: ".mcp.json", keys: []string{"mcpServers"}, members: `"type": "http", "url": "{url}"`,
		withToken: `, "headers": {"Authorization": "Bearer ${{token}}"}`,
		signIn:    []part{says("Then type /mcp in Claude Code, choose {name}, and sign in.")},
		after:     "start Claude Code, type /mcp and sign in\n"},
	{command: "chatgpt", title: "ChatGPT", hosted: true, intro: []part{
		says("Switch on developer mode in Settings, Apps & Connectors, Advanced settings. Then create an app (connector) with this MCP server URL and OAuth as its authentication; client id and secret stay empty:"),
		shell("{url}"),
		says("ChatGPT opens Aegis' page, then Gitea's. In a workspace, an administrator may have to allow custom connectors first."),
	}},
	{command: "cursor", title: "Cursor",
		intro: []part{says("In ~/.cursor/mcp.json, or .cursor/mcp.json of a project:")},
		path:  "~/.cursor/mcp.json", keys: []string{"mcpServers"}, members: `"url": "{url}"`,
		withToken: `, "headers": {"Authorization": "Bearer ${env:{token}}"}`,
		signIn:    []part{says("Then open Cursor's settings, go to MCP, and press Connect beside {name}.")},
		after:     "in Cursor's settings, under MCP, press Connect beside it\n"},
	{command: "vscode", title: "Visual Studio Code",
		intro: []part{says("In .vscode/mcp.json of a project, or in the user's mcp.json (command MCP: Open User Configuration):")},
		path:  ".vscode/mcp.json", keys: []string{"servers"}, members: `"type": "http", "url": "{url}"`,
		withToken: `, "headers": {"Authorization": "Bearer ${env:{token}}"}`,
		signIn:    []part{says("Press Start above the entry. Visual Studio Code asks whether it may sign in, and opens the browser.")},
		after:     "open the file in Visual Studio Code and press Start above the entry\n"},
	{command: "codex", title: "Codex CLI",
		intro: []part{says("In ~/.codex/config.toml:")},
		path:  "~/.codex/config.toml", members: "url = \"{url}\"\n", withToken: "bearer_token_env_var = \"{token}\"\n",
		signIn: []part{
			says("Then sign in:"), shell("codex mcp login {name}"),
			says("Versions 0.142 to 0.149 lose a parameter of the sign-in (iss) and fail; use a newer one, or set auth.oauth.advertise_issuer to false."),
		},
		after: "now run: codex mcp login {name}\n"},
	{command: "gemini", title: "Gemini CLI",
		intro: []part{says("In ~/.gemini/settings.json, or .gemini/settings.json of a project:")},
		path:  "~/.gemini/settings.json", keys: []string{"mcpServers"}, members: `"httpUrl": "{url}"`,
		withToken: `, "headers": {"Authorization": "Bearer ${token}"}`,
		signIn:    []part{says("Start Gemini CLI and type:"), shell("/mcp auth {name}")},
		after:     "start Gemini CLI and type: /mcp auth {name}\n"},
	{command: "opencode", title: "opencode",
		intro: []part{says("In opencode.json of a project, or ~/.config/opencode/opencode.json; version 1 has the servers directly below mcp:")},
		path:  "opencode.json", keys: []string{"mcp", "servers"}, members: `"type": "remote", "url": "{url}"`,
		withToken: `, "headers": {"Authorization": "Bearer {env:{token}}"}, "oauth": false`,
		signIn:    []part{says("Then type /mcps in opencode, choose {name}, and sign in.")},
		after:     "start opencode, type /mcps and sign in\n"},
	{command: "inspector", title: "MCP Inspector",
		intro: []part{
			says("Start the Inspector, choose Streamable HTTP as the transport, and enter the address:"),
			shell("npx @modelcontextprotocol/inspector", "", "{url}"),
		},
		token: []part{says("Under Authentication, add the header Authorization with the value Bearer and your token.")},
		signIn: []part{
			says("Press Connect and sign in. Where the Inspector connects from the browser itself (connection type Direct), its origin must be allowed in the configuration:"),
			{lang: "yaml", code: "server:\n  allowed_origins: [http://localhost:6274]\n"},
		}},
}

// exportToken says where the token comes from.
const exportToken = "The token comes from the environment variable " + tokenVariable +
	": set it where the client is started, and keep it out of files that others read."

// guide returns how the client is connected to t.
func (c mcpClient) guide(t target) guide {
	// With a static token there is nothing to sign in to.
	header, rest, after := "", c.signIn, c.after
	if t.token {
		header, rest, after = ` --header "Authorization: Bearer $`+tokenVariable+`"`, c.token, ""
		if rest == nil && c.path != "" {
			rest = []part{says(exportToken)}
		}
	}
	// Names and addresses hold nothing that a shell reads as something else
	// (checkServerName, clientTarget). In files, the address is quoted as JSON.
	fill := strings.NewReplacer("{name}", t.name, `"{url}"`, quoted(t.url), "{url}", t.url, "{header}", header,
		"{token}", tokenVariable)
	// The table is shared by all calls, so its slices are copied before they are filled
	// in.
	g := guide{parts: slices.Clone(c.intro), after: fill.Replace(after)}
	if c.path != "" {
		g.file = c.file(t, fill)
		g.parts = append(g.parts, g.file.shown())
	}
	g.parts = append(g.parts, rest...)
	for i, p := range g.parts {
		g.parts[i] = part{fill.Replace(p.says), p.lang, fill.Replace(p.code)}
	}
	return g
}

// file returns the client's file with the server alone. The same text is shown in the
// guide and written with --write.
func (c mcpClient) file(t target, fill *strings.Replacer) *clientFile {
	f := &clientFile{path: c.path, toml: c.keys == nil, name: t.name, keys: c.keys, value: c.members}
	if t.token {
		f.value += c.withToken
	}
	f.value = fill.Replace(f.value)
	return f
}
