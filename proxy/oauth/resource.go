package oauth

import "aegis/proxy/oauth/grant"

// oneResource returns the endpoint that a request means (RFC 8707), "" when it names
// none.
func (s *Server) oneResource(q fields) (string, *failure) {
	switch asked := q["resource"]; {
	case len(asked) > 1:
		return "", bad(codeTarget, "ask for one resource")
	case q.get("resource") == "":
		return "", nil
	}
	c := grant.CanonicalResource(q.get("resource"))
	for _, r := range s.o.Resources {
		if c != "" && c == grant.CanonicalResource(r) {
			return r, nil
		}
	}
	return "", bad(codeTarget, "resource is no endpoint of this server")
}
