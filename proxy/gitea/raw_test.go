package gitea_test

import (
	"testing"

	"aegis/proxy"
)

func TestRaw(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	for _, tc := range []struct {
		args           proxy.Arguments
		method, uri    string
		body, bodyType string
	}{
		{proxy.Arguments{"method": "GET", "path": "/version"}, "GET", "/api/v1/version", "", ""},
		{proxy.Arguments{"method": "GET", "path": "/repos/acme/lab/contents/a b;c.txt"}, "GET", "/api/v1/repos/acme/lab/contents/a%20b%3Bc.txt", "", ""},
		{proxy.Arguments{"method": "GET", "path": "/x", "query": map[string]any{
			"z": "a b", "a": []any{"1", number("2")}, "n": nil, "e": "", "t": true,
		}}, "GET", "/api/v1/x?a=1&a=2&t=true&z=a%20b", "", ""},
		{proxy.Arguments{"method": "POST", "path": "/x", "body": map[string]any{"a": number("1")}}, "POST", "/api/v1/x", `{"a":1}`, "application/json"},
		{proxy.Arguments{"method": "DELETE", "path": "/x"}, "DELETE", "/api/v1/x", "", ""},
	} {
		res := must(t, c, spelled(nil, tc.args))
		all := u.requests()
		got := all[len(all)-1]
		if got.Method != tc.method || got.URI != tc.uri || string(got.Body) != tc.body ||
			got.Header.Get("Content-Type") != tc.bodyType {
			t.Errorf("%v: sent %s %s %q as %q", tc.args, got.Method, got.URI, got.Body, got.Header.Get("Content-Type"))
		}
		if res.Method != tc.method {
			t.Errorf("the result names %s", res.Method)
		}
	}
	before := len(u.requests())
	for _, args := range []proxy.Arguments{
		{}, {"method": "GET"}, {"method": "TRACE", "path": "/x"}, {"method": "CONNECT", "path": "/x"}, {"method": "G ET", "path": "/x"},
		{"method": "GET", "path": "x"}, {"method": "GET", "path": "https://evil.example/x"}, {"method": "GET", "path": "//evil.example/x"},
		{"method": "GET", "path": "/a%2e"}, {"method": "GET", "path": "/a/../b"}, {"method": "GET", "path": "/a//b"}, {"method": "GET", "path": "/a/"},
		{"method": "GET", "path": "/a?b=c"}, {"method": "GET", "path": "/a#b"}, {"method": "GET", "path": "/a\nb"}, {"method": "GET", "path": "/a\\..\\b"},
		{"method": "GET", "path": "/repos/o/r/contents/.git/config"}, {"method": "GET", "path": "/"},
		{"method": "get", "path": "/x"}, {"method": "GET", "path": "/x", "query": map[string]any{"sudo": "bob"}},
		{"method": "GET", "path": "/x", "query": map[string]any{"SUDO": "bob"}}, {"method": "GET", "path": "/x", "query": map[string]any{" token ": "x"}},
		{"method": "GET", "path": "/x", "query": map[string]any{"access_token": "x"}}, {"method": "GET", "path": "/x", "query": map[string]any{"a\x00": "x"}},
		{"method": "GET", "path": "/x", "query": map[string]any{"": "x"}}, {"method": "GET", "path": "/x", "body": map[string]any{}},
		{"method": "POST", "path": "/repos/o/r/contents", "body": map[string]any{"files": []any{map[string]any{"path": "../x"}}}},
	} {
		fails(t, c, spelled(nil, args), proxy.KindInvalidArguments)
	}
	if n := len(u.requests()) - before; n != 0 {
		t.Errorf("%d refused requests were sent", n)
	}
}

func TestRawPaging(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(200, "application/json", "[]", "X-Total-Count", "0"))
	c := client(t, u.URL)
	query := map[string]any{"limit": number("5")}
	paged := &proxy.Tool{Method: "GET", Path: "/repos/o/r/issues", Paging: proxy.PagingPage, ReadOnly: true,
		Params: []proxy.Param{
			{Name: "limit", Wire: "limit", In: proxy.InQuery}, {Name: "page", Wire: "page", In: proxy.InQuery},
		}}
	res := must(t, c, spelled(paged, proxy.Arguments{"method": "GET", "path": "/repos/o/r/issues", "query": query}))
	if got := u.requests()[0].URI; got != "/api/v1/repos/o/r/issues?limit=5&page=1" {
		t.Errorf("sent %s", got)
	}
	if res.Page == nil || res.Page.Limit != 5 || len(query) != 1 {
		t.Errorf("page %+v, query %v", res.Page, query)
	}
}
