package fakegitea

import "net/http"

// answerWeb answers outside the API: its description, and nothing else. Pages and files
// that answers of the API link to are not in the demo.
// Its 404 differs in text from the one of the API, by which a client can tell a wrong base URL
// from a wrong route.
func (s *Server) answerWeb(segs []string, out *response) {
	if len(s.opts.Description) > 0 && len(segs) == 1 && segs[0] == "swagger.v1.json" {
		out.header.Set("Content-Type", "application/json;charset=utf-8")
		out.body.Write(s.opts.Description)
		return
	}
	out.header.Set("Content-Type", "text/plain; charset=utf-8")
	out.status = http.StatusNotFound
	out.body.WriteString("Not found.\n")
}
