package fakegitea

import (
	"fmt"
	"strconv"
	"strings"
)

// defaultPage is the page size when the request names none.
const defaultPage = 30

// window is the requested page after the server's rules: nonsense is the
// default, too much is the cap.
// A bad page or size is never refused; clients that send one get the default.
type window struct{ page, limit int }

// window reads page and limit from the query.
func (c *call) window() window {
	return c.windowBy("limit", defaultPage, c.s.opts.MaxItems)
}

// windowBy reads the page with another size parameter and other bounds.
// The trees of git are paged by per_page and have more on a page.
func (c *call) windowBy(param string, size, most int) window {
	w := window{page: max(c.queryInt("page"), 1), limit: c.queryInt(param)}
	if w.limit <= 0 {
		w.limit = min(size, most)
	}
	w.limit = min(w.limit, most)
	return w
}

// pages is how many pages total items make.
func (w window) pages(total int) int { return (total + w.limit - 1) / w.limit }

// cut returns the items of the page; past the end it is empty, never nil.
// It is a copy, because the world's own lists change while an answer is built.
func cut[T any](w window, items []T) []T {
	if w.page-1 >= w.pages(len(items)) {
		return []T{}
	}
	// The check above keeps a huge page number from overflowing here.
	from := (w.page - 1) * w.limit
	return append([]T{}, items[from:min(from+w.limit, len(items))]...)
}

// linked pages items and sets Link and X-Total-Count. Whether a route is linked or
// counted was measured for each: clients find the next page by one header or the other.
func linked[T any](c *call, items []T) []T {
	w := c.window()
	c.setLink(w, len(items))
	c.setTotal(len(items))
	return cut(w, items)
}

// counted pages items and sets X-Total-Count but no Link, as a number of routes
// do.
// A client that follows Link alone sees the first page of these only, so Aegis reads the count
// as well.
func counted[T any](c *call, items []T) []T {
	c.setTotal(len(items))
	return cut(c.window(), items)
}

// setTotal sets X-Total-Count and exposes it.
func (c *call) setTotal(n int) {
	c.out.header.Set("X-Total-Count", strconv.Itoa(n))
	c.expose("X-Total-Count")
}

// expose appends to Access-Control-Expose-Headers.
// The list grows by each header that is set, in that order, as the recorded answers have it.
func (c *call) expose(names ...string) {
	const key = "Access-Control-Expose-Headers"
	if old := c.out.header.Get(key); old != "" {
		names = append([]string{old}, names...)
	}
	c.out.header.Set(key, strings.Join(names, ", "))
}

// setLink sets the Link header: next, last, first, prev, each only where it
// leads somewhere. The query is repeated as asked, sorted and escaped anew.
func (c *call) setLink(w window, total int) {
	last := w.pages(total)
	page := min(w.page, last) // a page past the end counts as the last one
	var links []string
	add := func(n int, rel string) {
		q := c.r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		u := *c.r.URL
		// The limit stays as asked, even 1000, although no page is that long.
		u.RawQuery = q.Encode()
		links = append(links, fmt.Sprintf("<%s%s>; rel=%q", c.root, u.RequestURI(), rel))
	}
	if page < last {
		add(page+1, "next")
		add(last, "last")
	}
	// A page past the end leads back to the first and to the one before the last.
	if w.page > 1 && last > 0 {
		add(1, "first")
		add(max(page-1, 1), "prev")
	}
	if len(links) > 0 {
		c.out.header.Set("Link", strings.Join(links, ","))
		c.expose("Link")
	}
}

// pageHeaders sets the X-Page family that commits and pull requests have.
// X-Total, which commits alone have, is set there.
func (c *call) pageHeaders(w window, total int) {
	h := c.out.header
	h.Set("X-Page", strconv.Itoa(w.page))
	h.Set("X-PerPage", strconv.Itoa(w.limit))
	h.Set("X-PageCount", strconv.Itoa(w.pages(total)))
	h.Set("X-HasMore", strconv.FormatBool(w.page < w.pages(total)))
	c.expose("X-Page", "X-PerPage", "X-PageCount", "X-HasMore")
}
