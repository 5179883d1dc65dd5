package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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

// metadata fetches every document that clients look for.
func (x *examination) metadata(ctx context.Context) {
	main := nameResource + x.o.Endpoints[0]
	paths := []string{main, nameResource}
	for _, e := range x.o.Endpoints {
		paths = append(paths, nameResource+e, nameResource+e+"/")
	}
	paths = append(paths, nameServer+x.prefix(), nameOpenID)
	good := 0
	var seen []string
	for _, path := range paths {
		if slices.Contains(seen, path) {
			continue
		}
		seen = append(seen, path)
		if x.document(ctx, path) {
			good++
		}
	}
	if good == len(seen) {
		x.ok("metadata", "%d documents are as they must be", good)
	}
}

// document checks one path; it tells of what is wrong only.
func (x *examination) document(ctx context.Context, path string) bool {
	got, err := x.do(ctx, get(path))
	if err != nil {
		x.add(Failure, "metadata", path+": no answer: "+err.Error(), "see the proxy's log")
		return false
	}
	want := x.expected(ctx, get(path))
	found := got.status == http.StatusOK
	switch {
	case want != nil && want.status == http.StatusOK && !found, want == nil && !found && path == nameResource+x.o.Endpoints[0]:
		x.add(Failure, "metadata", path+" is not there: "+got.what(), x.otherwise(got, "well-known"))
		return false
	case want != nil && want.status != http.StatusOK && found, want == nil && found && path == nameOpenID:
		x.add(Failure, "metadata", path+" is served, and must not be: "+got.what(), x.otherwise(got, "well-known"))
		return false
	case !found:
		return x.absent(path, got)
	}
	return x.keep(path, got) && x.sameBytes(path, got, want)
}

// absent checks the 404 of a document that must not be there. Clients go on to
// the next name on it, and stop at anything else.
func (x *examination) absent(path string, got *answer) bool {
	if got.status == http.StatusNotFound {
		return true
	}
	x.add(Failure, "metadata", path+" must be 404: "+got.what(), x.mend("well-known"))
	return false
}

// keep reads a document and compares its addresses with the one that was asked.
func (x *examination) keep(path string, got *answer) bool {
	if !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") || !json.Valid(got.body) {
		x.add(Failure, "metadata", path+" is not JSON", x.mend("well-known"))
		return false
	}
	if strings.HasPrefix(path, nameServer) {
		d := &serverDocument{}
		if json.Unmarshal(got.body, d) != nil || !x.ours(path, "issuer", d.Issuer) {
			return false
		}
		x.server = d
		return x.ours(path, "token_endpoint", d.Token) && x.ours(path, "authorization_endpoint", d.Authorize)
	}
	d := &resourceDocument{}
	if json.Unmarshal(got.body, d) != nil || !x.ours(path, "resource", d.Resource) {
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
	says := fmt.Sprintf("%s says %s %s, and clients use %s", path, member, clean(value), x.origin)
	if rest, ok := strings.CutPrefix(value, "http://"); ok && x.o.Base.Scheme == "https" && strings.HasPrefix(rest, x.o.Base.Host) {
		says += ": http instead of https"
	}
	x.add(Failure, "metadata", says, "set public_url to "+x.o.Base.String()+" in the configuration that Aegis runs with, and reload it")
	return false
}

// sameBytes compares a document with the configuration's.
func (x *examination) sameBytes(path string, got, want *answer) bool {
	if want == nil || bytes.Equal(got.body, want.body) {
		return true
	}
	mend := x.otherwise(got, "rewrite")
	if looselyEqual(got.body, want.body) {
		mend = x.mend("rewrite")
	}
	x.add(Failure, "metadata", path+" is not, byte for byte, what the configuration says", mend)
	return false
}

// another is what to do when the running Aegis is not that of the file.
const another = "the running Aegis has another configuration than this file: reload it (SIGHUP), or give its file with -c"

// otherwise is what to do about an answer that differs from the configuration's:
// it is Aegis's own, or made by what stands before it.
func (x *examination) otherwise(got *answer, fault string) string {
	if got.byAegis() && x.o.Reference != nil {
		return another
	}
	return x.mend(fault)
}

// looselyEqual reports whether two documents say the same in other bytes.
func looselyEqual(a, b []byte) bool {
	var ja, jb bytes.Buffer
	return json.Compact(&ja, a) == nil && json.Compact(&jb, b) == nil && bytes.Equal(ja.Bytes(), jb.Bytes())
}

// clean makes a stranger's text fit for a terminal.
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
