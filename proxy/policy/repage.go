package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// To a bound team nothing else exists. So where a list may hold rows of others,
// its pages are made of the rows that the team may see: a page with gaps, or an
// empty one before the last, would show how many there are of the others.

// maxRepaged bounds the pages of Gitea's that one page of a bound team's is made of. It
// bounds the load on Gitea that one call of a bound team can cause.
const maxRepaged = 40

// repages reports whether an operation's pages are made anew.
func (p *Policy) repages(op *operation) bool {
	s := p.scope
	hides := s.bindRepo != "" || s.any() // some of the owner's own
	return s.bindOwner != "" && op.tool.Paging == proxy.PagingPage && op.site.Rows != "" &&
		(op.site.Foreign || hides && op.repo == "")
}

// book gathers the rows of one page out of Gitea's pages.
type book struct {
	page, limit int
	seen        int      // rows that may be seen, so far
	rows        [][]byte // those of the page
}

// repage answers with the wanted page of what may be seen.
func (p *Policy) repage(ctx context.Context, c *proxy.Call, op *operation, next proxy.Handler) (*proxy.Result, error) {
	// Stages above must find the call as they left it.
	given := c.Wire.Query
	defer func() { c.Wire.Query = given }()
	b := book{page: pageOf(given)}
	// Each page of the team's needs at least one of Gitea's.
	if b.page > maxRepaged {
		return nil, p.tooFar()
	}
	for n := 1; ; n++ {
		c.Wire.Query = withPage(given, n)
		res, err := next.Handle(ctx, c)
		if err != nil {
			return nil, p.scrub(c, op, err)
		}
		switch {
		case res.Kind != proxy.BodyJSON || res.Page == nil:
			return p.filter(op, res)
		case n == 1:
			b.limit = max(res.Page.Limit, 1)
		}
		w := p.view(op)
		head, rows, tail := w.list(jsonscan.Trim(res.Body))
		b.add(rows)
		// One row more than the page has, to know whether another page follows.
		if b.seen <= b.page*b.limit && res.Page.NextPage != nil {
			if n == maxRepaged {
				return nil, p.tooFar()
			}
			continue
		}
		res.Body = slices.Concat(head, bytes.Join(b.rows, []byte(",")), tail)
		// Without counts: they would show that there are others.
		res.Page = &proxy.Pagination{Page: b.page, Limit: b.limit}
		if following := b.page + 1; b.seen > b.page*b.limit {
			res.Page.NextPage = &following
		}
		return res, nil
	}
}

// tooFar is the error of a page that would take too many requests.
func (p *Policy) tooFar() error {
	return proxy.NewError(proxy.KindPolicyDenied, "the list is too long to be confined to what this endpoint may see; "+
		"narrow it with more arguments, or ask for a lower page (rule policy."+p.scope.name()+")", nil)
}

// add keeps the rows that belong to the page.
func (b *book) add(rows [][]byte) {
	first := (b.page - 1) * b.limit
	for _, row := range rows {
		// Cloned, as the memory of an answer serves the next one.
		if b.seen >= first && b.seen < first+b.limit {
			b.rows = append(b.rows, slices.Clone(row))
		}
		b.seen++
	}
}

// list returns the rows of an answer that may be seen, and what is around them. Members
// besides the list that are objects or lists go: in such an answer they are about all rows,
// hidden ones included.
func (w *view) list(data []byte) (head []byte, rows [][]byte, tail []byte) {
	if jsonscan.Kind(data) == '[' {
		return []byte("["), w.visible(data), []byte("]")
	}
	list := []byte(nil)
	head = []byte("{")
	for name, v := range jsonscan.Members(data) {
		switch {
		case jsonscan.Kind(v) == '[' && list == nil:
			list = v
			tail = append(append(append(tail, ','), name...), ':')
		case jsonscan.NameIs(name, "total_count"), jsonscan.Kind(v) == '[', jsonscan.Kind(v) == '{':
		default:
			head = append(append(append(append(head, name...), ':'), v...), ',')
		}
	}
	if list == nil { // an empty list may be null
		body, seen := w.value(nil, data, 0)
		if seen == denied {
			body = []byte("null")
		}
		return body, nil, nil
	}
	head = append(append(head[:len(head):len(head)], tail[1:]...), '[')
	return head, w.visible(list), []byte("]}")
}

// visible returns copies of the elements that may be seen.
func (w *view) visible(list []byte) (rows [][]byte) {
	for _, row := range jsonscan.Elements(w.rows(nil, list)) {
		rows = append(rows, row)
	}
	return rows
}

// pageOf returns the page that a query wants.
func pageOf(query []proxy.Field) int {
	f := proxy.Find(query, "page")
	if f == nil {
		return 1
	}
	n, err := strconv.Atoi(fmt.Sprint(f.Value)) // a json.Number, or a text of the client's
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// withPage returns a copy of a query that wants another page.
func withPage(query []proxy.Field, page int) []proxy.Field {
	out := append(make([]proxy.Field, 0, len(query)+1), query...)
	f := proxy.Find(out, "page")
	if f == nil {
		out = append(out, proxy.Field{Name: "page", In: proxy.InQuery})
		f = &out[len(out)-1]
	}
	f.Value = json.Number(strconv.Itoa(page))
	return out
}
