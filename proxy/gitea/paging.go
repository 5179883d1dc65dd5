package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

const (
	// fallbackMax is Gitea's own MAX_RESPONSE_ITEMS, for servers that do not
	// show theirs.
	fallbackMax = 50
	// fixedPage is the page size of the routes that take a page but no size
	// (the revisions of a wiki page).
	fixedPage = 50
	// sizesTimeout bounds the question for the page sizes, sizesRetry is how
	// long a failed one is not repeated.
	sizesTimeout = 2 * time.Second
	sizesRetry   = 5 * time.Minute
)

// sizes are the page sizes of a server.
type sizes struct {
	Max  int `json:"max_response_items"`
	Tree int `json:"default_git_trees_per_page"`
}

// pageSizes learns the sizes of a server once. They are the server's and not the caller's,
// so all callers share them; a restart of Aegis learns what an administrator has changed.
type pageSizes struct {
	known atomic.Pointer[sizes]
	mu    sync.Mutex // held by the one that asks
	asked time.Time  // guarded by mu
}

// pageSizes returns what the server says of its page sizes (GET /settings/api),
// Gitea's defaults as long as it does not.
func (c *Client) pageSizes(ctx context.Context, cred proxy.Credential) sizes {
	if s := c.paging.known.Load(); s != nil {
		return *s
	}
	// One call asks, the others wait for its answer instead of asking too.
	c.paging.mu.Lock()
	defer c.paging.mu.Unlock()
	s := sizes{Max: fallbackMax, Tree: defaultTreeLimit}
	if known := c.paging.known.Load(); known != nil {
		return *known
	}
	// A server that does not answer must not cost every call a request.
	if !c.paging.asked.IsZero() && time.Since(c.paging.asked) < sizesRetry {
		return s
	}
	c.paging.asked = time.Now()
	// The answer serves every later call, so this call's end must not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sizesTimeout)
	defer cancel()
	var got sizes
	if err := c.ask(ctx, "/settings/api", "", cred, &got); err != nil {
		c.log.Debug().Err(err).Msg("Gitea does not tell its page sizes; taking its defaults")
		return s
	}
	s = sizes{Max: or(got.Max, s.Max), Tree: or(got.Tree, s.Tree)}
	c.paging.known.Store(&s)
	return s
}

// pageFacts are what an answer says about its place in a list. Zero means that it does not
// say. They are gathered before anything is decided, as routes of Gitea contradict each
// other and themselves.
type pageFacts struct {
	linked           bool // there is a Link header, so no rel=next means no next page
	next, last       int
	total            int64 // -1 when unknown
	perPage, hasMore int   // hasMore: 1 yes, -1 no
	rows             int   // -1 when unknown
}

// addPaging puts the place of a page into res, and a warning where the reader would draw
// the wrong conclusion from it. Models go by what they are told: without a next page they
// stop.
func (c *Client) addPaging(ctx context.Context, tool *proxy.Tool, req *request, ans *answer, res *proxy.Result) {
	switch tool.Paging {
	case proxy.PagingIgnored:
		if res.Kind != proxy.BodyJSON || jsonscan.Kind(res.Body) != '[' {
			return // one thing, not a list of things
		}
		res.Warnings = append(res.Warnings,
			"this route returns everything in one answer; page and limit have no effect")
		return
	case proxy.PagingPage, proxy.PagingPerPage:
	default:
		return
	}
	// What Gitea says differs from route to route: Link, X-Total-Count, X-HasMore,
	// members of the body, or nothing.
	facts := readPageFacts(tool, ans, res)
	page := &proxy.Pagination{Page: max(req.page, 1)}
	page.Limit = c.effectiveLimit(ctx, tool, req, facts)
	if facts.rows > 0 && facts.total < int64(page.Page-1)*int64(page.Limit)+int64(facts.rows) {
		facts.total = -1 // more was seen than there is said to be
	}
	setNext(page, facts)
	if page.NextPage == nil && facts.silent() && facts.rows >= page.Limit {
		res.Warnings = append(res.Warnings, fmt.Sprintf("page %d is full and Gitea does not say whether more follow; "+
			"ask for page %d to find out", page.Page, page.Page+1))
	}
	res.Page = page
}

// silent reports whether the answer says nothing about what follows.
func (f *pageFacts) silent() bool { return !f.linked && f.total < 0 && f.hasMore == 0 }

// setNext derives the counts of a page. A next page is promised only when the answer says
// that there is one. A promise that is wrong costs a model one more call for an empty page;
// a missing one hides rows.
func setNext(page *proxy.Pagination, f pageFacts) {
	if f.total >= 0 {
		total := f.total
		page.TotalCount = &total
		last := max(int((total+int64(page.Limit)-1)/int64(page.Limit)), 1)
		page.LastPage = &last
	} else if f.last > 0 {
		page.LastPage = &f.last
	}
	more := false
	switch {
	// The most exact first: a Link header names the page.
	case f.linked:
		more = f.next > page.Page
	case f.hasMore != 0:
		more = f.hasMore > 0
	case f.total >= 0:
		more = int64(page.Page)*int64(page.Limit) < f.total
	}
	// An empty page ends a list, whatever its headers count.
	if more && f.rows != 0 {
		next := page.Page + 1
		page.NextPage = &next
	}
}

// effectiveLimit returns the page size that Gitea really used: it caps what it is asked for
// without a word. The server is asked for its cap only when the answer does not show it. A
// page that is taken for larger than it was would make a reader skip rows.
func (c *Client) effectiveLimit(ctx context.Context, tool *proxy.Tool, req *request, f pageFacts) int {
	switch {
	case f.perPage > 0:
		return f.perPage
	case tool.Paging == proxy.PagingPerPage:
		bound := c.pageSizes(ctx, req.cred).Tree
		if req.limit > 0 {
			return min(req.limit, bound)
		}
		return bound
	// The route takes no size.
	case req.limit == 0:
		return fixedPage
	// It gave as many as were asked for, so it did not cap.
	case f.rows >= req.limit:
		return req.limit
	}
	return max(min(req.limit, c.pageSizes(ctx, req.cred).Max), f.rows, 1)
}

// readPageFacts gathers the facts from the headers, and from the body where the
// headers lack them.
func readPageFacts(tool *proxy.Tool, ans *answer, res *proxy.Result) pageFacts {
	f, h := pageFacts{total: -1, rows: -1}, ans.header
	if links := h.Values("Link"); len(links) > 0 {
		f.linked = true
		f.next, f.last = parseLink(strings.Join(links, ","))
	}
	// The timeline counts the page, not the whole.
	if !strings.HasSuffix(res.Path, "/timeline") {
		f.total = headerCount(h, "X-Total-Count")
		if f.total < 0 {
			f.total = headerCount(h, "X-Total")
		}
	}
	f.perPage = int(max(headerCount(h, "X-PerPage"), 0))
	if n := headerCount(h, "X-PageCount"); n > 0 && f.last == 0 {
		f.last = int(n)
	}
	switch h.Get("X-HasMore") {
	case "true":
		f.hasMore = 1
	case "false":
		f.hasMore = -1
	}
	if res.Kind != proxy.BodyJSON {
		return f
	}
	switch jsonscan.Kind(res.Body) {
	case '[':
		if f.rows = res.Items; f.rows == 0 { // empty, or picked and not counted
			f.rows = count(res.Body)
		}
	case '{':
		if f.silent() || tool.Paging == proxy.PagingPerPage {
			f.readObject(res.Body)
			f.rows = max(f.rows, ans.rows)
		}
	}
	return f
}

// readObject finds the facts in a body that is an object with a list in it. The longest
// list is the one that is paged: others in such an answer are small.
func (f *pageFacts) readObject(body []byte) {
	for name, raw := range jsonscan.Members(body) {
		switch {
		case jsonscan.NameIs(name, "total_count"):
			if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 {
				f.total = n
			}
		case jsonscan.NameIs(name, "truncated"):
			if f.hasMore = -1; string(raw) == "true" {
				f.hasMore = 1
			}
		case jsonscan.Kind(raw) == '[':
			f.rows = max(f.rows, count(raw))
		}
	}
}

// count returns the number of elements of a JSON array.
func count(array []byte) (n int) {
	for range jsonscan.Elements(array) {
		n++
	}
	return n
}

// headerCount reads a header that holds a count, -1 when it does not.
func headerCount(h http.Header, name string) int64 {
	// 32 bits: products of counts and sizes must not overflow.
	n, err := strconv.ParseInt(h.Get(name), 10, 32)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// link is one link of a header and its parameters.
var link = regexp.MustCompile(`<([^>]*)>([^<]*)`)

// parseLink returns the pages that a Link header (RFC 8288) names as next and
// last; 0 for those that it does not.
func parseLink(header string) (next, last int) {
	for _, m := range link.FindAllStringSubmatch(header, -1) {
		for param := range strings.SplitSeq(m[2], ";") {
			name, value, _ := strings.Cut(strings.Trim(param, " \t,"), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "rel") {
				continue
			}
			switch strings.Trim(value, "\" \t,") {
			case "next":
				next = linkPage(m[1])
			case "last":
				last = linkPage(m[1])
			}
		}
	}
	return next, last
}

// linkPage returns the page in the query of a link's target, 0 when there is none. The rest
// of the address is not looked at: behind proxies it may name another host.
func linkPage(target string) int {
	_, query, _ := strings.Cut(target, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(values.Get("page"), 10, 32)
	if err != nil {
		return 0
	}
	return int(max(n, 0))
}
