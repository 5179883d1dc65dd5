package fakegitea

import (
	"bytes"
	"net/http"
	"net/url"
	"path"
)

// answerWeb answers outside the API: its description, and the downloads that
// answers of the API point to. Everything else is not found, as the double has no
// pages.
func (s *Server) answerWeb(r *http.Request, segs []string, out *response) {
	if len(s.opts.Description) > 0 && len(segs) == 1 && segs[0] == "swagger.v1.json" {
		out.header.Set("Content-Type", "application/json;charset=utf-8")
		out.body.Write(s.opts.Description)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.newCall(r, nil, out)
	if err := c.authenticate(); err == nil && c.download(segs) {
		return
	}
	out.header.Set("Content-Type", "text/plain; charset=utf-8")
	out.status = http.StatusNotFound
	out.body.Reset()
	out.body.WriteString("Not found.\n")
}

// download serves attachments, release assets and raw files.
func (c *call) download(segs []string) bool {
	for i, seg := range segs {
		plain, err := url.PathUnescape(seg)
		if err != nil {
			return false
		}
		segs[i] = plain
	}
	if len(segs) == 2 && segs[0] == "attachments" {
		return c.sendAttachment(func(a *attachment) bool { return a.UUID == segs[1] })
	}
	if len(segs) < 5 || c.loadRepo(segs[0], segs[1]) != nil || c.repo == nil {
		return false
	}
	switch segs[2] {
	case "releases":
		return segs[3] == "download" && len(segs) == 6 && c.sendAttachment(func(a *attachment) bool {
			return a.release == segs[4] && a.Name == segs[5]
		})
	case "raw":
		c.params = map[string]string{"filepath": path.Join(segs[4:]...)}
		return c.rawFile(true) == nil
	}
	return false
}

// sendAttachment serves the first visible attachment that f accepts.
func (c *call) sendAttachment(f func(*attachment) bool) bool {
	for _, r := range c.w.readable(c.doer) {
		for _, a := range r.attachments() {
			if f(a) && (c.repo == nil || c.repo == r) {
				a.Downloads++
				c.out.header.Set("Content-Type", contentType(a.Data))
				http.ServeContent(c.out, c.r, a.Name, a.Created, bytes.NewReader(a.Data))
				return true
			}
		}
	}
	return false
}

// attachments lists everything uploaded to a repository.
func (r *repo) attachments() []*attachment {
	var out []*attachment
	for _, rel := range r.releases {
		out = append(out, rel.Assets...)
	}
	for _, is := range r.issues {
		out = append(out, is.Assets...)
		for _, m := range is.comments {
			out = append(out, m.Assets...)
		}
	}
	return out
}
