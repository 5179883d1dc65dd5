package proxy_test

import (
	"encoding/json"
	"testing"

	"aegis/proxy"
)

// TestResolve reads the request and the target from an operation's own arguments.
func TestResolve(t *testing.T) {
	t.Parallel()
	integer, text := &proxy.Schema{Type: "integer"}, &proxy.Schema{Type: "string"}
	op := &proxy.Tool{OperationID: "x", Method: "PATCH", Path: "/repos/{owner}/{repo}/issues/{index}.{kind}", Params: []proxy.Param{
		{Name: "title", Wire: "title", In: proxy.InBody}, {Name: "owner", Wire: "owner", In: proxy.InPath},
		{Name: "repo", Wire: "repo", In: proxy.InPath}, {Name: "index", Wire: "index", In: proxy.InPath, Schema: integer},
		{Name: "kind", Wire: "kind", In: proxy.InPath}, {Name: "of", Wire: "q", In: proxy.InQuery},
	}}
	c := &proxy.Call{Args: proxy.Arguments{"owner": "a/b", "repo": "r", "index": json.Number("7"), "kind": "diff", "of": "z", "title": "t"}}
	c.Resolve(op)
	if want := (proxy.Target{Owner: "a/b", Repo: "r", Index: 7}); c.Op != op || c.Target != want {
		t.Errorf("target %+v, want %+v", c.Target, want)
	}
	w := &c.Wire
	if w.Method != "PATCH" || w.Path != "/repos/a/b/r/issues/7.diff" || w.Sends != proxy.InBody {
		t.Errorf("%s %s sends %q", w.Method, w.Path, w.Sends)
	}
	if len(w.Values) != 4 || len(w.Query) != 1 || len(w.Body) != 1 || w.Query[0].Name != "q" || w.Query[0].Argument() != "of" {
		t.Errorf("values %+v, query %+v, body %+v", w.Values, w.Query, w.Body)
	}
	// Appending to one list must not write into the next.
	_ = append(w.Values, proxy.Field{Name: "evil"})
	if w.Query[0].Name != "q" {
		t.Error("the lists of a request share their ends")
	}
	// Digits are a number only where the operation takes one.
	for schema, want := range map[*proxy.Schema]int64{integer: 12, text: 0, nil: 0} {
		one := &proxy.Tool{Params: []proxy.Param{{Name: "id", Wire: "id", In: proxy.InPath, Schema: schema}}}
		got := proxy.TargetOf(one, []proxy.Field{{Name: "id", In: proxy.InPath, Value: "12"}})
		if got.ID != want {
			t.Errorf("id %d, want %d", got.ID, want)
		}
	}
}

// TestBodiesAreSent even when they are empty, where Gitea wants one.
func TestBodiesAreSent(t *testing.T) {
	t.Parallel()
	param := func(in proxy.In) []proxy.Param { return []proxy.Param{{Name: "x", Wire: "x", In: in}} }
	for _, c := range []struct {
		params []proxy.Param
		args   proxy.Arguments
		want   proxy.In
	}{
		{nil, nil, ""}, {param(proxy.InQuery), proxy.Arguments{"x": "1"}, ""}, {param(proxy.InBody), nil, proxy.InBody},
		{param(proxy.InWhole), nil, ""}, {param(proxy.InWhole), proxy.Arguments{"x": "1"}, proxy.InWhole},
		{param(proxy.InFile), nil, proxy.InForm}, {append(param(proxy.InWhole), param(proxy.InBody)...), nil, proxy.InBody},
	} {
		call := &proxy.Call{Args: c.args}
		call.Resolve(&proxy.Tool{Params: c.params})
		if call.Wire.Sends != c.want {
			t.Errorf("%v with %v sends %q, want %q", c.params, c.args, call.Wire.Sends, c.want)
		}
	}
}
