package gitea

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

const (
	mediaJSON  = "application/json"
	mediaText  = "text/plain"
	mediaBytes = "application/octet-stream"
	mediaForm  = "multipart/form-data"
)

const (
	// defaultLimit is the page size when the caller names none. Aegis sends it
	// although Gitea has the same default: an administrator may set another,
	// and a page that is read beside others must not depend on that.
	defaultLimit = 30
	// defaultTreeLimit is the same for git trees.
	defaultTreeLimit = 1000
	// maxQueryValue bounds one query value, maxQuery the whole query, in bytes.
	maxQueryValue = 16 << 10
	maxQuery      = 64 << 10
)

// request is one HTTP request to Gitea, ready to send. It has no headers of the client's,
// so none can reach Gitea.
type request struct {
	method      string
	path        string // escaped, below /api/v1
	query       string
	body        []byte
	contentType string
	accept      string
	cred        proxy.Credential
	sudo        string
	// repeatable permits a second attempt: the request only reads.
	repeatable bool
	// page and limit are the paging that was asked for; 0 when none was.
	page, limit int
	// keep is what is kept of a JSON answer; nil keeps all.
	keep *jsonscan.Selection
}

// prepare builds the request of a call, or says what is wrong with it before anything has
// been sent. The stages above have checked most of this; whatever they let through by
// mistake ends here.
func (c *Client) prepare(call *proxy.Call) (*request, error) {
	tool, op := call.Tool, call.Op
	if tool == nil || call.Identity == nil {
		return nil, proxy.NewError(proxy.KindInternal, "the call has no tool or no identity", nil)
	}
	if tool.BasicAuthOnly {
		return nil, proxy.NewError(proxy.KindBasicAuthOnly,
			"Gitea opens this route to a user name and password only, never to a token; "+
				"use Gitea's web pages (Settings, Applications)", nil)
	}
	if call.Identity.Credential.Authorization() == "" {
		// Gitea would answer as it does to strangers, which looks like an empty server.
		return nil, proxy.NewError(proxy.KindUnauthorized, "this identity has no Gitea token; sign in again", nil)
	}
	req := &request{
		method: call.Wire.Method,
		accept: acceptOf(tool),
		cred:   call.Identity.Credential,
		// Both must say so: some GETs change something, and a POST that only computes
		// may be slow.
		repeatable: tool.ReadOnly && (call.Wire.Method == http.MethodGet || call.Wire.Method == http.MethodHead),
	}
	if err := req.setSudo(call); err != nil {
		return nil, err
	}
	if op == nil {
		op = &proxy.Tool{} // without parameters: the client spells everything itself
	}
	if err := checkNames(op); err != nil {
		return nil, err
	}
	if err := req.fillPath(call); err != nil {
		return nil, err
	}
	if err := req.fillQuery(op, call.Wire.Query); err != nil {
		return nil, err
	}
	return req, c.fillBody(req, call)
}

// acceptOf returns the Accept header of a tool's request. Gitea chooses between forms on
// few routes; on the others it ignores the header.
func acceptOf(tool *proxy.Tool) string {
	if tool.Produces == mediaJSON {
		return mediaJSON
	}
	return "*/*"
}

// setSudo takes over the login to act as. The catalog has asked for the right already; it
// is asked for again where the header is set.
func (r *request) setSudo(call *proxy.Call) error {
	login := call.Options.Sudo
	if login == "" {
		return nil
	}
	if !call.Identity.AllowSudo {
		return proxy.NewError(proxy.KindForbidden, "this identity may not act as another user", nil)
	}
	// It becomes a header, where a line end would begin another one.
	if len(login) > 255 || checkPathValue("username", login) != "" || strings.IndexFunc(login, notASCII) >= 0 {
		return invalid("sudo", "must be the login of a Gitea user")
	}
	r.sudo = login
	return nil
}

func notASCII(r rune) bool { return r >= utf8.RuneSelf }

// checkNames refuses tools that would send what Gitea takes for a credential or for an
// impersonation: it honours these in queries and in form bodies. The parser of catalogs
// refuses them in queries; forms, and tools made in any other way, meet the check here.
func checkNames(tool *proxy.Tool) error {
	for i := range tool.Params {
		p := &tool.Params[i]
		// A mistake in a catalog, and no client's: catalogs come from descriptions of
		// servers.
		if p.In != proxy.InBody && p.In != proxy.InPath && isSteering(p.Wire) {
			return proxy.NewError(proxy.KindInternal, "the tool carries a parameter that Aegis does not send", nil)
		}
	}
	return nil
}

// isSteering reports whether Gitea reads a query or form field of this name as
// an impersonation or a credential.
func isSteering(name string) bool {
	for _, steers := range []string{"sudo", "token", "access_token"} {
		if strings.EqualFold(name, steers) { // as forgiving as any decoder: not ToLower
			return true
		}
	}
	return false
}

// fillQuery builds the query in the order of the operation's parameters; what it
// has none for follows. Empty strings and arrays are not sent. A list is always asked
// for by page and size together, because some routes of Gitea ignore a size that
// comes alone.
func (r *request) fillQuery(op *proxy.Tool, query []proxy.Field) error {
	r.setPaging(op, query)
	var b strings.Builder
	for i := range op.Params {
		p := &op.Params[i]
		if p.In != proxy.InQuery {
			continue
		}
		f := proxy.Find(query, p.Wire)
		switch {
		case p.Wire == "page" && r.page > 0:
			f = paging(p, r.page)
		case p.Wire == limitName(op.Paging) && r.limit > 0:
			f = paging(p, r.limit)
		}
		if f == nil {
			continue
		}
		if err := writeQuery(&b, f); err != nil {
			return err
		}
	}
	for i := range query {
		if f := &query[i]; op.Param(proxy.InQuery, f.Name) == nil {
			if err := writeQuery(&b, f); err != nil {
				return err
			}
		}
	}
	if b.Len() > maxQuery {
		return proxy.NewError(proxy.KindInvalidArguments,
			"the arguments that go into the query are too long together; ask for less at a time", nil)
	}
	r.query = b.String()
	return nil
}

// paging returns the parameter of a page or its size as it is sent.
func paging(p *proxy.Param, n int) *proxy.Field {
	return &proxy.Field{Name: p.Wire, In: p.In, Value: json.Number(strconv.Itoa(n)), Param: p}
}

// limitName is the wire name of the page size. Trees alone have another one, as GitHub
// calls it.
func limitName(paging proxy.Paging) string {
	if paging == proxy.PagingPerPage {
		return "per_page"
	}
	return "limit"
}

// setPaging decides page and size. They are remembered for reading the answer: Gitea's says
// what it gave and not what it was asked for.
func (r *request) setPaging(op *proxy.Tool, query []proxy.Field) {
	if op.Paging != proxy.PagingPage && op.Paging != proxy.PagingPerPage {
		return
	}
	page, pageGiven := pagingArg(query, "page")
	limit, limitGiven := pagingArg(query, limitName(op.Paging))
	r.page, r.limit = max(page, 1), limit
	// The caller's size, or a route that takes none.
	if limit > 0 || op.Param(proxy.InQuery, limitName(op.Paging)) == nil {
		return
	}
	r.limit = defaultLimit
	if op.Paging == proxy.PagingPerPage {
		r.limit = defaultTreeLimit
		if !pageGiven && !limitGiven {
			// A tree that fits one page is the common case: ask as everyone does.
			r.page, r.limit = 0, 0
		}
	}
}

// pagingArg reads a paging argument; anything that is no positive number counts as absent,
// as it does for Gitea. To read it in any stricter way would have Aegis report another page
// than Gitea gives.
func pagingArg(query []proxy.Field, wire string) (n int, given bool) {
	f := proxy.Find(query, wire)
	if f == nil {
		return 0, false
	}
	text, _ := proxy.Scalar(f.Value)
	if n, err := strconv.Atoi(text); err == nil {
		return max(n, 0), true
	}
	return 0, true
}

// writeQuery appends one parameter. What a client has spelled itself is refused where it
// could mean more than a value: by its name. Values are Gitea's to judge; a name decides
// which parameter is set.
func writeQuery(b *strings.Builder, f *proxy.Field) error {
	if f.Param == nil {
		if f.Name == "" || isSteering(strings.TrimSpace(f.Name)) {
			return invalid("query", "must not hold an empty key, sudo, token or access_token")
		}
		if rule := checkText(f.Name); rule != "" {
			return invalid("query", "a key "+rule)
		}
		if f.Value == nil {
			return nil
		}
	}
	list, isList := f.Value.([]any)
	if !isList {
		text, ok := proxy.Scalar(f.Value)
		if !ok {
			return invalid(argument(f), "must be a string, a number, a boolean or a list of these")
		}
		return writePair(b, f, text)
	}
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, ok := proxy.Scalar(item)
		if !ok {
			return invalid(argument(f), "must be a list of strings, numbers or booleans")
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	// Without a parameter it is not known whether commas join, so the key is repeated.
	if f.Param != nil && !f.Param.Multi {
		return writePair(b, f, strings.Join(texts, ","))
	}
	for _, text := range texts {
		if err := writePair(b, f, text); err != nil {
			return err
		}
	}
	return nil
}

// argument returns the name of the argument that a value came in.
func argument(f *proxy.Field) string {
	switch {
	case f.Param != nil:
		return f.Param.Name
	case f.In == proxy.InBody:
		return "body"
	}
	return string(f.In) // path and query, as the tool for any route calls them
}

// writePair appends "name=value" unless the value is empty.
func writePair(b *strings.Builder, f *proxy.Field, text string) error {
	if text == "" {
		return nil
	}
	if rule := checkQueryValue(f.Name, text); rule != "" {
		return invalid(argument(f), rule)
	}
	if b.Len() > 0 {
		b.WriteByte('&')
	}
	escapeInto(b, f.Name, false)
	b.WriteByte('=')
	escapeInto(b, text, false)
	return nil
}

// checkQueryValue returns the rule that a query value breaks. Values that Gitea hands to
// git as a ref or path obey the rule of paths. Other values are words to search for or to
// compare with, and may hold anything.
func checkQueryValue(wire, v string) string {
	switch {
	case len(v) > maxQueryValue:
		return "must have at most 16384 bytes"
	case !utf8.ValidString(v):
		return "must be valid UTF-8"
	// NUL ends a text in git and in databases.
	case strings.IndexByte(v, 0) >= 0:
		return "must not hold NUL"
	}
	switch wire {
	case "ref", "sha":
		return checkRepoPath(v)
	case "path", "filepath":
		return cmp.Or(checkText(v), checkDots(v))
	}
	return ""
}

// invalid is the error of an argument that breaks a rule. The value is never
// part of it.
func invalid(name, rule string) error {
	return proxy.NewError(proxy.KindInvalidArguments, proxy.Shorten(clean(name), 64)+": "+rule, nil)
}
