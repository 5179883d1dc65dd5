package policy

import (
	"context"
	"net/http"
	"slices"

	"aegis/proxy"
	"aegis/proxy/internal/jsonscan"
)

// Rows returns the stage that removes from results, and from errors, what the
// team may not see. It belongs right around the handler that calls Gitea: what
// is above it (masking, the envelope, the audit) never learns of it. It asks
// for whole answers, whatever fields the call wants, as a row without its names
// cannot be judged. It is nil when there is no rule about repositories.
func (p *Policy) Rows() proxy.Stage {
	if !p.scope.restricts() {
		return nil
	}
	return func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			op := p.operation(c)
			if op == nil {
				return nil, p.withheld()
			}
			fields := c.Options.Fields
			c.Options.Fields = nil
			defer func() { c.Options.Fields = fields }()
			if p.repages(op) {
				return p.repage(ctx, c, op, next)
			}
			res, err := next.Handle(ctx, c)
			if err != nil {
				return nil, p.scrub(c, op, err)
			}
			return p.filter(op, res)
		})
	}
}

// withheld is the error of an answer that cannot be judged.
func (p *Policy) withheld() error {
	return proxy.NewError(proxy.KindPolicyDenied,
		"Gitea's answer may show repositories that this endpoint may not reach, so it is withheld "+
			"(rule policy."+p.scope.name()+")", nil)
}

// missing is the error of an object that is not there, or not for the team: the
// same in both cases.
func missing() error {
	return &proxy.Error{
		Kind: proxy.KindNotFound, Status: http.StatusNotFound,
		Public: "it does not exist, or this identity or endpoint may not see it",
	}
}

// filter removes from a result what the team may not see. Nothing is put in its place: an
// empty row would show that there is one.
func (p *Policy) filter(op *operation, res *proxy.Result) (*proxy.Result, error) {
	// What is promised as JSON is data of Gitea's; anything else is the content of
	// a file, a log or a diff, which belongs to the path's repository as it is.
	judged := op.site.Rows != "" || op.site.Reach == reachResult || op.tool.Produces == "application/json"
	switch {
	case len(res.Body) == 0, !judged:
		return res, nil
	case res.Kind != proxy.BodyJSON:
		return nil, p.withheld()
	}
	w := p.view(op)
	body, seen := w.root(make([]byte, 0, len(res.Body)), jsonscan.Trim(res.Body))
	switch {
	// As if it did not exist: "forbidden" would say that it does.
	case seen == denied && op.tool.ReadOnly, op.site.Reach == reachResult && seen != allowed:
		return nil, missing()
	// A write has happened; an error would have it repeated.
	case seen == denied:
		body = []byte("null")
		res.Warnings = append(res.Warnings,
			"the call was carried out; its result is of a repository that this endpoint may not show")
	}
	res.Body = body
	if (op.site.Rows != "" || w.removed > 0) && res.Page != nil {
		page := *res.Page
		page.TotalCount, page.LastPage = nil, nil // they count what is hidden
		res.Page = &page
	}
	// A bound endpoint is one where nothing else exists: there a count would be
	// one of other people's things.
	if w.removed > 0 && p.scope.bindOwner == "" {
		res.Truncation = &proxy.Truncation{Reason: "policy", Removed: w.removed}
	}
	return res, nil
}

func (p *Policy) view(op *operation) view {
	return view{scope: p.scope, cross: op.site.Rows == rowsCross, ofRepo: op.repo != ""}
}

// verdict is what a value says of the repository that it is of.
type verdict uint8

const (
	unknown verdict = iota // nothing
	allowed                // it is one that the team may see
	denied                 // it is one that the team may not see; the greatest, so that max lets it win
)

// view copies a JSON value without what the team may not see.
type view struct {
	scope   *scope
	cross   bool // each row must say of which repository it is
	ofRepo  bool // the answer is about the path's repository
	removed int  // rows
}

// root copies a whole answer.
func (w *view) root(dst, data []byte) ([]byte, verdict) {
	switch jsonscan.Kind(data) {
	case '[':
		return w.rows(dst, data), unknown
	case '{':
		if !w.cross {
			return w.value(dst, data, 0)
		}
	// A text or a number alone names nothing.
	default:
		return append(dst, data...), unknown
	}
	dst = append(dst, '{')
	for name, v := range jsonscan.Members(data) {
		if jsonscan.NameIs(name, "total_count") { // it counts what is hidden
			continue
		}
		dst = append(append(comma(dst), name...), ':')
		if jsonscan.Kind(v) == '[' {
			dst = w.rows(dst, v)
			continue
		}
		var seen verdict
		at := len(dst)
		if dst, seen = w.value(dst, v, 1); seen == denied {
			dst = append(dst[:at], "null"...)
		}
	}
	return append(dst, '}'), unknown
}

// rows copies the elements of a list that may be seen.
func (w *view) rows(dst, list []byte) []byte {
	dst = append(dst, '[')
	for _, row := range jsonscan.Elements(list) {
		at := len(dst)
		dst = comma(dst)
		var seen verdict
		// Lists of names, such as the repositories of a team.
		if w.cross && jsonscan.Kind(row) == '"' {
			seen = w.named(jsonscan.Unquote(row))
			dst = append(dst, row...)
		} else {
			dst, seen = w.value(dst, row, 1)
		}
		if seen == denied || w.cross && seen != allowed {
			dst = dst[:at]
			w.removed++
		}
	}
	return append(dst, ']')
}

// comma begins a further element or member of what dst ends with. No value ends with a
// bracket that opens, so that one says that there is none before.
func comma(dst []byte) []byte {
	if c := dst[len(dst)-1]; c == '[' || c == '{' {
		return dst
	}
	return append(dst, ',')
}

// value copies a value. What is copied of a denied one is for the caller to drop. Bytes are
// copied as they are, never decoded and written anew: numbers and escapes of Gitea come
// through unchanged.
func (w *view) value(dst, data []byte, depth int) ([]byte, verdict) {
	if depth > maxDepth*2 { // Gitea nests a few levels; what is deeper cannot be judged
		return append(dst, "null"...), denied
	}
	switch jsonscan.Kind(data) {
	case '[':
		dst = append(dst, '[')
		for _, item := range jsonscan.Elements(data) {
			at := len(dst)
			var seen verdict
			if dst, seen = w.value(comma(dst), item, depth+1); seen == denied {
				dst = dst[:at]
			}
		}
		return append(dst, ']'), unknown
	case '{':
		return w.object(dst, data, depth)
	}
	return append(dst, data...), unknown
}

// object copies an object without the members that show what the team may not
// see.
func (w *view) object(dst, data []byte, depth int) ([]byte, verdict) {
	o := look(data)
	seen := w.judge(&o)
	if seen == denied {
		return append(dst, "null"...), denied
	}
	// First, as the members that go with a lost one may stand before it.
	lost := w.lost(&o, data)
	dst = append(dst, '{')
	for name, v := range jsonscan.Members(data) {
		if w.drops(&o, name, v) || len(lost) > 0 && gone(lost, jsonscan.Unquote(name)) {
			continue
		}
		at := len(dst)
		dst = append(append(comma(dst), name...), ':')
		var inner verdict
		if dst, inner = w.value(dst, v, depth+1); inner == denied {
			dst = dst[:at]
		}
	}
	return append(dst, '}'), seen
}

// lost returns the members of an object that show another repository, by name.
func (w *view) lost(o *object, data []byte) (names []string) {
	// Most objects of long lists have none, and need no second look.
	if o.objects == 0 {
		return nil
	}
	for name, v := range jsonscan.Members(data) {
		if jsonscan.Kind(v) != '{' {
			continue
		}
		inner := look(v)
		if w.judge(&inner) == denied {
			names = append(names, jsonscan.Unquote(name))
		}
	}
	return names
}

// gone reports whether a member goes with a lost one: itself, its id, and a
// branch's label, which may name the repository.
func gone(lost []string, name string) bool {
	return slices.ContainsFunc(lost, func(l string) bool {
		return name == l || name == l+"_id" || l == "repo" && name == "label"
	})
}
