package gitea_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy"
	"aegis/proxy/gitea"
)

// list is a paged tool.
func list(path string, paging proxy.Paging) *proxy.Tool {
	limit := "limit"
	if paging == proxy.PagingPerPage {
		limit = "per_page"
	}
	t := get(path, query("page", false), query(limit, false))
	t.Paging = paging
	return t
}

func ptr[T any](v T) *T { return &v }

// page is a page of n rows.
func page(n int) string {
	if n == 0 {
		return "[]"
	}
	return "[" + strings.Repeat(`{"a":[1,2]},`, n-1) + `{"a":"],["}]`
}

func link(pairs ...any) string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf(`<http://127.0.0.1:3300/api/v1/x?limit=5&page=%d&q=a%%2Cb>; rel="%s"`,
			pairs[i+1], pairs[i]))
	}
	return strings.Join(all, ",")
}

func TestPagination(t *testing.T) {
	t.Parallel()
	plain := list("/x", proxy.PagingPage)
	for _, tc := range []struct {
		name    string
		tool    *proxy.Tool
		page    int
		limit   int
		body    string
		headers []string
		want    proxy.Pagination
		warns   int
	}{
		{"first of many", plain, 1, 5, page(5), []string{"Link", link("next", 2, "last", 60), "X-Total-Count", "300"},
			proxy.Pagination{Page: 1, Limit: 5, TotalCount: ptr[int64](300), NextPage: ptr(2), LastPage: ptr(60)}, 0},
		{"capped by the server", plain, 1, 100, page(50), []string{"Link", link("next", 2, "last", 6), "X-Total-Count", "300"},
			proxy.Pagination{Page: 1, Limit: 50, TotalCount: ptr[int64](300), NextPage: ptr(2), LastPage: ptr(6)}, 0},
		{"capped, and the only page", plain, 1, 100, page(40), []string{"X-Total-Count", "40"},
			proxy.Pagination{Page: 1, Limit: 50, TotalCount: ptr[int64](40), LastPage: ptr(1)}, 0},
		{"exactly full last page", plain, 6, 50, page(50), []string{"Link", link("first", 1, "prev", 5), "X-Total-Count", "300"},
			proxy.Pagination{Page: 6, Limit: 50, TotalCount: ptr[int64](300), LastPage: ptr(6)}, 0},
		{"exactly full last page without links", plain, 2, 5, page(5), []string{"X-Total-Count", "10"},
			proxy.Pagination{Page: 2, Limit: 5, TotalCount: ptr[int64](10), LastPage: ptr(2)}, 0},
		{"more without links", plain, 1, 3, page(3), []string{"X-Total-Count", "9"},
			proxy.Pagination{Page: 1, Limit: 3, TotalCount: ptr[int64](9), NextPage: ptr(2), LastPage: ptr(3)}, 0},
		{"past the end", plain, 99, 50, page(0), []string{"Link", link("first", 1, "prev", 5), "X-Total-Count", "300"},
			proxy.Pagination{Page: 99, Limit: 50, TotalCount: ptr[int64](300), LastPage: ptr(6)}, 0},
		{"empty", plain, 1, 5, page(0), []string{"X-Total-Count", "0"},
			proxy.Pagination{Page: 1, Limit: 5, TotalCount: ptr[int64](0), LastPage: ptr(1)}, 0},
		{"null", plain, 1, 5, "null", []string{"X-Total-Count", "0"},
			proxy.Pagination{Page: 1, Limit: 5, TotalCount: ptr[int64](0), LastPage: ptr(1)}, 0},
		{"has more", plain, 2, 5, page(5), []string{"X-Page", "2", "X-PerPage", "5", "X-PageCount", "9", "X-HasMore", "true"},
			proxy.Pagination{Page: 2, Limit: 5, NextPage: ptr(3), LastPage: ptr(9)}, 0},
		{"has no more", plain, 1, 100, page(5), []string{"X-PerPage", "50", "X-PageCount", "1", "X-HasMore", "false"},
			proxy.Pagination{Page: 1, Limit: 50, LastPage: ptr(1)}, 0},
		{"timeline counts itself", list("/repos/{owner}/issues/timeline", proxy.PagingPage), 1, 5, page(5), []string{"X-Total-Count", "5"},
			proxy.Pagination{Page: 1, Limit: 5}, 1},
		{"short timeline", list("/repos/{owner}/issues/timeline", proxy.PagingPage), 1, 5, page(3), []string{"X-Total-Count", "3"},
			proxy.Pagination{Page: 1, Limit: 5}, 0},
		{"a total that cannot be", plain, 2, 5, page(5), []string{"X-Total-Count", "5"},
			proxy.Pagination{Page: 2, Limit: 5}, 1},
		{"no headers at all, full", plain, 1, 5, page(5), nil, proxy.Pagination{Page: 1, Limit: 5}, 1},
		{"no headers at all, short", plain, 1, 5, page(4), nil, proxy.Pagination{Page: 1, Limit: 5}, 0},
		{"total in the body", plain, 1, 1, `{"total_count":3,"workflow_runs":[{}]}`, nil,
			proxy.Pagination{Page: 1, Limit: 1, TotalCount: ptr[int64](3), NextPage: ptr(2), LastPage: ptr(3)}, 0},
		{"search result", plain, 1, 3, `{"ok":true,"data":[1,2,3]}`, []string{"Link", link("next", 2, "last", 6), "X-Total-Count", "16"},
			proxy.Pagination{Page: 1, Limit: 3, TotalCount: ptr[int64](16), NextPage: ptr(2), LastPage: ptr(6)}, 0},
		{"tree, more", list("/t", proxy.PagingPerPage), 2, 5, `{"tree":[1,2,3,4,5],"truncated":true,"page":2,"total_count":31}`, []string{"X-Total-Count", "31"},
			proxy.Pagination{Page: 2, Limit: 5, TotalCount: ptr[int64](31), NextPage: ptr(3), LastPage: ptr(7)}, 0},
		{"tree, whole", list("/t", proxy.PagingPerPage), 0, 0, `{"tree":[1],"truncated":false,"page":1,"total_count":1}`, []string{"X-Total-Count", "1"},
			proxy.Pagination{Page: 1, Limit: 1000, TotalCount: ptr[int64](1), LastPage: ptr(1)}, 0},
		{"hostile headers", plain, 1, 5, page(5), []string{"Link", "<<<>;;rel=next,<?page=99999999999999999999>; rel=next", "X-Total-Count", "-7", "X-PageCount", "x"},
			proxy.Pagination{Page: 1, Limit: 5}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := serve(t, answer(200, "application/json", tc.body, tc.headers...))
			args := proxy.Arguments{"owner": "o"}
			if tc.page > 0 {
				args["page"] = number(fmt.Sprint(tc.page))
			}
			for _, name := range []string{"limit", "per_page"} {
				if tc.limit > 0 {
					args[name] = number(fmt.Sprint(tc.limit))
				}
			}
			res := must(t, client(t, u.URL), call(tc.tool, args))
			if diff := cmp.Diff(&tc.want, res.Page); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(res.Warnings) != tc.warns {
				t.Errorf("warnings %q", res.Warnings)
			}
			if n := len(u.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestRoutesWithoutPaging(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(200, "application/json", page(60), "X-Total-Count", "60"))
	res := must(t, client(t, u.URL), call(list("/x", proxy.PagingIgnored),
		proxy.Arguments{"page": number("2"), "limit": number("5")}))
	if res.Page != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "returns everything") {
		t.Errorf("page %+v, warnings %q", res.Page, res.Warnings)
	}
	res = must(t, client(t, u.URL), call(get("/x"), nil))
	if res.Page != nil || res.Warnings != nil {
		t.Errorf("page %+v, warnings %q", res.Page, res.Warnings)
	}
}

// The server's own cap is asked for once, however many calls need it, and a
// server that does not tell it is not asked for every call.
func TestPageSizesAreLearnedOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, settings string
		status, want   int
	}{
		{"cap of 20", `{"max_response_items":20,"default_paging_num":10}`, 200, 20},
		{"refused", `{"message":"token is required"}`, 401, 50},
		{"nonsense", `{"max_response_items":-3}`, 200, 50},
		{"no json", `<html>`, 200, 50},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked atomic.Int32
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/settings/api") {
					asked.Add(1)
					if r.Header.Get("Sudo") != "" {
						t.Error("Aegis's own question went out under sudo")
					}
					w.WriteHeader(tc.status)
					_, _ = io.WriteString(w, tc.settings)
					return
				}
				w.Header().Set("X-Total-Count", "7")
				_, _ = io.WriteString(w, page(7))
			})
			c := client(t, u.URL)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					k := call(list("/x", proxy.PagingPage), proxy.Arguments{"limit": number("100")})
					k.Identity.AllowSudo, k.Options.Sudo = true, "bob"
					res := must(t, c, k)
					if res.Page.Limit != tc.want {
						t.Errorf("limit %d, want %d", res.Page.Limit, tc.want)
					}
					if k.Stats.Attempts != 1 {
						t.Errorf("%d attempts", k.Stats.Attempts)
					}
				})
			}
			all.Wait()
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestIgnoredFilters(t *testing.T) {
	t.Parallel()
	issues := list("/repos/{owner}/{repo}/issues", proxy.PagingPage)
	issues.Params = append(issues.Params, query("labels", false), query("milestones", false))
	search := list("/repos/issues/search", proxy.PagingPage)
	search.Params = append(search.Params, query("labels", false), query("milestones", false))
	bug := `{"labels":[{"name":"kind/bug"},{"name":"c#"}],"milestone":{"id":4,"title":"v1.0"}}`
	bare := `{"labels":[],"milestone":null}`
	old := `{"labels":null}`
	for _, tc := range []struct {
		name   string
		tool   *proxy.Tool
		filter proxy.Arguments
		body   string
		want   string // the values that a warning names
	}{
		{"known", issues, proxy.Arguments{"labels": "kind/bug"}, "[" + bug + "]", ""},
		{"unknown", issues, proxy.Arguments{"labels": "no-such"}, "[" + bug + "," + bare + "]", `"no-such"`},
		{"unknown beside a known one", issues, proxy.Arguments{"labels": "kind/bug,no-such"}, "[" + bug + "]", `"no-such"`},
		{"case counts", issues, proxy.Arguments{"labels": "KIND/BUG"}, "[" + bug + "]", `"KIND/BUG"`},
		{"as a list", issues, proxy.Arguments{"labels": []any{"c#", "no-such"}}, "[" + bug + "]", `"no-such"`},
		{"no rows prove nothing", issues, proxy.Arguments{"labels": "no-such"}, "[]", ""},
		{"no filter", issues, proxy.Arguments{}, "[" + bare + "]", ""},
		{"labels null", issues, proxy.Arguments{"labels": "x"}, "[" + old + "]", `"x"`},
		{"milestone", issues, proxy.Arguments{"milestones": "v1.0"}, "[" + bug + "]", ""},
		{"milestone by id", issues, proxy.Arguments{"milestones": "4"}, "[" + bug + "]", ""},
		{"one of two milestones", issues, proxy.Arguments{"milestones": "v1.0,v9"}, "[" + bug + "]", ""},
		{"unknown milestones", issues, proxy.Arguments{"milestones": "v9,v8"}, "[" + bug + "," + bare + "]", `"v9", "v8"`},
		{"search: any label", search, proxy.Arguments{"labels": "kind/bug,other"}, "[" + bug + "]", ""},
		{"search: none of them", search, proxy.Arguments{"labels": "other,more"}, "[" + bug + "]", `"other", "more"`},
		{"another route", list("/x", proxy.PagingPage), proxy.Arguments{"labels": "x"}, "[" + bare + "]", ""},
		{"spelled by the client", nil, proxy.Arguments{"method": "GET", "path": "/repos/o/r/issues", "query": map[string]any{"labels": "no-such"}}, "[" + bug + "]", `"no-such"`},
		{"no list", issues, proxy.Arguments{"labels": "x"}, `{"a":1}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := serve(t, answer(200, "application/json", tc.body, "X-Total-Count", "2"))
			tc.filter["owner"], tc.filter["repo"] = "o", "r"
			k := call(tc.tool, tc.filter)
			if tc.tool == nil {
				k = spelled(nil, tc.filter)
			}
			res := must(t, client(t, u.URL), k)
			all := strings.Join(res.Warnings, "\n")
			if tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("warnings %q, want %s", all, tc.want)
			}
			if string(res.Body) != tc.body || len(u.requests()) != 1 {
				t.Error("the check changed the answer or asked again")
			}
		})
	}
}

// FuzzLink: a Link header is a stranger's; whatever it says, pages are positive
// or absent.
func FuzzLink(f *testing.F) {
	f.Add(link("next", 2, "last", 60, "first", 1, "prev", 1))
	f.Add(`<http://h/x?page=2,3&a=<b>>; rel="next"; title="a,b;c"`)
	f.Add(`<?page=-1>;rel=next,<?page=2>;REL=last`)
	f.Add("<<<<")
	f.Fuzz(func(t *testing.T, header string) {
		next, last := gitea.ParseLink(header)
		if next < 0 || last < 0 {
			t.Fatalf("%q: %d %d", header, next, last)
		}
		if next > 0 && !strings.Contains(header, "next") || last > 0 && !strings.Contains(header, "last") {
			t.Fatalf("%q: %d %d out of nothing", header, next, last)
		}
	})
}

func TestParseLink(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][2]int{
		link("next", 2, "last", 60, "first", 1, "prev", 1):              {2, 60},
		link("first", 1, "prev", 5):                                     {0, 0},
		`<http://h/a,b?q=x%3E&page=7>; title="a"; rel=next`:             {7, 0},
		`<http://h/x?page=3> ; rel = "last" , <http://h/?page=2>;rel=x`: {0, 3},
		`<http://h/x>; rel="next"`:                                      {0, 0},
		``:                                                              {0, 0},
	} {
		if next, last := gitea.ParseLink(header); next != want[0] || last != want[1] {
			t.Errorf("%s: %d %d, want %v", header, next, last, want)
		}
	}
}
