package oauth

import "net/http"

// Routes returns the handlers by path.
func (s *Server) Routes() map[string]http.Handler { return s.routes }

// SafeRedirect is safeRedirect, which the clients' own rules leave nothing to do.
func SafeRedirect(uri string) bool { return safeRedirect(uri) }

// MaxAddrs is the bound of addresses that a limit remembers.
const MaxAddrs = maxAddrs

// RegisterCallers returns how many addresses the limit of registrations remembers.
func (s *Server) RegisterCallers() int {
	return s.rates.register.keys.Len()
}

// ReadBody returns the status that a body is refused with, 0 for one that is read.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) int {
	if _, f := readBody(w, r, limit); f != nil {
		return f.status
	}
	return 0
}

// AreaWords returns the words of each area.
func AreaWords() (all [][]string) {
	for _, a := range areas {
		all = append(all, []string{a.Title, a.Read, a.Write})
	}
	return all
}
