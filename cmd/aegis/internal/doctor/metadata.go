package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// The well-known names (RFC 9728 section 3, RFC 8414 section 3).
const (
	nameResource = "/.well-known/oauth-protected-resource"
	nameServer   = "/.well-known/oauth-authorization-server"
	nameOpenID   = "/.well-known/openid-configuration"
)

// resourceDocument is what is read of protected resource metadata.
type resourceDocument struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported"`
}

// serverDocument is what is read of authorization server metadata.
type serverDocument struct {
	Issuer       string   `json:"issuer"`
	Authorize    string   `json:"authorization_endpoint"`
	Token        string   `json:"token_endpoint"`
	Registration string   `json:"registration_endpoint"`
	Revocation   string   `json:"revocation_endpoint"`
	Scopes       []string `json:"scopes_supported"`
	Methods      []string `json:"token_endpoint_auth_methods_supported"`
	GrantTypes   []string `json:"grant_types_supported"`
	Challenges   []string `json:"code_challenge_methods_supported"`
	Iss          bool     `json:"authorization_response_iss_parameter_supported"`
	Documents    bool     `json:"client_id_metadata_document_supported"`
}

// metadata fetches every document that clients look for. Clients try several of these
// names, in different orders, so a fault in any of them hits some client.
func (x *examination) metadata(ctx context.Context) {
	main := nameResource + x.o.Endpoints[0]
	paths := []string{main, nameResource}
	for _, e := range x.o.Endpoints {
		paths = append(paths, nameResource+e, nameResource+e+"/")
	}
	// The prefix comes after the well-known name, not before it (RFC 8414 section 3.1).
	paths = append(paths, nameServer+x.prefix(), nameOpenID)
	good := 0
	seen := map[string]bool{}
	for _, path := range paths {
		if !seen[path] && x.document(ctx, path) {
			good++
		}
		seen[path] = true
	}
	if good == len(seen) {
		x.ok("metadata", "%d documents are as they must be", good)
	}
}

// document checks one path, and reports only what is wrong.
func (x *examination) document(ctx context.Context, path string) bool {
	got := x.reply(ctx, "metadata", path+": no answer: ", seeProxyLog, get(path))
	if got == nil {
		return false
	}
	want := x.expected(ctx, get(path))
	// Without a reference, every Aegis has the main document, and none has that of
	// OpenID.
	must, mustNot := path == nameResource+x.o.Endpoints[0], path == nameOpenID
	if want != nil {
		must, mustNot = want.status == http.StatusOK, want.status != http.StatusOK
	}
	found := got.status == http.StatusOK
	if !x.passes("metadata", []outcome{
		{must && !found, Failure, path + " is not there: " + got.what(), x.otherwise(got, "well-known")},
		{mustNot && found, Failure, path + " is served, and must not be: " + got.what(),
			x.otherwise(got, "well-known")},
		// Clients go on to the next name on 404, and stop at anything else.
		{!found && got.status != http.StatusNotFound, Failure, path + " must be 404: " + got.what(),
			x.fix("well-known")},
	}) {
		return false
	}
	return !found || x.keep(path, got) && x.sameBytes(path, got, want)
}

// keep reads a document and compares the addresses in it with the one that it came from.
func (x *examination) keep(path string, got *answer) bool {
	if !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") || !json.Valid(got.body) {
		x.add(Failure, "metadata", path+" is not JSON", x.fix("well-known"))
		return false
	}
	// It is kept for the checks of single clients, which come later.
	if strings.HasPrefix(path, nameServer) {
		var d serverDocument
		if json.Unmarshal(got.body, &d) != nil || !x.ours(path, "issuer", d.Issuer) {
			return false
		}
		x.server = d
		return x.ours(path, "token_endpoint", d.Token) && x.ours(path, "authorization_endpoint", d.Authorize)
	}
	var d resourceDocument
	if json.Unmarshal(got.body, &d) != nil || !x.ours(path, "resource", d.Resource) {
		return false
	}
	if path == nameResource+x.o.Endpoints[0] {
		x.resource = d
	}
	for _, s := range d.AuthorizationServers {
		if !x.ours(path, "authorization_servers", s) {
			return false
		}
	}
	return true
}

// ours checks that an address in a document is below the one that clients use.
// Clients compare bytes, and stop when it is not.
func (x *examination) ours(path, member, value string) bool {
	if value == x.origin || strings.HasPrefix(value, x.origin+"/") {
		return true
	}
	message := fmt.Sprintf("%s says %s %s, and clients use %s", path, member, clean(value), x.origin)
	// The most common fault: the proxy ends TLS, and public_url was not set.
	if x.o.Base.Scheme == "https" && strings.HasPrefix(value, "http://"+x.o.Base.Host) {
		message += ": http instead of https"
	}
	x.add(Failure, "metadata", message,
		"set public_url to "+x.o.Base.String()+" in the configuration that Aegis runs with, and reload it")
	return false
}

// sameBytes compares a document with the configuration's.
func (x *examination) sameBytes(path string, got, want *answer) bool {
	if want == nil || bytes.Equal(got.body, want.body) {
		return true
	}
	fix := x.otherwise(got, "rewrite")
	if SameJSON(got.body, want.body) {
		fix = x.fix("rewrite") // a proxy laid the same document out anew
	}
	x.add(Failure, "metadata", path+" is not, byte for byte, what the configuration says", fix)
	return false
}

// another is what to do when the running Aegis is not that of the file.
const another = "the running Aegis has another configuration than this file: " +
	"reload it (SIGHUP), or give its file with -c"

// otherwise is what to do about an answer that differs from the configuration's:
// it is Aegis's own, or made by a proxy before it.
func (x *examination) otherwise(got *answer, fault string) string {
	if got.byAegis() && x.o.Reference != nil {
		return another
	}
	return x.fix(fault)
}

// SameJSON reports whether two JSON texts differ in white space alone.
func SameJSON(a, b []byte) bool {
	var ja, jb bytes.Buffer
	return json.Compact(&ja, a) == nil && json.Compact(&jb, b) == nil && bytes.Equal(ja.Bytes(), jb.Bytes())
}

// clean makes a text that came over the network safe for a terminal: short, and without
// characters that could be mistaken for the report's own. Only ASCII is left, since
// letters of other scripts can look like it.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	if s == "" {
		return `""`
	}
	return s
}
