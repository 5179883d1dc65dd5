package oauth

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"aegis/proxy/oauth/client"
)

// resourceMetadata is the metadata of a protected resource (RFC 9728 section 2). Without
// sign-ins it names no authorization server.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

const resourceName = "Aegis, an MCP gateway for Gitea"

// serverMetadata is the metadata of an authorization server (RFC 8414 section 2). What
// clients are known to look for: S256, or they refuse; none among the methods, or they take
// no document for a client; refresh_token among the grants, or they filter the server out.
// A member without a value is left out, as some clients fail on null.
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint,omitempty"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	ScopesSupported       []string `json:"scopes_supported"`
	ResponseTypes         []string `json:"response_types_supported"`
	ResponseModes         []string `json:"response_modes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	Iss                   bool     `json:"authorization_response_iss_parameter_supported,omitempty"`
	Documents             bool     `json:"client_id_metadata_document_supported,omitempty"`
	ProtectedResources    []string `json:"protected_resources"`
}

// offlineAccess is the word by which some clients ask for refresh tokens. It is
// accepted and means nothing here, as there always are some; Gitea never sees it.
const offlineAccess = "offline_access"

func (s *Server) serverMetadata() serverMetadata {
	methods := []string{client.AuthNone, client.AuthPost, client.AuthBasic}
	m := serverMetadata{
		Issuer:                s.issuer,
		AuthorizationEndpoint: s.issuer + pathAuthorize,
		TokenEndpoint:         s.issuer + pathToken,
		RevocationEndpoint:    s.issuer + pathRevoke,
		ScopesSupported:       slices.Concat(s.baseline, []string{offlineAccess}),
		ResponseTypes:         []string{"code"},
		ResponseModes:         []string{"query"},
		GrantTypes:            []string{"authorization_code", "refresh_token"},
		AuthMethods:           methods,
		RevocationAuthMethods: methods,
		ChallengeMethods:      []string{"S256"},
		Iss:                   s.o.Config.AdvertiseIssuer,
		Documents:             s.o.Config.Documents.Enabled,
		ProtectedResources:    s.o.Resources,
	}
	if s.o.Config.Registration != "off" {
		m.RegistrationEndpoint = s.issuer + pathRegister
	}
	return m
}

// The well-known names (RFC 9728 section 3, RFC 8414 section 3). What follows
// them is the path of the resource, or of the issuer.
const (
	nameResource = "/.well-known/oauth-protected-resource"
	nameServer   = "/.well-known/oauth-authorization-server"
)

// MetadataURL returns where the metadata of an endpoint is, for its challenges.
func (s *Server) MetadataURL(resource string) string {
	return s.origin + nameResource + strings.TrimPrefix(resource, s.origin)
}

// documents returns every metadata document by path. All values come from the
// configuration; the request's Host and forwarding headers have no say.
func (s *Server) documents() map[string][]byte {
	docs := map[string][]byte{}
	add := func(path string, v any) {
		docs[path], _ = json.Marshal(v) // texts always marshal
	}
	for _, r := range s.o.Resources {
		m := resourceMetadata{
			Resource: r, AuthorizationServers: []string{s.issuer}, ScopesSupported: s.baseline,
			BearerMethods: []string{"header"}, ResourceName: resourceName,
		}
		path := nameResource + strings.TrimPrefix(r, s.origin)
		add(path, m)
		// Some clients look at the host's root alone. The default endpoint is the first.
		if docs[nameResource] == nil {
			docs[nameResource] = docs[path]
		}
		// Clients compare the resource with the address that they were given, which
		// may end in a slash. Both mean the same endpoint.
		m.Resource += "/"
		add(path+"/", m)
	}
	// An issuer with a path has its document there and nowhere else (RFC 8414
	// section 3.1): clients take an issuer that does not fit as an attack.
	add(nameServer+s.prefix, s.serverMetadata())
	return docs
}

// wellKnown serves the metadata documents. Everything else below /.well-known/
// does not exist and says so in JSON: clients try several names in turn.
func (s *Server) wellKnown() http.Handler {
	docs := s.documents()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.preflight(w, r) {
			return
		}
		doc, ok := docs[r.URL.Path]
		switch {
		case !ok:
			s.fail(w, r, &failure{
				status: http.StatusNotFound, code: "not_found", says: "there is no such metadata document here",
			})
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD, OPTIONS")
			s.fail(w, r, &failure{status: http.StatusMethodNotAllowed, code: codeRequest, says: "use GET"})
		default:
			w.Header().Set("Content-Type", "application/json")
			// Short: the scopes change with the configuration.
			w.Header().Set("Cache-Control", "public, max-age=300")
			_, _ = w.Write(doc) // it fails when the client has gone
		}
	})
}
