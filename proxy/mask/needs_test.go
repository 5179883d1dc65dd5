package mask_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy"
)

// TestStageNeedsTheEncoding: who asks for the content of a file alone must not
// get a secret in it unmasked because nothing says that it is base64.
func TestStageNeedsTheEncoding(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ fields, want []string }{
		{nil, nil},
		{[]string{"name", "contents", "my_content"}, nil},
		{[]string{"content"}, []string{"encoding"}},
		{[]string{"files[].content", "a.b.content"}, []string{"files.encoding", "a.b.encoding"}},
	} {
		c := call(&proxy.Tool{ReadOnly: true}, nil)
		c.Options.Fields = tc.fields
		var got []string
		h := newEngine(t, nil).Stage()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
			got = c.Options.Needs
			return jsonResult("{}"), nil
		}))
		if _, err := h.Handle(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.fields, diff)
		}
	}
}
