package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"aegis/proxy/oauth/scope"
)

// maxBody bounds the bytes of a registration.
const maxBody = 16 << 10

// The error codes of RFC 7591 section 3.2.2, and of RFC 6749 for a server that
// takes no registrations.
const (
	codeRedirect = "invalid_redirect_uri"
	codeMetadata = "invalid_client_metadata"
	codeDenied   = "access_denied"
)

// metadata is what a client says of itself, in a registration (RFC 7591 section
// 2) or in its document. Members that are not here are ignored.
type metadata struct {
	usable  []string // the redirect URIs that pass Redirectable, each once
	name    string   // as sent
	method  string
	scope   string // as sent
	appType string
}

// problem is why metadata cannot be used.
type problem struct {
	code string
	text string // ASCII without quotes and backslashes; nothing that was sent
}

// information is the answer to a registration (RFC 7591 section 3.2.1). Members
// without a value are left out: some clients fail on null.
type information struct {
	ID            string   `json:"client_id"`
	Secret        string   `json:"client_secret,omitempty"`
	Issued        int64    `json:"client_id_issued_at"`
	SecretExpires *int64   `json:"client_secret_expires_at,omitempty"`
	Redirects     []string `json:"redirect_uris"`
	Method        string   `json:"token_endpoint_auth_method"`
	Grants        []string `json:"grant_types"`
	Responses     []string `json:"response_types"`
	Name          string   `json:"client_name"`
	Scope         string   `json:"scope,omitempty"`
	AppType       string   `json:"application_type,omitempty"`
}

// Register answers a registration request (RFC 7591 section 3) with a status and
// a JSON body, which must not be cached. Redirect URIs that can never be used are
// dropped, and the registration is refused when none is left. Clients that
// registered before the policy became "off" stay known. The caller has applied
// its rate limits.
func (r *Resolver) Register(_ context.Context, body []byte) (status int, answer []byte) {
	if r.o.Config.Registration != "open" {
		return refuse(http.StatusForbidden, codeDenied, "this server takes no registrations; "+
			"ask its operator for a client_id, or use a client with a metadata document")
	}
	if len(body) > maxBody {
		return refuse(http.StatusRequestEntityTooLarge, codeMetadata, "the registration is larger than 16 KB")
	}
	fields, ok := object(body)
	if !ok {
		return refuse(http.StatusBadRequest, codeMetadata,
			"the body is not a JSON object; send the client metadata of RFC 7591")
	}
	// Members that are not known are ignored (RFC 7591 section 2).
	// More URIs than an id can hold are refused; Cursor, for one, sends three at once and needs
	// one of them.
	m, p := readMetadata(fields, methods, r.o.Config.PrivateRedirects)
	if p == nil && len(m.usable) > maxRedirects {
		p = &problem{codeRedirect, "there are more than 10 redirect_uris"}
	}
	if p != nil {
		return refuse(http.StatusBadRequest, p.code, p.text)
	}
	return r.save(m)
}

// save makes the id of a client whose metadata is good, and the answer.
func (r *Resolver) save(m *metadata) (status int, answer []byte) {
	reg := registration{method: m.method, issued: r.o.Now(), name: nameOf(m.name, m.usable), uris: m.usable}
	packed, err := reg.pack()
	if err != nil {
		return refuse(http.StatusBadRequest, codeMetadata,
			"client_name and redirect_uris are longer than 2 KB together")
	}
	id := r.ids.sign(packed)
	info := information{
		ID: id, Issued: reg.issued.Unix(), Redirects: reg.uris, Method: reg.method, Name: reg.name,
		Grants: grantTypes, Responses: []string{"code"}, Scope: r.scope(m.scope), AppType: m.appType,
	}
	if secret := r.ids.keys[0].secretOf(id, reg.method); !secret.IsZero() {
		info.Secret, info.SecretExpires = secret.Reveal(), new(int64(0)) // it never expires
	}
	return http.StatusCreated, encode(info)
}

// grantTypes are what every client gets, whatever it asked for (RFC 7591 section
// 2 lets the server replace values).
var grantTypes = []string{"authorization_code", "refresh_token"}

// refuse is the one writer of registration errors (RFC 7591 section 3.2.2).
func refuse(status int, code, text string) (int, []byte) {
	return status, encode(map[string]string{"error": code, "error_description": text})
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // URIs stay as they were sent, byte for byte
	if err := e.Encode(v); err != nil {
		return []byte(`{"error":"server_error"}`) // strings, numbers and lists of them always encode
	}
	return b.Bytes()
}

// object reads a JSON object's members by their exact names: encoding/json would
// match the fields of a struct in any case.
func object(body []byte) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(body, &fields)
	return fields, err == nil && fields != nil
}

// readMetadata checks the metadata of a client that may authenticate in one of
// allowed ways, the most wanted first.
func readMetadata(fields map[string]json.RawMessage, allowed, private []string) (*metadata, *problem) {
	m := &metadata{name: text(fields["client_name"]), scope: text(fields["scope"])}
	if app := text(fields["application_type"]); app == "native" || app == "web" {
		m.appType = app
	}
	if p := m.flows(fields); p != nil {
		return nil, p
	}
	var p *problem
	if m.method, p = authMethod(fields, allowed); p != nil {
		return nil, p
	}
	return m, m.redirectURIs(fields["redirect_uris"], private)
}

// flows refuses clients that want nothing of what there is.
func (m *metadata) flows(fields map[string]json.RawMessage) *problem {
	for _, need := range [...]struct{ member, value string }{
		{"grant_types", "authorization_code"}, {"response_types", "code"},
	} {
		types, ok := texts(fields[need.member])
		if !ok || len(types) > 0 && !slices.Contains(types, need.value) {
			return &problem{codeMetadata, need.member + " must hold " + need.value}
		}
	}
	return nil
}

// authMethod picks how the client will authenticate: the method that it asks
// for when that is allowed, else the first allowed one that it says it supports.
func authMethod(fields map[string]json.RawMessage, allowed []string) (string, *problem) {
	want := text(fields["token_endpoint_auth_method"])
	offers, _ := texts(fields["token_endpoint_auth_methods_supported"])
	if want == "" && len(offers) == 0 {
		want = AuthBasic // the default of RFC 7591 section 2
		if !slices.Contains(allowed, want) {
			want = AuthNone
		}
	}
	for _, m := range append([]string{want}, offers...) {
		if slices.Contains(allowed, m) {
			return m, nil
		}
	}
	return "", &problem{codeMetadata, "no token_endpoint_auth_method of the client is supported here; " +
		"it must be one of: " + strings.Join(allowed, ", ")}
}

// redirectURIs keeps the redirect URIs that can be used. Clients list several
// and need one of them.
func (m *metadata) redirectURIs(raw json.RawMessage, private []string) *problem {
	uris, ok := texts(raw)
	if !ok || len(uris) == 0 {
		return &problem{codeRedirect, "redirect_uris must be a list with at least one URI"}
	}
	for _, uri := range redirectable(uris, private) {
		if !slices.Contains(m.usable, uri) {
			m.usable = append(m.usable, uri)
		}
	}
	if len(m.usable) == 0 {
		why := Redirectable(uris[0], private)
		return &problem{codeRedirect, "none of redirect_uris can be used; the first one " + why.Error()}
	}
	return nil
}

// text returns a JSON string; "" for everything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// texts returns a JSON list of strings; empty when it is absent or null, and
// false when it is anything else.
func texts(raw json.RawMessage) (items []string, ok bool) {
	if raw != nil && json.Unmarshal(raw, &items) != nil {
		return nil, false
	}
	return items, true
}

// scope returns the words of a scope that this server knows, or what it offers
// to clients that ask for none.
func (r *Resolver) scope(asked string) string {
	var known []string
	for _, word := range strings.Fields(asked) {
		if scope.Covers(r.o.Config.Scopes, []string{word}) && !slices.Contains(known, word) {
			known = append(known, word)
		}
	}
	all := strings.Join(r.o.Config.Scopes, " ")
	return cmp.Or(strings.Join(known, " "), strings.Join(r.o.Config.DefaultScopes, " "), all)
}
