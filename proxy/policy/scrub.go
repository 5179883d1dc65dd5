package policy

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"aegis/proxy"
)

var (
	twoWords = regexp.MustCompile(`[A-Za-z0-9._-]+/[A-Za-z0-9._-]+`)
	movedTo  = regexp.MustCompile(`is now ([A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)?);`)
)

// scrub makes an error fit for the team: it names no repository that the team may not see,
// unless the call named it itself. Gitea's words are withheld as a whole: cutting a name
// out of a sentence leaves the fact that there was one.
func (p *Policy) scrub(c *proxy.Call, op *operation, err error) error {
	e := proxy.AsError(err)
	switch {
	// Whether the object is missing or another team's must not be told apart.
	case op.site.Reach == reachResult && (e.Kind == proxy.KindNotFound || e.Kind == proxy.KindForbidden):
		return missing()
	case e.Kind == proxy.KindMoved:
		return p.scrubMoved(e)
	// Without a status it is Aegis that speaks, in its own words.
	case e.Status == 0 || !p.namesHidden(c, e.Public):
		return err
	}
	return &proxy.Error{
		Kind: e.Kind, Status: e.Status, RetryAfter: e.RetryAfter, Err: e.Err,
		Public: "Gitea refused the request (" + strings.ToLower(http.StatusText(e.Status)) +
			"); its words are withheld, as they name what this endpoint may not show",
	}
}

// scrubMoved hides where a repository or account went when that is outside.
func (p *Policy) scrubMoved(e *proxy.Error) error {
	if m := movedTo.FindStringSubmatch(e.Public); m != nil {
		w := view{scope: p.scope}
		seen := w.account(m[1])
		if strings.Contains(m[1], "/") {
			seen = w.named(m[1])
		}
		if seen == allowed {
			return e
		}
	}
	return &proxy.Error{
		Kind: proxy.KindMoved, Status: e.Status, Err: e.Err,
		Public: "what the call names is now elsewhere, where this endpoint may not reach; nothing was sent there",
	}
}

// namesHidden reports whether a text names a repository that the team may not see. What
// the call itself gives as a branch or file is none.
func (p *Policy) namesHidden(c *proxy.Call, text string) bool {
	w := view{scope: p.scope}
	for _, full := range twoWords.FindAllString(text, -1) {
		// The full stop of a sentence.
		full = strings.TrimRight(full, ".")
		if w.named(full) == denied && !refersTo(c, full) {
			return true
		}
	}
	return false
}

// refersTo reports whether a call gives a text, or more than it, as a branch, a
// file or a commit.
func refersTo(c *proxy.Call, text string) bool {
	r := reader{wire: &c.Wire}
	return slices.ContainsFunc(r.fields(), func(f *proxy.Field) bool {
		v, ok := f.Value.(string)
		return ok && strings.Contains(v, text) && (f.Name == "sha" || f.Name == "head" || namesFile(f.Name, f.In))
	})
}
