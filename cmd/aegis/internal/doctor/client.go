package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// need is a further check for one kind of client: what is reported when no fault is found, ""
// for nothing, and the faults.
type need func(x *examination, ctx context.Context) (ok string, faults []outcome)

// clients by name, and what each needs beyond what all need.
var clients = map[string][]need{
	"claude":      {hosted, port443, endpointMCP, registers, offline},
	"claude-code": {registers},
	"chatgpt":     {hosted, port443, registers, offline},
	"codex":       {registers, issuerWarning, offline},
	"vscode":      {resourceEqual, registers, grantTypes},
	"copilot":     {resourceEqual, registers},
	"cursor":      {registers, cursorRedirects},
	"gemini":      {registers, allScopes},
	"mcp-remote":  {registers},
	"inspector":   {registers, browserCalls},
	"opencode":    {registers},
}

// Clients lists the names for [Options.Client].
func Clients() []string { return slices.Sorted(maps.Keys(clients)) }

// client makes the further checks of the client that was named. Everything else has
// been looked at by then, so that these can build on it.
func (x *examination) client(ctx context.Context) {
	if x.o.Client == "" {
		return
	}
	needs, ok := clients[x.o.Client]
	if !ok {
		x.add(Failure, "client", "no client of this name is known", "use one of "+strings.Join(Clients(), ", "))
		return
	}
	for _, check := range needs {
		ok, faults := check(x, ctx)
		x.judge(x.name(), ok, faults)
	}
}

// name is the check's name for the client at hand.
func (x *examination) name() string { return "client " + x.o.Client }

// hosted clients fetch from the internet: every address must be public, and one must be
// IPv4. They run in the data centres of their makers, from where a private address
// leads nowhere.
func hosted(x *examination, ctx context.Context) (string, []outcome) {
	host := x.o.Base.Hostname()
	addrs, err := x.lookup(ctx, host)
	isPublic := err == nil && len(addrs) > 0 && !slices.ContainsFunc(addrs,
		func(a netip.Addr) bool { return !public(a) })
	return host + " is public", []outcome{
		{x.o.Base.Scheme != "https" || !isPublic, Failure,
			"this client connects from the internet, and " + x.origin + " is not reachable from there",
			"give the name public addresses only (all its A and AAAA records) and serve https, " +
				"or use a client on your own network"},
		{!slices.ContainsFunc(addrs, netip.Addr.Is4), Failure,
			"this client connects by IPv4, and " + host + " has no A record", "add an A record"},
	}
}

// port443: the maker's servers connect to no other port.
func port443(x *examination, _ context.Context) (string, []outcome) {
	p := x.o.Base.Port()
	return "", []outcome{{p != "" && p != "443", Failure,
		"this client connects to port 443 only, and the address has port " + p,
		"serve on port 443 and take the port out of public_url"}}
}

// endpointMCP is a warning: the client is known to fail, and nothing says that it must.
func endpointMCP(x *examination, _ context.Context) (string, []outcome) {
	return "", []outcome{{x.o.Endpoints[0] != "/mcp", Warning,
		"this client is known to fail with endpoints other than exactly /mcp at the host's root",
		"give Aegis a host name of its own, with no path in public_url"}}
}

// registers: the client must be able to introduce itself. There are three ways: it
// registers itself, it has a metadata document, or an administrator lists it. Only the
// first two are seen from outside.
func registers(x *examination, _ context.Context) (string, []outcome) {
	return "the client can introduce itself", []outcome{
		{x.server.Issuer == "", Warning, "people cannot sign in: auth.oauth is off, or its metadata could not be read",
			"enable auth.oauth, or give the client a token of auth.tokens in an Authorization header, if it takes one"},
		{x.server.Registration == "" && !x.server.Documents, Failure,
			"the client cannot introduce itself: registration and client documents are both off",
			"set auth.oauth.registration: open, or list the client in auth.oauth.clients and paste its id"},
		{!slices.Contains(x.server.Methods, "none"), Failure,
			"the metadata lacks the method none for the token endpoint, which this client needs", x.fix("rewrite")},
		{!slices.Contains(x.server.Challenges, "S256"), Failure,
			"the metadata lacks S256, without which clients stop", x.fix("rewrite")},
	}
}

// offline: without offline_access in the list the client may not ask to stay signed in.
func offline(x *examination, _ context.Context) (string, []outcome) {
	return "", []outcome{{x.server.Issuer != "" && !slices.Contains(x.server.Scopes, "offline_access"), Warning,
		"scopes_supported lacks offline_access: this client may ask people to sign in again every hour",
		x.fix("rewrite")}}
}

// issuerWarning: RFC 9207 is right, and the client is not. The parameter protects
// against mix-up attacks, so it is on unless somebody switches it off.
func issuerWarning(x *examination, _ context.Context) (string, []outcome) {
	return "", []outcome{{x.server.Iss, Warning,
		"iss is advertised (RFC 9207), and Codex CLI 0.142 to 0.149 fail on it",
		"use Codex CLI 0.150 or newer; where that cannot be, set auth.oauth.advertise_issuer: false"}}
}

// resourceEqual: VS Code compares resource with the address that was typed. RFC 9728
// section 3.3 requires that.
func resourceEqual(x *examination, _ context.Context) (string, []outcome) {
	want := x.origin + x.o.Endpoints[0]
	return "resource is the address that people type", []outcome{
		{x.resource.Resource != want, Failure,
			"resource in the metadata is not " + want + ", and this client compares them",
			"set public_url to " + x.o.Base.String()},
	}
}

// grantTypes: without the member, RFC 8414 section 2 has a default that lacks refresh_token.
func grantTypes(x *examination, _ context.Context) (string, []outcome) {
	return "", []outcome{{x.server.Issuer != "" && !slices.Contains(x.server.GrantTypes, "refresh_token"), Warning,
		"grant_types_supported lacks refresh_token: this client will not refresh", x.fix("rewrite")}}
}

// allScopes: the client asks for all that the list has. It has no other source for
// scopes.
func allScopes(x *examination, _ context.Context) (string, []outcome) {
	return "", []outcome{{x.server.Issuer != "" && len(x.server.Scopes) == 0, Failure,
		"scopes_supported is empty, and this client asks for all that it lists", x.fix("rewrite")}}
}

// inspectorOrigin is where the MCP Inspector's page runs.
const inspectorOrigin = "http://localhost:6274"

// browserCalls: the client runs in a web page.
func browserCalls(x *examination, ctx context.Context) (string, []outcome) {
	x.preflight(ctx, x.name(), x.o.Endpoints[0], inspectorOrigin)
	// A page also calls these, and each path has its own preflight. The authorization
	// endpoint is opened, not called.
	for _, u := range []string{x.server.Token, x.server.Registration} {
		if path, ok := strings.CutPrefix(u, x.origin); ok && path != "" {
			x.preflight(ctx, x.name(), path, inspectorOrigin)
		}
	}
	return "", nil
}

// registration makes one registration, if that was asked for. It is not made unasked:
// an examination should not write, and the limit for registrations counts it.
func (x *examination) registration(ctx context.Context) {
	switch {
	case !x.o.Register:
	case x.server.Registration == "":
		x.add(Skipped, "registration", "registration is off", "")
	default:
		x.register(ctx, "registration", []string{"http://127.0.0.1/callback"})
	}
}

// cursorURIs are what Cursor registers, in one request. The first has a scheme of its
// own, which auth.oauth.private_redirects must list.
var cursorURIs = []string{
	"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback",
	"http://localhost:8787/callback",
}

// cursorRedirects: the client registers all of its redirect URIs at once, and stops when
// one is refused.
func cursorRedirects(x *examination, ctx context.Context) (string, []outcome) {
	if x.o.Register && x.server.Registration != "" {
		x.register(ctx, x.name(), cursorURIs)
	}
	return "", []outcome{{!x.o.Register, Skipped,
		"whether its three redirect URIs are accepted is looked at with --register only", ""}}
}

// register sends a registration (RFC 7591) and looks at what came back.
func (x *examination) register(ctx context.Context, check string, uris []string) {
	path, ok := strings.CutPrefix(x.server.Registration, x.origin)
	if !ok {
		return // the metadata check compares addresses
	}
	body, err := json.Marshal(map[string]any{
		"client_name": "aegis doctor", "redirect_uris": uris, "token_endpoint_auth_method": "none",
	})
	if err != nil { // texts always marshal
		return
	}
	got := x.reply(ctx, check, "no answer: ", seeProxyLog, ask{
		method: http.MethodPost, path: path, body: bytes.NewReader(body), size: int64(len(body)),
		header: http.Header{"Content-Type": {"application/json"}},
	})
	if got == nil {
		return
	}
	var made struct {
		ID   string   `json:"client_id"`
		URIs []string `json:"redirect_uris"`
	}
	readable := json.Unmarshal(got.body, &made) == nil && made.ID != ""
	// Aegis keeps no registration: what it must know is in the client id itself.
	x.judge(check, "a client can register; nothing is kept of it", []outcome{
		{got.status == http.StatusTooManyRequests, Warning, "too many registrations from this address",
			"try again after the time in Retry-After; " +
				"behind a proxy, set server.trusted_proxies so that callers are told apart"},
		{got.status != http.StatusCreated || !readable, Failure, "a client cannot register: " + got.what(),
			x.fix("path")},
		{bytes.Contains(got.body, []byte(":null")), Failure,
			"the answer has null members, which some clients cannot read", x.fix("rewrite")},
		{len(made.URIs) != len(uris), Failure, "not all redirect URIs were accepted",
			"add the missing one to auth.oauth.private_redirects"},
	})
}
