package gitea

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// rawFactor is how many times gitea.max_response_bytes an answer may have of
// which only fields are kept. The bound itself then counts what is kept; this one
// ends an answer that has no end.
const rawFactor = 16

// selection returns what a call keeps of a JSON answer while it is read: its fields, and
// what is read here or by the stages above besides. Nil keeps all. Lists of Gitea hold many
// times what a model wants of them; what is dropped here is never kept in memory.
func selection(call *proxy.Call, req *request) *jsonscan.Selection {
	if len(call.Options.Fields) == 0 {
		return nil
	}
	// Needs are what stages above read of an answer whatever its caller keeps.
	paths := append(make([]string, 0, 16), call.Options.Fields...)
	paths = append(paths, call.Options.Needs...)
	switch call.Tool.Paging {
	case proxy.PagingPage, proxy.PagingPerPage:
		paths = append(paths, "total_count", "truncated") // see readObject
	}
	if labels, milestones := issueFilters(call, req.method, req.path); len(labels)+len(milestones) > 0 {
		paths = append(paths, "labels.name", "milestone.id", "milestone.title")
	}
	sel, err := jsonscan.NewSelection(paths...)
	if err != nil {
		return nil // the envelope says so
	}
	return sel
}

// picks reports whether only a selection of an answer is to be kept.
func (r *request) picks(status int, media string) bool {
	return r.keep != nil && status/100 == 2 && (kindOf(media) == proxy.BodyJSON || media == "" && r.accept == mediaJSON)
}

// chunks are the buffers that picked answers are read through.
var chunks = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// readPicked reads a JSON body and keeps what was selected of it. An empty body is none.
// The whole body is still read and checked, so that a part of a broken answer cannot pass
// for a result.
func (c *Client) readPicked(resp *http.Response, req *request, ans *answer) error {
	bound := c.maxResponse * rawFactor
	// Refused before a byte is read.
	if resp.ContentLength > bound {
		return c.overRaw(ans.status)
	}
	chunk := chunks.Get().(*[32 << 10]byte)
	defer chunks.Put(chunk)
	p := req.keep.Projector(maxDepth)
	page := false // it begins as HTML does
	for {
		n, err := resp.Body.Read(chunk[:])
		// Looked at in the first bytes, as nothing is kept of what is not selected.
		if ans.size == 0 {
			page = bytes.HasPrefix(jsonscan.Trim(chunk[:n]), []byte("<"))
		}
		ans.size += int64(n)
		if _, broken := p.Write(chunk[:n]); broken != nil {
			return brokenJSON(broken, ans, page)
		}
		switch kept := int64(len(p.Kept())); {
		case kept > c.maxResponse:
			return c.overResponse(ans.status, -1)
		case ans.size > bound:
			return c.overRaw(ans.status)
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			return err
		case ans.size == 0:
			return nil
		}
		if broken := p.Close(); broken != nil {
			return brokenJSON(broken, ans, page)
		}
		ans.body, ans.picked, ans.rows = p.Kept(), true, p.Rows()
		return nil
	}
}

// brokenJSON is the error of a body of which nothing can be picked.
func brokenJSON(cause error, ans *answer, page bool) *proxy.Error {
	if errors.Is(cause, jsonscan.ErrDepth) {
		return &proxy.Error{Kind: proxy.KindUpstreamError, Status: ans.status, Err: cause,
			Public: "the JSON is nested deeper than 100 levels, so no fields can be picked from it; " +
				"ask without fields to get it as text"}
	}
	return notJSON(cause, ans.status, ans.size, page)
}

// overRaw is the error of an answer that is too large even to be read.
func (c *Client) overRaw(status int) *proxy.Error {
	return &proxy.Error{Kind: proxy.KindPayloadTooLarge, Status: status,
		Public: "the answer is larger than 16 times gitea.max_response_bytes, too large to pick fields from; " +
			"ask for fewer items or a narrower range"}
}
