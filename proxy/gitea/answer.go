package gitea

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// maxDepth is how deep JSON may be nested to pass as JSON.
const maxDepth = 100

// Handle answers a call with one request to Gitea (two when a reading one meets a passing
// failure). It is the innermost [proxy.Handler]. Errors are [*proxy.Error]. A redirect is a
// failure too: following one would show the token to whatever it points to.
func (c *Client) Handle(ctx context.Context, call *proxy.Call) (*proxy.Result, error) {
	req, err := c.prepare(call)
	if err != nil {
		return nil, err
	}
	req.keep = selection(call, req)
	// A tool's own bound is for work that Gitea is known to take long over, such as
	// migrations; it never shortens what an operator has set.
	ctx, cancel := context.WithTimeout(ctx, max(c.timeout, call.Tool.Timeout))
	defer cancel()
	ans, err := c.exchange(ctx, req, &call.Stats)
	if err != nil {
		return nil, err
	}
	if ans.status/100 != 2 && ans.status != http.StatusNotModified {
		return nil, c.failure(req, ans)
	}
	res, err := c.result(call.Tool, req, ans)
	if err != nil {
		return nil, err
	}
	call.Reply.OnSent(ans.release)
	c.addPaging(ctx, call.Tool, req, ans, res)
	res.Warnings = append(res.Warnings, ignoredFilters(call, res)...)
	return res, nil
}

// result reads a good answer. The label decides, and the bytes only where it says nothing:
// a file of a repository may begin like anything.
func (c *Client) result(tool *proxy.Tool, req *request, ans *answer) (*proxy.Result, error) {
	media := mediaType(ans.header)
	res := &proxy.Result{
		Status: ans.status, Method: req.method, Path: req.path,
		Body: ans.body, ContentType: media, Source: c.source(),
	}
	switch {
	case ans.picked:
		res.Kind = proxy.BodyJSON
		return res, nil
	case len(ans.body) == 0:
		res.Body, res.Kind = nil, emptyKind(tool, ans.status, media)
		return res, nil
	}
	kind := kindOf(media)
	promised := tool.Produces == mediaJSON
	if media == "text/html" && promised {
		return nil, &proxy.Error{Kind: proxy.KindUpstreamError, Status: ans.status,
			Public: "an HTML page came back where JSON was due; " +
				"check that gitea.url is Gitea itself and not a login page before it"}
	}
	if media == "" && promised {
		kind = proxy.BodyJSON
	}
	switch kind {
	case proxy.BodyJSON:
		return jsonResult(res)
	case proxy.BodyText:
		res.Kind = proxy.BodyText
		if utf8.Valid(ans.body) {
			return res, nil
		}
	case proxy.BodyEmpty: // undeclared: the bytes decide
		if utf8.Valid(ans.body) && bytes.IndexByte(ans.body, 0) < 0 {
			res.Kind = proxy.BodyText
			return res, nil
		}
	}
	res.Kind = proxy.BodyBinary
	if size := int64(len(ans.body)); size > c.maxBinary {
		return nil, c.overBinary(ans.status, size, media)
	}
	return res, nil
}

// emptyKind says what an empty body is: a file, a log or a diff may have no bytes and is an
// empty text all the same, as its tool's output schema says. Gitea leaves the label out where it
// has written nothing, so that what the tool promises decides then.
func emptyKind(tool *proxy.Tool, status int, media string) proxy.BodyKind {
	if media == "" {
		media = tool.Produces
	}
	switch kind := kindOf(media); {
	case status == http.StatusNoContent || status == http.StatusNotModified || media == "":
	case kind == proxy.BodyText || kind == proxy.BodyBinary:
		return kind
	case media == mediaBytes && tool.Produces == mediaBytes: // an archive
		return proxy.BodyBinary
	case media == mediaBytes:
		return proxy.BodyText
	}
	return proxy.BodyEmpty
}

// jsonResult checks a JSON body and keeps its bytes. Stages above scan these bytes without
// checking them again, so nothing that is not valid JSON may pass for it.
func jsonResult(res *proxy.Result) (*proxy.Result, error) {
	content, err := jsonscan.Inspect(res.Body, maxDepth)
	switch {
	case err == nil:
		res.Kind, res.Items = proxy.BodyJSON, max(content.Elements, 0)
		if content.Plain {
			res.Plain = res.Body
		}
		return res, nil
	case errors.Is(err, jsonscan.ErrDepth) && utf8.Valid(res.Body):
		res.Kind = proxy.BodyText
		res.Warnings = append(res.Warnings, "the JSON is nested deeper than 100 levels; data is its text")
		return res, nil
	}
	page := bytes.HasPrefix(jsonscan.Trim(res.Body), []byte("<"))
	return nil, notJSON(err, res.Status, int64(len(res.Body)), page)
}

// notJSON is the error of a body that says it is JSON and is not; page says that
// it begins as HTML does.
func notJSON(cause error, status int, size int64, page bool) *proxy.Error {
	why := "JSON that is cut short or broken"
	if page {
		why = "an HTML page labelled as JSON"
	}
	return &proxy.Error{Kind: proxy.KindUpstreamError, Status: status, Err: cause,
		Public: fmt.Sprintf("Gitea, or a proxy before it, answered with %s (%d bytes); "+
			"try again, and tell the operator if it stays so", why, size)}
}

// mediaType returns the media type of an answer, in lower case and without parameters; ""
// when there is none. A broken header still names a type in most cases, and what it names
// is only compared and shown.
func mediaType(h http.Header) string {
	if media, _, _ := strings.Cut(h.Get("Content-Type"), ";"); media == mediaJSON || media == mediaText ||
		media == mediaBytes {
		return media // the usual ones, as Gitea writes them
	}
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && media == "" {
		media, _, _ = strings.Cut(strings.ToLower(h.Get("Content-Type")), ";")
	}
	return proxy.Shorten(clean(media), 100)
}

// kindOf says how a media type is read. BodyEmpty means that it does not say: Gitea sends
// stored files of any kind as octet-stream. The list is of types that Gitea has for files
// of text; one that is missing comes as bytes, which loses nothing.
func kindOf(media string) proxy.BodyKind {
	switch {
	case media == mediaJSON || strings.HasSuffix(media, "+json"):
		return proxy.BodyJSON
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "+xml"):
		return proxy.BodyText
	}
	switch media {
	case "", mediaBytes:
		return proxy.BodyEmpty
	case "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/x-sh", "application/x-ndjson", "application/pgp-keys":
		return proxy.BodyText
	}
	return proxy.BodyBinary
}

// overResponse is the error of an answer over gitea.max_response_bytes; size is -1 when it
// is unknown. A client that asked for too much can ask for less; cutting JSON would give it
// something that looks whole.
func (c *Client) overResponse(status int, size int64) *proxy.Error {
	what := "more bytes than that"
	if size >= 0 {
		what = fmt.Sprintf("%d bytes", size)
	}
	return &proxy.Error{Kind: proxy.KindPayloadTooLarge, Status: status, Public: fmt.Sprintf(
		"the bound of one answer is %d bytes (gitea.max_response_bytes), this one has %s; "+
			"ask for fewer items or a narrower range",
		c.maxResponse, what)}
}

// overBinary is the error of a file over results.max_binary_bytes.
func (c *Client) overBinary(status int, size int64, media string) *proxy.Error {
	return &proxy.Error{Kind: proxy.KindPayloadTooLarge, Status: status, Public: fmt.Sprintf(
		"the file (%s) has %d bytes, the bound is %d bytes (results.max_binary_bytes); have a person download it "+
			"from Gitea's web pages, or the operator raise the bound",
		cmp.Or(media, "of no media type"), size, c.maxBinary)}
}
