package mcp_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"aegis/proxy/mcp"
)

// author writes requests, most of them right, many nearly.
type author struct{ *rand.Rand }

func (a author) of(s ...string) string { return s[a.IntN(len(s))] }

// rarely is true once in n times.
func (a author) rarely(n int) bool { return a.IntN(n) == 0 }

func (a author) pad() string {
	if a.rarely(12) {
		return a.of(" ", "\n", "\t", "\r\n  ")
	}
	return ""
}

// object joins members in any order, some of them twice.
func (a author) object(members ...string) string {
	var out []string
	for _, m := range members {
		if m != "" {
			out = append(out, m)
		}
		if m != "" && a.rarely(150) {
			out = append(out, m)
		}
	}
	a.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return a.pad() + "{" + strings.Join(out, a.pad()+","+a.pad()) + a.pad() + "}"
}

func (a author) member(name, value string) string {
	if a.rarely(250) {
		name = a.of(strings.ToUpper(name), `\u0061`+name, name+" ", name+`\u0000`, "")
	}
	return `"` + name + `"` + a.pad() + ":" + a.pad() + value
}

// odd is any value, most of them wrong where they stand.
func (a author) odd() string {
	return a.of("null", "true", "0", "-0", "1e3", "1.5", "1e999", "123456789012345678", `""`, `"x"`, `"a\u0062"`, `"ü"`, "[]", "{}", `[1,"a",null]`,
		`{"a":{"b":[{"c":{}}]}}`, `{"x\n":1}`, `[[[[[[[[[[1]]]]]]]]]]`, `{"n":1e400}`, `"\ud800"`, strings.Repeat("[", 40)+strings.Repeat("]", 40))
}

func (a author) maybe(n int, value string) string {
	if a.rarely(n) {
		return a.odd()
	}
	return value
}

func (a author) capabilities() string {
	return a.of("{}", "{}", "{ }", `{"elicitation":{}}`, `{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`, `{"sampling":{"tools":{}}}`,
		`{"sampling":{"context":{}},"roots":{}}`, `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`, `{"experimental":{"x":1}}`,
		`{"tasks":{}}`, `{"elicitation":`+a.odd()+`}`, `{"roots":{"listChanged":`+a.odd()+`}}`, `{"elicitation":{"form":`+a.odd()+`}}`, `{"sampling":{"tools":`+a.odd()+`}}`, `{"sampling":`+a.odd()+`}`, `{"extensions":`+a.odd()+`}`, a.odd())
}

func (a author) meta(version string) string {
	var m []string
	if version == current && !a.rarely(40) || a.rarely(60) {
		v := version
		if a.rarely(40) {
			v = a.of("2025-11-25", "2026-07-28", "2027-01-01", "")
		}
		m = append(m, a.member("io.modelcontextprotocol/protocolVersion", a.maybe(60, `"`+v+`"`)))
	}
	if version == current && !a.rarely(40) || a.rarely(80) {
		m = append(m, a.member("io.modelcontextprotocol/clientCapabilities", a.capabilities()))
	}
	if version == current && !a.rarely(8) || a.rarely(80) {
		m = append(m, a.member("io.modelcontextprotocol/clientInfo", a.of(`{"name":"probe","version":"1.2"}`, `{"name":"pröbe ","version":"1.2","title":"T","websiteUrl":"https://x"}`,
			`{"name":"a\tb","version":"1"}`, `{"name":"x"}`, `{}`, `{"name":1,"version":"1"}`, `{"name":"x","version":"1","icons":[]}`, `{"name":"x","version":null}`, a.odd())))
	}
	if a.rarely(6) {
		m = append(m, a.member("progressToken", a.of("1", `"p"`, a.odd())))
	}
	if a.rarely(6) {
		m = append(m, a.member("traceparent", a.of(`"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `"`+strings.Repeat("0", 130)+`"`, a.odd())),
			a.member("tracestate", a.of(`"a=b"`, `"`+strings.Repeat("s", 513)+`"`, a.odd())))
	}
	if a.rarely(8) {
		m = append(m, a.member(a.of("vendor/tool", "io.modelcontextprotocol/logLevel", "io.modelcontextprotocol/other", "x"), a.of(`"debug"`, `{"a":[1,2]}`, a.odd())))
	}
	if len(m) == 0 && !a.rarely(20) {
		return ""
	}
	return a.member("_meta", a.maybe(80, a.object(m...)))
}

// tools are the names that oddChain tells apart, and others.
var tools = []string{"gitea_issue_get", "nothing", "empty", "block", "structured", "broken", "operation", "gone", "limited", "secretly", "unknown", "unknown long", "asking", "wire", "wire and more", "panic", "aegis"}

func (a author) call(version string) (params, name string) {
	name = a.of(tools...)
	quoted := `"` + name + `"`
	if a.rarely(60) {
		quoted = a.of(`"\u0061"`, `"näme"`, `"a b"`, `" a"`, `"`+strings.Repeat("n", 300)+`"`, a.odd())
		if json.Unmarshal([]byte(quoted), &name) != nil {
			name = "x"
		}
	}
	members := []string{a.member("name", quoted)}
	if a.rarely(80) {
		members = nil
	}
	if !a.rarely(5) {
		args := a.of(`{}`, `{"owner":"acme","repo":"infra","index":1}`, `{ "b" : 1.0,"a":"\u00e9","b":2}`, `{"long":"`+strings.Repeat("x", a.IntN(2500))+`"}`, `{"deep":[[[{"a":1}]]]}`)
		members = append(members, a.member("arguments", a.maybe(40, args)))
	}
	if a.rarely(40) {
		members = append(members, a.member(a.of("inputResponses", "requestState", "task", "other"), a.of("{}", `"state"`, `{"a":{"action":"accept"}}`, a.odd())))
	}
	return a.maybe(100, a.object(append(members, a.meta(version))...)), name
}

func (a author) list(version string) string {
	var members []string
	switch a.IntN(4) {
	case 0:
		name := fmt.Sprintf("gitea_issue_action_%03d", a.IntN(10))
		members = append(members, a.member("cursor", `"`+mcp.EncodeCursor(name)+`"`))
	case 1:
		if a.rarely(4) {
			members = append(members, a.member("cursor", a.odd()))
		}
	}
	if a.rarely(40) {
		members = append(members, a.member("limit", a.odd()))
	}
	return a.maybe(100, a.object(append(members, a.meta(version))...))
}

// message returns one request.
func (a author) message() message {
	version := a.of(legacy, current, legacy, current, "2025-06-18", oldest)
	method, name, params := "tools/call", "", ""
	if a.rarely(5) {
		method = "tools/list"
		params = a.list(version)
	} else {
		params, name = a.call(version)
	}
	if a.rarely(60) {
		method = a.of("tools/Call", "ping", "server/discover", "initialize", "prompts/get", "notifications/initialized", "", "tools/call ")
	}
	id := a.of("1", "7", `"abc"`, "0", "-5", "999999999999999")
	if a.rarely(12) {
		id = a.of(`"`+strings.Repeat("i", 300)+`"`, `"ä"`, `"<&>"`, `"\u0041"`, "1.0", "1e2", "1234567890123456", a.odd())
	}
	members := []string{a.member("jsonrpc", a.maybe(100, `"2.0"`)), a.member("id", id), a.member("method", a.maybe(150, `"`+method+`"`)), a.member("params", params)}
	if a.rarely(100) {
		members[a.IntN(4)] = ""
	}
	if a.rarely(100) {
		members = append(members, a.member(a.of("result", "error", "extra"), a.odd()))
	}
	body := a.object(members...) + a.pad()
	switch a.IntN(250) {
	case 0:
		body = "[" + body + "]"
	case 1:
		body = body[:a.IntN(len(body))]
	case 2:
		body += a.of("x", "{}", ",", "\x00")
	}
	return message{a.headers(version, method, name), body}
}

func (a author) headers(version, method, name string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "User-Agent": {a.of("probe/1.2 (x)", "probe", "pr\xffbe/2 x", "")}}
	if !a.rarely(50) {
		h.Set("MCP-Protocol-Version", version)
	}
	if version == current || a.rarely(20) {
		h.Set("Mcp-Method", method)
		if name != "" {
			h.Set("Mcp-Name", name)
		}
	}
	if a.rarely(60) {
		h.Set(a.of("Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "Content-Type", "Accept"),
			a.of("", "tools/list", "x", "2025-11-25", "2026-07-28", "2027-01-01", "1999-01-01", "text/plain", "*/*", "application/*", "text/event-stream"))
	}
	if a.rarely(60) {
		h.Del(a.of("Mcp-Method", "Mcp-Name", "Content-Type", "Accept"))
	}
	if a.rarely(60) {
		h.Add(a.of("Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "Content-Type", "Accept", "Last-Event-ID", "Mcp-Session-Id", "Mcp-Param-X"), a.of("x", "", version, name))
	}
	if a.rarely(40) {
		h.Set("Content-Type", a.of("application/json; charset=utf-8", "application/json;charset=utf-8", "Application/JSON", "application/json; charset=latin1", "application/json;"))
	}
	if a.rarely(20) {
		h.Set("Accept", a.of("application/json", "*/*", "application/json;q=0.5", "text/html"))
	}
	if a.rarely(4) {
		h.Set("Accept-Encoding", a.of("gzip", "gzip, br", "identity", "gzip;q=0"))
	}
	if a.rarely(6) {
		h.Set("X-Test-Sudo", "1")
	}
	return h
}
