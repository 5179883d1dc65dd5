package audit_test

import (
	"context"
	"testing"

	"aegis/proxy"
	"aegis/proxy/audit"
)

// TestTargetOfUnknownRoutes: of a route that the catalog lacks the record says what its
// path tells, as far as it is a plain name without a secret.
func TestTargetOfUnknownRoutes(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]*audit.Target{
		"/repos/acme/infra/newthing/7":        {Owner: "acme", Repo: "infra"},
		"/repos/acme/infra/issues/7/newthing": {Owner: "acme", Repo: "infra", Index: 7},
		"/orgs/acme/newthing":                 {Org: "acme"},
		"/admin/users/bob/newthing":           {User: "bob"},
		"/repos/hunter2/in fra/newthing":      {Owner: "[masked]", Repo: "[masked]"},
		"/newthing/acme":                      nil,
	} {
		r := newRig(t, settings())
		l := r.open()
		c := newCall()
		h := proxy.Chain(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return &proxy.Result{}, nil }),
			l.Stage(), func(next proxy.Handler) proxy.Handler {
				return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
					c.Tool = &proxy.Tool{Name: "gitea_api_request", Method: "DELETE", Risk: proxy.R4}
					c.Wire = proxy.Wire{Method: "DELETE", Path: path}
					return next.Handle(ctx, c)
				})
			}, l.RecordStart())
		if _, err := h.Handle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		l.Close()
		for _, rec := range of(r.balanced(), audit.ToolInvocation) {
			if got := rec.Call.Target; (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%s: %+v, want %+v", path, got, want)
			}
		}
	}
}
