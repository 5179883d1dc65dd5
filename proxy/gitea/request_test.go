package gitea_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/gitea"
)

func query(name string, multi bool) proxy.Param {
	return proxy.Param{Name: name, Wire: name, In: proxy.InQuery, Multi: multi}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	tool := get("/x", query("q", false), query("types", false), query("status-types", true), query("archived", false),
		query("milestone", false))
	renamed := proxy.Param{Name: "title_filter", Wire: "title", In: proxy.InQuery}
	tool.Params = append(tool.Params, renamed)
	for _, tc := range []struct {
		name string
		args proxy.Arguments
		want string
	}{
		{"nothing", proxy.Arguments{}, ""},
		{"order is the tool's", proxy.Arguments{"archived": false, "q": "a"}, "q=a&archived=false"},
		{"escaped once", proxy.Arguments{"q": "a b+c&d=e;f#g%20ü/"}, "q=a%20b%2Bc%26d%3De%3Bf%23g%2520%C3%BC%2F"},
		{"newlines in a value", proxy.Arguments{"q": "a\nb"}, "q=a%0Ab"},
		{"list joined", proxy.Arguments{"types": []any{"a", "b/c", number("3")}}, "types=a%2Cb%2Fc%2C3"},
		{"list repeated", proxy.Arguments{"status-types": []any{"read", "un read"}}, "status-types=read&status-types=un%20read"},
		{"empty values are not sent", proxy.Arguments{"q": "", "types": []any{}, "status-types": []any{""}}, ""},
		{"one value for a list", proxy.Arguments{"status-types": "read"}, "status-types=read"},
		{"number", proxy.Arguments{"milestone": number("12")}, "milestone=12"},
		{"renamed", proxy.Arguments{"title_filter": "x"}, "title=x"},
		{"unknown arguments go nowhere", proxy.Arguments{"sudo": "bob", "access_token": "x"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := serve(t, nil)
			must(t, client(t, u.URL), call(tool, tc.args))
			want := "/api/v1/x"
			if tc.want != "" {
				want += "?" + tc.want
			}
			if got := u.requests()[0].URI; got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		})
	}
}

func TestQueryRefusals(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	tool := get("/x", query("ref", false), query("path", false), query("q", false), query("many", true))
	for _, args := range []proxy.Arguments{
		{"ref": "%2e%2e%2fsecret"}, {"ref": "../x"}, {"ref": "a\x00b"}, {"ref": "a\nb"}, {"path": "../x"},
		{"path": "a/%2e%2e/b"}, {"q": "a\x00b"}, {"q": "\xff"}, {"q": strings.Repeat("x", 20_000)},
		{"q": map[string]any{"a": "b"}}, {"q": []any{map[string]any{}}}, {"many": slices.Repeat([]any{strings.Repeat("x", 1000)}, 70)},
	} {
		fails(t, c, call(tool, args), proxy.KindInvalidArguments)
	}
	for _, name := range []string{"sudo", "token", "access_token", "Sudo"} {
		for _, in := range []proxy.In{proxy.InQuery, proxy.InForm} {
			fails(t, c, call(get("/x", param(in, name)), proxy.Arguments{name: "bob"}), proxy.KindInternal)
		}
	}
	if n := len(u.requests()); n != 0 {
		t.Fatalf("%d requests were sent", n)
	}
	must(t, c, call(tool, proxy.Arguments{"path": "docs/"}))
	must(t, c, call(tool, proxy.Arguments{"ref": "feature/x..y"}))
}

func TestPageGoesWithLimit(t *testing.T) {
	t.Parallel()
	list := get("/x", query("page", false), query("limit", false))
	list.Paging = proxy.PagingPage
	tree := get("/x", query("page", false), query("per_page", false))
	tree.Paging = proxy.PagingPerPage
	pageOnly := get("/x", query("page", false))
	pageOnly.Paging = proxy.PagingPage
	ignored := get("/x", query("page", false), query("limit", false))
	ignored.Paging = proxy.PagingIgnored
	for _, tc := range []struct {
		tool *proxy.Tool
		args proxy.Arguments
		want string
	}{
		{list, proxy.Arguments{}, "?page=1&limit=30"},
		{list, proxy.Arguments{"limit": number("5")}, "?page=1&limit=5"},
		{list, proxy.Arguments{"page": number("3")}, "?page=3&limit=30"},
		{list, proxy.Arguments{"page": number("3"), "limit": number("100")}, "?page=3&limit=100"},
		{tree, proxy.Arguments{}, ""},
		{tree, proxy.Arguments{"page": number("2")}, "?page=2&per_page=1000"},
		{tree, proxy.Arguments{"per_page": number("5")}, "?page=1&per_page=5"},
		{pageOnly, proxy.Arguments{}, "?page=1"},
		{pageOnly, proxy.Arguments{"page": number("2")}, "?page=2"},
		{ignored, proxy.Arguments{"limit": number("5")}, "?limit=5"},
	} {
		u := serve(t, answer(200, "application/json", "[]"))
		must(t, client(t, u.URL), call(tc.tool, tc.args))
		if got := u.requests()[0].URI; got != "/api/v1/x"+tc.want {
			t.Errorf("%s %v: sent %s, want %s", tc.tool.Paging, tc.args, got, tc.want)
		}
	}
}

func TestJSONBody(t *testing.T) {
	t.Parallel()
	tool := write("POST", "/repos/{owner}/{repo}/issues",
		param(proxy.InBody, "title"), proxy.Param{Name: "new_name", Wire: "name", In: proxy.InBody},
		param(proxy.InBody, "labels"), param(proxy.InBody, "closed"), param(proxy.InBody, "meta"))
	tool.Consumes = "application/json"
	for _, tc := range []struct {
		args proxy.Arguments
		want string
	}{
		{proxy.Arguments{}, `{}`},
		{proxy.Arguments{"closed": false, "title": ""}, `{"title":"","closed":false}`},
		{proxy.Arguments{"new_name": "x", "labels": []any{}}, `{"name":"x","labels":[]}`},
		{proxy.Arguments{"title": "<a & b> \u2028 \"q\" \\ ü\r\n"}, `{"title":"<a & b> \u2028 \"q\" \\ ü\r\n"}`},
		{proxy.Arguments{"labels": []any{number("9007199254740993"), number("1")}}, `{"labels":[9007199254740993,1]}`},
		{proxy.Arguments{"meta": map[string]any{"b": nil, "a": []any{map[string]any{"x": true}}}}, `{"meta":{"a":[{"x":true}],"b":null}}`},
	} {
		tc.args["owner"], tc.args["repo"] = "o", "r"
		u := serve(t, nil)
		must(t, client(t, u.URL), call(tool, tc.args))
		got := u.requests()[0]
		if string(got.Body) != tc.want {
			t.Errorf("%v: sent %s, want %s", tc.args, got.Body, tc.want)
		}
		if ct := got.Header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("content type %q", ct)
		}
	}
}

func TestWholeBody(t *testing.T) {
	t.Parallel()
	whole := param(proxy.InWhole, "body")
	text := write("POST", "/markdown/raw", whole)
	text.Consumes = "text/plain"
	structured := write("POST", "/x", whole)
	structured.Consumes = "application/json"
	for _, tc := range []struct {
		tool            *proxy.Tool
		body            any
		want, wantMedia string
	}{
		{text, "# a\r\n\"b\" ü", "# a\r\n\"b\" ü", "text/plain"},
		{text, "", "", "text/plain"},
		{structured, "a\"b", `"a\"b"`, "application/json"},
		{structured, []any{number("1"), "x"}, `[1,"x"]`, "application/json"},
		{structured, nil, ``, ""},
	} {
		args := proxy.Arguments{}
		if tc.body != nil {
			args["body"] = tc.body
		}
		u := serve(t, nil)
		must(t, client(t, u.URL), call(tc.tool, args))
		got := u.requests()[0]
		if string(got.Body) != tc.want || got.Header.Get("Content-Type") != tc.wantMedia {
			t.Errorf("sent %q as %q, want %q as %q", got.Body, got.Header.Get("Content-Type"), tc.want, tc.wantMedia)
		}
	}
}

// upload is the tool of an attachment.
func upload() *proxy.Tool {
	t := write("POST", "/repos/{owner}/{repo}/issues/{index}/assets", query("name", false),
		param(proxy.InFile, "attachment"))
	t.Consumes = "multipart/form-data"
	return t
}

func TestMultipartUpload(t *testing.T) {
	t.Parallel()
	data := []byte("\x00\xff\r\n--boundary\r\n\xfe")
	u := serve(t, nil)
	must(t, client(t, u.URL), call(upload(), proxy.Arguments{
		"owner": "o", "repo": "r", "index": number("1"), "name": "a \"b\"\r\nX: y/ü.bin",
		"attachment": base64.StdEncoding.EncodeToString(data),
	}))
	got := u.requests()[0]
	if got.URI != "/api/v1/repos/o/r/issues/1/assets?name=a%20%22b%22%0D%0AX%3A%20y%2F%C3%BC.bin" {
		t.Errorf("sent %s", got.URI)
	}
	media, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		t.Fatalf("content type %q: %v", got.Header.Get("Content-Type"), err)
	}
	form := multipart.NewReader(bytes.NewReader(got.Body), params["boundary"])
	part, err := form.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	sent, err := io.ReadAll(part)
	if err != nil || !bytes.Equal(sent, data) {
		t.Errorf("the file has become %q (%v)", sent, err)
	}
	if part.FormName() != "attachment" || part.FileName() != "ü.bin" {
		t.Errorf("sent as field %q, file %q", part.FormName(), part.FileName())
	}
	if len(part.Header) != 2 {
		t.Errorf("headers of the part: %v", part.Header)
	}
	if _, err := form.NextPart(); err != io.EOF {
		t.Errorf("a second part: %v", err)
	}
}

func TestFileAsBytes(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	tool := upload()
	tool.Consumes = "application/octet-stream"
	must(t, client(t, u.URL), call(tool, proxy.Arguments{
		"owner": "o", "repo": "r", "index": number("1"), "attachment": "AP8=",
	}))
	if got := u.requests()[0]; string(got.Body) != "\x00\xff" ||
		got.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("sent %q as %q", got.Body, got.Header.Get("Content-Type"))
	}
}

func TestFileOverTheBound(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL, func(_ *config.Gitea, l *gitea.Limits) { l.MaxBinaryBytes = 1000 })
	contents := write("POST", "/repos/{owner}/{repo}/contents/{*filepath}", param(proxy.InBody, "content"),
		proxy.Param{Name: "content_text", Wire: "content", In: proxy.InBody, Encode: proxy.EncodeBase64})
	for n, fits := range map[int]bool{999: true, 1000: true, 1001: false, 3 << 20: false} {
		encoded := base64.StdEncoding.EncodeToString(make([]byte, n))
		base := proxy.Arguments{"owner": "o", "repo": "r", "index": number("1"), "filepath": "f"}
		for name, tool := range map[string]*proxy.Tool{"attachment": upload(), "content": contents,
			"content_text": contents} {
			args := proxy.Arguments{}
			for k, v := range base {
				args[k] = v
			}
			args[name] = encoded
			if name == "content_text" {
				args[name] = strings.Repeat("x", n)
			}
			if fits {
				must(t, c, call(tool, args))
				continue
			}
			e := fails(t, c, call(tool, args), proxy.KindPayloadTooLarge)
			if want := number2(n); !strings.Contains(e.Public, want) || !strings.Contains(e.Public, "1000 bytes") {
				t.Errorf("the error does not name both sizes: %s", e.Public)
			}
		}
	}
	for _, v := range []string{"a", "abc", "ab=c", "ab==x", "====", "a b=", "plain text, not base64", "YWJj\x00"} {
		args := proxy.Arguments{"owner": "o", "repo": "r", "index": number("1"), "filepath": "f", "attachment": v,
			"content": v}
		fails(t, c, call(upload(), args), proxy.KindInvalidArguments)
		fails(t, c, call(contents, args), proxy.KindInvalidArguments)
	}
	if n := len(u.requests()); n != 6 {
		t.Errorf("%d requests, want the 6 that fit", n)
	}
}

func number2(n int) string {
	b, _ := json.Marshal(n)
	return string(b) + " bytes"
}

// Text given for a file keeps every byte, whatever it looks like.
func TestTextForAFile(t *testing.T) {
	t.Parallel()
	content := proxy.Property{Name: "content", Schema: &proxy.Schema{Type: "string"}}
	contentText := proxy.Property{Name: "content_text", Wire: "content", Encode: proxy.EncodeBase64,
		Schema: &proxy.Schema{Type: "string"}}
	one := write("POST", "/repos/{owner}/{repo}/contents/{*filepath}",
		param(proxy.InBody, "content"), proxy.Param{Name: "content_text", Wire: "content", In: proxy.InBody,
			Encode: proxy.EncodeBase64})
	many := write("POST", "/repos/{owner}/{repo}/contents", proxy.Param{Name: "files", Wire: "files", In: proxy.InBody,
		Schema: &proxy.Schema{Type: "array", Items: &proxy.Schema{Type: "object", Properties: []proxy.Property{content, contentText, {Name: "path"}}}}})
	u := serve(t, nil)
	c := client(t, u.URL)
	for _, text := range []string{"a\r\nb", "no newline", "\ufeffbom", "aGVsbG8=", "", "ü\u2028\x00", "{\"a\": 1}\n"} {
		base := proxy.Arguments{"owner": "o", "repo": "r", "filepath": "f"}
		base["content_text"] = text
		must(t, c, call(one, base))
		delete(base, "content_text")
		given := map[string]any{"path": "f", "content_text": text}
		base["files"] = []any{given}
		must(t, c, call(many, base))
		if _, kept := given["content_text"]; !kept || len(given) != 2 {
			t.Error("the caller's arguments were changed")
		}
		got := u.requests()[len(u.requests())-2:]
		var single struct{ Content string }
		var list struct{ Files []map[string]string }
		if err := json.Unmarshal(got[0].Body, &single); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got[1].Body, &list); err != nil {
			t.Fatal(err)
		}
		want := base64.StdEncoding.EncodeToString([]byte(text))
		if single.Content != want {
			t.Errorf("%q went out as %q", text, single.Content)
		}
		if diff := cmp.Diff([]map[string]string{{"path": "f", "content": want}}, list.Files); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	both := proxy.Arguments{"owner": "o", "repo": "r", "filepath": "f", "content": "YQ==", "content_text": "a"}
	fails(t, c, call(one, both), proxy.KindInvalidArguments)
	fails(t, c, call(one, proxy.Arguments{"owner": "o", "repo": "r", "filepath": "f"}), proxy.KindInvalidArguments)
	both["files"] = []any{map[string]any{"path": "f", "content": "YQ==", "content_text": "a"}}
	fails(t, c, call(many, both), proxy.KindInvalidArguments)
}

func TestHeadersAreAegisOwn(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(200, "application/json", "{}", "Set-Cookie", "session=1; Path=/"))
	c := client(t, u.URL)
	tool := write("PATCH", "/x", param(proxy.InBody, "a"))
	for _, tc := range []struct {
		mode proxy.Mode
		auth string
	}{{proxy.ModeStatic, "token " + callerToken}, {proxy.ModeOAuth, "Bearer " + callerToken}} {
		k := call(tool, proxy.Arguments{"a": "b"})
		k.Identity = &proxy.Identity{Credential: proxy.NewCredential(tc.mode, callerToken)}
		for range 2 { // the second request shows whether a cookie was kept
			must(t, c, k)
			want := http.Header{
				"Authorization": {tc.auth}, "User-Agent": {"aegis/1.2.3"}, "Accept": {"application/json"},
				"Content-Type": {"application/json"}, "Content-Length": {"9"},
			}
			got := u.requests()
			if diff := cmp.Diff(want, got[len(got)-1].Header); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		}
	}
	k := call(get("/x"), nil)
	k.Identity = &proxy.Identity{}
	before := len(u.requests())
	fails(t, c, k, proxy.KindUnauthorized)
	if len(u.requests()) != before {
		t.Error("a call without a credential went out")
	}
}

func TestSudo(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	k := call(get("/x"), nil)
	k.Options.Sudo = "bob"
	fails(t, c, k, proxy.KindForbidden)
	k.Identity.AllowSudo = true
	for _, login := range []string{"a b", "a\r\nX-Evil: 1", "a/b", "..", "ü", strings.Repeat("a", 300)} {
		k.Options.Sudo = login
		fails(t, c, k, proxy.KindInvalidArguments)
	}
	if n := len(u.requests()); n != 0 {
		t.Fatalf("%d requests were sent", n)
	}
	k.Options.Sudo = "bob"
	must(t, c, k)
	if got := u.requests()[0].Header.Get("Sudo"); got != "bob" {
		t.Errorf("Sudo: %q", got)
	}
	k.Options.Sudo = ""
	must(t, c, k)
	if got := u.requests()[1].Header.Values("Sudo"); len(got) != 0 {
		t.Errorf("Sudo: %q without being asked", got)
	}
}

func TestBasicAuthOnly(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	tool := get("/users/{username}/tokens")
	tool.BasicAuthOnly = true
	fails(t, client(t, u.URL), call(tool, proxy.Arguments{"username": "alice"}), proxy.KindBasicAuthOnly)
	if n := len(u.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestBrokenCallsDoNotPanic(t *testing.T) {
	t.Parallel()
	u := serve(t, nil)
	c := client(t, u.URL)
	for _, k := range []*proxy.Call{
		{}, {Tool: get("/x")}, {Identity: &proxy.Identity{}},
		call(&proxy.Tool{Path: "/x/{y"}, nil), call(&proxy.Tool{Path: "/x/{y}"}, nil),
	} {
		if res, err := c.Handle(context.Background(), k); err == nil || res != nil {
			t.Errorf("%+v: result %v, error %v", k, res, err)
		}
	}
}
