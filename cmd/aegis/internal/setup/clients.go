package setup

import "strings"

// clients are the MCP clients, as docs/clients.md lists them.
var clients = []mcpClient{
	{command: "claude", title: "Claude on the web, Desktop and mobile", hosted: true, tokenless: true, guide: claudeGuide},
	{command: "claude-code", title: "Claude Code", guide: claudeCodeGuide},
	{command: "chatgpt", title: "ChatGPT", hosted: true, tokenless: true, guide: chatGPTGuide},
	{command: "cursor", title: "Cursor", guide: cursorGuide},
	{command: "vscode", title: "Visual Studio Code", guide: vsCodeGuide},
	{command: "codex", title: "Codex CLI", guide: codexGuide},
	{command: "gemini", title: "Gemini CLI", guide: geminiGuide},
	{command: "opencode", title: "opencode", guide: openCodeGuide},
	{command: "inspector", title: "MCP Inspector", guide: inspectorGuide},
}

// exportToken says where the token comes from.
const exportToken = "The token comes from the environment variable " + tokenVariable + ": set it where the client is started, and keep it out of files that others read."

func claudeGuide(t target) guide {
	return guide{parts: []part{
		says("Open Settings, Connectors, and press Add custom connector. Give it a name and this address; the advanced settings stay empty:"),
		shell(t.url),
		says("Press Connect. The browser shows Aegis' page, then Gitea's. A connector that was added on the web is there in Desktop and on the phone too."),
	}}
}

func claudeCodeGuide(t target) guide {
	g := guide{file: &clientFile{path: ".mcp.json", lang: "json", keys: []string{"mcpServers"}, name: t.name,
		value: entry{{"type", `"http"`}, {"url", quoted(t.url)}}.withToken(t, "${"+tokenVariable+"}")}}
	if t.token {
		g.parts = []part{
			says("In a shell:"),
			shell("claude mcp add --transport http " + t.name + " " + t.url + ` --header "Authorization: Bearer $` + tokenVariable + `"`),
			says("Or, for everybody who works in a repository, in .mcp.json at its top:"), g.file.shown(), says(exportToken),
		}
		return g
	}
	g.after = "start Claude Code, type /mcp and sign in\n"
	g.parts = []part{
		says("In a shell:"),
		shell("claude mcp add --transport http " + t.name + " " + t.url),
		says("Or, for everybody who works in a repository, in .mcp.json at its top:"), g.file.shown(),
		says("Then type /mcp in Claude Code, choose " + t.name + ", and sign in."),
	}
	return g
}

func chatGPTGuide(t target) guide {
	return guide{parts: []part{
		says("Switch on developer mode in Settings, Apps & Connectors, Advanced settings. Then create an app (connector) with this MCP server URL and OAuth as its authentication; client id and secret stay empty:"),
		shell(t.url),
		says("ChatGPT opens Aegis' page, then Gitea's. In a workspace, an administrator may have to allow custom connectors first."),
	}}
}

func cursorGuide(t target) guide {
	g := guide{file: &clientFile{path: "~/.cursor/mcp.json", lang: "json", keys: []string{"mcpServers"}, name: t.name,
		value: pair("url", quoted(t.url)).withToken(t, "${env:"+tokenVariable+"}")}}
	g.parts = []part{says("In ~/.cursor/mcp.json, or .cursor/mcp.json of a project:"), g.file.shown()}
	if t.token {
		g.parts = append(g.parts, says(exportToken))
		return g
	}
	g.after = "in Cursor's settings, under MCP, press Connect beside it\n"
	g.parts = append(g.parts, says("Then open Cursor's settings, go to MCP, and press Connect beside "+t.name+"."))
	return g
}

func vsCodeGuide(t target) guide {
	f := &clientFile{path: ".vscode/mcp.json", lang: "json", keys: []string{"servers"}, name: t.name,
		value: entry{{"type", `"http"`}, {"url", quoted(t.url)}}.withToken(t, "${env:"+tokenVariable+"}")}
	g := guide{file: f, parts: []part{says("In .vscode/mcp.json of a project, or in the user's mcp.json (command MCP: Open User Configuration):"), f.shown()}}
	if t.token {
		g.parts = append(g.parts, says(exportToken))
		return g
	}
	g.after = "open the file in Visual Studio Code and press Start above the entry\n"
	g.parts = append(g.parts, says("Press Start above the entry. Visual Studio Code asks whether it may sign in, and opens the browser."))
	return g
}

func codexGuide(t target) guide {
	f := &clientFile{path: "~/.codex/config.toml", lang: "toml", name: t.name, toml: []string{"url = " + quoted(t.url)}}
	if t.token {
		f.toml = append(f.toml, "bearer_token_env_var = "+quoted(tokenVariable))
		return guide{file: f, parts: []part{says("In ~/.codex/config.toml:"), f.shown(), says(exportToken)}}
	}
	return guide{file: f, after: "now run: codex mcp login " + t.name + "\n", parts: []part{
		says("In ~/.codex/config.toml:"), f.shown(),
		says("Then sign in:"), shell("codex mcp login " + t.name),
		says("Versions 0.142 to 0.149 lose a parameter of the sign-in (iss) and fail; use a newer one, or set auth.oauth.advertise_issuer to false."),
	}}
}

func geminiGuide(t target) guide {
	f := &clientFile{path: "~/.gemini/settings.json", lang: "json", keys: []string{"mcpServers"}, name: t.name,
		value: pair("httpUrl", quoted(t.url)).withToken(t, "$"+tokenVariable)}
	g := guide{file: f, parts: []part{says("In ~/.gemini/settings.json, or .gemini/settings.json of a project:"), f.shown()}}
	if t.token {
		g.parts = append(g.parts, says(exportToken))
		return g
	}
	g.after = "start Gemini CLI and type: /mcp auth " + t.name + "\n"
	g.parts = append(g.parts, says("Start Gemini CLI and type:"), shell("/mcp auth "+t.name))
	return g
}

func openCodeGuide(t target) guide {
	f := &clientFile{path: "opencode.json", lang: "json", keys: []string{"mcp", "servers"}, name: t.name,
		value: entry{{"type", `"remote"`}, {"url", quoted(t.url)}}.withToken(t, "{env:"+tokenVariable+"}")}
	if t.token {
		f.value = append(f.value, pair("oauth", "false")...)
	}
	g := guide{file: f, parts: []part{says("In opencode.json of a project, or ~/.config/opencode/opencode.json; version 1 has the servers directly below mcp:"), f.shown()}}
	if t.token {
		g.parts = append(g.parts, says(exportToken))
		return g
	}
	g.after = "start opencode, type /mcps and sign in\n"
	g.parts = append(g.parts, says("Then type /mcps in opencode, choose "+t.name+", and sign in."))
	return g
}

func inspectorGuide(t target) guide {
	parts := []part{
		says("Start the Inspector, choose Streamable HTTP as the transport, and enter the address:"),
		shell("npx @modelcontextprotocol/inspector", "", t.url),
	}
	if t.token {
		return guide{parts: append(parts, says("Under Authentication, add the header Authorization with the value Bearer and your token."))}
	}
	return guide{parts: append(parts,
		says("Press Connect and sign in. Where the Inspector connects from the browser itself (connection type Direct), its origin must be allowed in the configuration:"),
		part{lang: "yaml", code: strings.Join([]string{"server:", "  allowed_origins: [http://localhost:6274]"}, "\n") + "\n"})}
}
