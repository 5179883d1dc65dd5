package catalog_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"aegis/proxy"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsThatFit(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	num := func(s string) json.Number { return json.Number(s) }
	for name, c := range map[string]struct {
		tool, args string
		want       proxy.Arguments
		opts       proxy.CallOptions
	}{
		"plain": {"gitea_issue_get", `{"owner":"acme","repo":"infra","index":12}`,
			proxy.Arguments{"owner": "acme", "repo": "infra", "index": num("12")}, proxy.CallOptions{}},
		"digits in quotes": {"gitea_issue_get", `{"owner":"acme","repo":"infra","index":"12"}`,
			proxy.Arguments{"owner": "acme", "repo": "infra", "index": num("12")}, proxy.CallOptions{}},
		"1.0 and 1e2": {"gitea_issue_list", `{"owner":"acme","repo":"infra","page":1e2,"limit":1.0}`,
			proxy.Arguments{"owner": "acme", "repo": "infra", "page": num("100"), "limit": num("1")}, proxy.CallOptions{}},
		"true in quotes": {"gitea_release_list", `{"owner":"acme","repo":"infra","draft":"true","pre-release":"false"}`,
			proxy.Arguments{"owner": "acme", "repo": "infra", "draft": true, "pre-release": false}, proxy.CallOptions{}},
		"null for an optional one": {"gitea_issue_list", `{"owner":"acme","repo":"infra","state":null,"fields":null}`,
			proxy.Arguments{"owner": "acme", "repo": "infra"}, proxy.CallOptions{}},
		"absent":      {"gitea_user_get_me", ``, proxy.Arguments{}, proxy.CallOptions{}},
		"null":        {"gitea_user_get_me", ` null `, proxy.Arguments{}, proxy.CallOptions{}},
		"empty":       {"gitea_user_get_me", `{}`, proxy.Arguments{}, proxy.CallOptions{}},
		"white space": {"gitea_user_get_me", "\n { }\t", proxy.Arguments{}, proxy.CallOptions{}},
		"options": {"gitea_user_get_me", `{"fields":["login","id"],"cursor":"abc"}`, proxy.Arguments{},
			proxy.CallOptions{Fields: []string{"login", "id"}, Cursor: "abc"}},
		"fields as a text": {"gitea_issue_list", `{"owner":"acme","repo":"infra","fields":"number, user.login,labels[].name"}`, proxy.Arguments{"owner": "acme", "repo": "infra"},
			proxy.CallOptions{Fields: []string{"number", "user.login", "labels[].name"}}},
		"nested": {"gitea_pull_create_review", `{"owner":"a","repo":"b","index":1,"comments":[{"path":"x","body":"y","new_position":"7","old_position":null}]}`,
			proxy.Arguments{"owner": "a", "repo": "b", "index": num("1"), "comments": []any{map[string]any{"path": "x", "body": "y", "new_position": num("7")}}},
			proxy.CallOptions{}},
		"map": {"gitea_actions_dispatch_workflow", `{"owner":"a","repo":"b","workflow_id":"ci.yml","ref":"main","inputs":{"Env":"prod"}}`,
			proxy.Arguments{"owner": "a", "repo": "b", "workflow_id": "ci.yml", "ref": "main", "inputs": map[string]any{"Env": "prod"}}, proxy.CallOptions{}},
		"escapes": {"gitea_issue_create_comment", `{"owner":"a","repo":"b","index":1,"body":"\ud83d\ude00 \u0041\r\n\ufffd"}`,
			proxy.Arguments{"owner": "a", "repo": "b", "index": num("1"), "body": "😀 A\r\n\ufffd"}, proxy.CallOptions{}},
		"an id where a name would do": {"gitea_issue_get_milestone", `{"owner":"a","repo":"b","id":12}`,
			proxy.Arguments{"owner": "a", "repo": "b", "id": "12"}, proxy.CallOptions{}},
		"a title where an id would do": {"gitea_issue_get_milestone", `{"owner":"a","repo":"b","id":"v1.2"}`,
			proxy.Arguments{"owner": "a", "repo": "b", "id": "v1.2"}, proxy.CallOptions{}},
		"names with dots": {"gitea_repository_get", `{"owner":"_a.b-c","repo":"..hidden"}`,
			proxy.Arguments{"owner": "_a.b-c", "repo": "..hidden"}, proxy.CallOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			call, _, err := run(sel, c.tool, c.args, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, call.Args); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.opts, call.Options); diff != "" {
				t.Error(diff)
			}
			if call.Tool == nil || call.Tool.Name != c.tool {
				t.Errorf("tool %v", call.Tool)
			}
		})
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	const at = `"owner":"acme","repo":"infra"`
	for name, c := range map[string]struct {
		tool, args string
		says       []string
	}{
		"near miss":           {"gitea_issue_list", `{` + at + `,"stat":"open"}`, []string{"stat is unknown; did you mean state?"}},
		"other case":          {"gitea_repository_get", `{"Owner":"acme","repo":"infra"}`, []string{"Owner is unknown; did you mean owner?", "owner is required"}},
		"missing":             {"gitea_issue_get", `{` + at + `}`, []string{"index is required"}},
		"null for required":   {"gitea_issue_get", `{` + at + `,"index":null}`, []string{"index is required"}},
		"1x":                  {"gitea_issue_get", `{` + at + `,"index":"1x"}`, []string{"index must be an integer"}},
		"a fraction as name":  {"gitea_issue_get_milestone", `{` + at + `,"id":1.20}`, []string{"id must be a string"}},
		"a negative name":     {"gitea_issue_get_milestone", `{` + at + `,"id":-1}`, []string{"id must be a string"}},
		"a number as text":    {"gitea_issue_create", `{` + at + `,"title":12}`, []string{"title must be a string"}},
		"nothing to add":      {"gitea_user_add_my_emails", `{"emails":[]}`, []string{"emails must have at least 1 item"}},
		"fraction":            {"gitea_issue_get", `{` + at + `,"index":12.5}`, []string{"index must be an integer"}},
		"fraction in quotes":  {"gitea_issue_get", `{` + at + `,"index":"12.0"}`, []string{"index must be an integer"}},
		"plus":                {"gitea_issue_get", `{` + at + `,"index":"+12"}`, []string{"index must be an integer"}},
		"beyond 64 bits":      {"gitea_issue_get", `{` + at + `,"index":9223372036854775808}`, []string{"index must be an integer within 64 bits"}},
		"huge exponent":       {"gitea_issue_get", `{` + at + `,"index":1e999999999}`, []string{"index must be an integer"}},
		"zero":                {"gitea_issue_get", `{` + at + `,"index":0}`, []string{"index must be at least 1"}},
		"limit 0":             {"gitea_issue_list", `{` + at + `,"limit":0}`, []string{"limit must be at least 1"}},
		"limit -1":            {"gitea_issue_list", `{` + at + `,"limit":-1}`, []string{"limit must be at least 1"}},
		"limit 1001":          {"gitea_issue_list", `{` + at + `,"limit":1001}`, []string{"limit must be at most 1000"}},
		"enum":                {"gitea_issue_list", `{` + at + `,"state":"opened"}`, []string{"state must be one of open, closed, all"}},
		"number for string":   {"gitea_issue_create", `{` + at + `,"title":7}`, []string{"title must be a string"}},
		"string for array":    {"gitea_issue_add_labels", `{` + at + `,"index":1,"labels":"bug"}`, []string{"labels must be an array"}},
		"array item":          {"gitea_issue_add_labels", `{` + at + `,"index":1,"labels":["bug",{}]}`, []string{"labels[1] must be a string"}},
		"nested":              {"gitea_pull_create_review", `{` + at + `,"index":1,"comments":[{"pat":"x"}]}`, []string{"comments[0].pat is unknown; did you mean path?"}},
		"map value":           {"gitea_actions_dispatch_workflow", `{` + at + `,"workflow_id":"x","ref":"m","inputs":{"a":1}}`, []string{"inputs.a must be a string"}},
		"yes":                 {"gitea_release_list", `{` + at + `,"draft":"yes"}`, []string{"draft must be true or false"}},
		"1 for true":          {"gitea_release_list", `{` + at + `,"draft":1}`, []string{"draft must be true or false"}},
		"time":                {"gitea_issue_list", `{` + at + `,"since":"yesterday"}`, []string{"since must be a time as in RFC 3339"}},
		"date for time":       {"gitea_issue_list", `{` + at + `,"since":"2026-01-31"}`, []string{"since must be a time as in RFC 3339"}},
		"twice":               {"gitea_issue_get", `{` + at + `,"index":1,"index":2}`, []string{"index is given twice"}},
		"twice by escape":     {"gitea_issue_get", `{` + at + `,"index":1,"\u0069ndex":2}`, []string{"index is given twice"}},
		"twice inside":        {"gitea_actions_dispatch_workflow", `{` + at + `,"workflow_id":"x","ref":"m","inputs":{"a":"1","a":"2"}}`, []string{"inputs.a is given twice"}},
		"half a character":    {"gitea_issue_create", `{` + at + `,"title":"\ud83d"}`, []string{"title has an escape"}},
		"other half":          {"gitea_issue_create", `{` + at + `,"title":"\ude00x"}`, []string{"title has an escape"}},
		"array":               {"gitea_user_get_me", `[]`, []string{"must be a JSON object"}},
		"cut":                 {"gitea_user_get_me", `{"a":`, []string{"not valid JSON"}},
		"bad UTF-8":           {"gitea_user_get_me", "{\"a\":\"\xff\"}", []string{"not valid JSON"}},
		"deep":                {"gitea_user_get_me", `{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, []string{"nested deeper"}},
		"token":               {"gitea_issue_list", `{` + at + `,"token":"x"}`, []string{"token is never accepted"}},
		"Access_Token":        {"gitea_issue_list", `{` + at + `,"Access_Token":"x"}`, []string{"Access_Token is never accepted"}},
		"sudo":                {"gitea_issue_list", `{` + at + `,"sudo":"bob"}`, []string{"sudo is unknown"}},
		"sudo in an upload":   {"gitea_issue_create_attachment", `{` + at + `,"index":1,"attachment":"eA==","sudo":"bob"}`, []string{"sudo is unknown"}},
		"fields of a write":   {"gitea_issue_create", `{` + at + `,"title":"x","fields":["id"]}`, []string{"fields is unknown"}},
		"fields: no text":     {"gitea_issue_list", `{` + at + `,"fields":" "}`, []string{"fields must be an array"}},
		"fields: list quoted": {"gitea_issue_list", `{` + at + `,"fields":"[\"id\"]"}`, []string{"fields must be an array"}},
		"fields: empty one":   {"gitea_issue_list", `{` + at + `,"fields":"id,,x"}`, []string{"fields[1] must not be empty"}},
		"empty fields":        {"gitea_issue_list", `{` + at + `,"fields":[]}`, []string{"fields must have at least 1"}},
		"no arguments":        {"gitea_miscellaneous_get_version", `{"q":1}`, []string{"q is unknown"}},
		"all at once":         {"gitea_issue_list", `{"repo":"a/b","limit":9999,"x":1}`, []string{"owner is required", "repo must match", "limit must be at most", "x is unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			call, _, err := run(sel, c.tool, c.args, false)
			kind, text := kindOf(err)
			if kind != proxy.KindInvalidArguments || call != nil {
				t.Fatalf("kind %q, passed on: %v", kind, call != nil)
			}
			for _, s := range c.says {
				if !strings.Contains(text, s) {
					t.Errorf("%q lacks %q", text, s)
				}
			}
		})
	}
}

// TestHostileNames sends what must never become part of a path.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	for _, v := range []string{
		"..", ".", "...", "a/b", "o/x/../../admin", "r?state=all&", "a#b", "a%2e", "%2e%2e%2fsecret", "a b", "a\x00", "a\n", "\u202e", "é", "",
		strings.Repeat("a", 10_000),
	} {
		for _, arg := range []string{"owner", "repo"} {
			args := map[string]string{"owner": "acme", "repo": "infra"}
			args[arg] = v
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			call, _, err := run(sel, "gitea_repository_get", string(raw), false)
			if kind, text := kindOf(err); kind != proxy.KindInvalidArguments || call != nil {
				t.Errorf("%s=%.20q was accepted", arg, v)
			} else if len(v) > 3 && strings.Contains(text, v) {
				t.Errorf("the error repeats the value %q", v)
			}
		}
	}
}

// TestErrorsKeepSecrets puts a secret wherever a value can be and looks for it
// in the errors.
func TestErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	const secret = "hunter2hunter2"
	for _, args := range []string{
		`{"owner":"` + secret + `/","repo":"x"}`,
		`{"owner":"a","repo":"b","index":"` + secret + `"}`,
		`{"owner":"a","repo":"b","index":1,"state":"` + secret + `"}`,
		`{"owner":"a","repo":"b","index":1,"assignees":[{"x":"` + secret + `"}]}`,
		`{"owner":"a","repo":"b","index":1,"due_date":"` + secret + `"}`,
		`{"token":"` + secret + `"}`,
		`"` + secret + `"`,
		`{"a":"` + secret,
	} {
		_, _, err := run(sel, "gitea_issue_edit", args, false)
		if err == nil {
			t.Errorf("%s was accepted", args)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the value: %v", err)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"owner":"a"`)
	for i := range 500 {
		b.WriteString(`,"` + strings.Repeat("x\\u202e`", 30) + strconv.Itoa(i) + `":1`)
	}
	b.WriteString(`}`)
	_, _, err := run(everything(t), "gitea_repository_get", b.String(), false)
	_, text := kindOf(err)
	if len(text) > 3000 || !strings.Contains(text, "and 49") || strings.ContainsAny(text, "\u202e`") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestSudo(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	call, _, err := run(sel, "gitea_repository_get", `{"owner":"a","repo":"b","sudo":"bob"}`, true)
	if err != nil || call.Options.Sudo != "bob" {
		t.Fatalf("%v %+v", err, call)
	}
	if _, leaked := call.Args["sudo"]; leaked {
		t.Error("sudo is among the arguments for Gitea")
	}
	for _, v := range []string{`"bob\r\nX: y"`, `""`, `7`, `"../a"`} {
		if _, _, err := run(sel, "gitea_repository_get", `{"owner":"a","repo":"b","sudo":`+v+`}`, true); err == nil {
			t.Errorf("sudo %s was accepted", v)
		}
	}
	for _, tool := range sel.Tools() {
		if strings.Contains(string(tool.InputSchema), `"sudo"`) {
			t.Fatalf("%s offers sudo to everyone", tool.Name)
		}
	}
	for _, tool := range sel.SudoTools() {
		if !strings.Contains(string(tool.InputSchema), `"sudo"`) || !json.Valid(tool.InputSchema) ||
			!json.Valid(tool.ListSchema) {
			t.Fatalf("%s has no sudo or a broken schema", tool.Name)
		}
	}
}

// TestIntegers compares the reading of integers with exact arithmetic on
// values around the limits.
func TestIntegers(t *testing.T) {
	t.Parallel()
	sel := everything(t)
	for text, want := range map[string]int64{
		"1": 1, "1.0": 1, "10e-1": 1, "0.1e1": 1, "1e2": 100, "1E+2": 100, "9223372036854775807": math.MaxInt64, "9.223372036854775807e18": math.MaxInt64,
		"900e-2": 9, "5.00": 5,
	} {
		call, _, err := run(sel, "gitea_repository_get_by_id", `{"id":`+text+`}`, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := call.Args["id"]; got != json.Number(strconv.FormatInt(want, 10)) {
			t.Errorf("%s became %v", text, got)
		}
	}
	for _, text := range []string{"1.5", "15e-1", "1e-1", "9223372036854775808", "1e19", "0.05e1", "1e41",
		"-9223372036854775809"} {
		if _, _, err := run(sel, "gitea_repository_get_by_id", `{"id":`+text+`}`, false); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"owner":"a","repo":"b","index":1}`, `{"index":"1","fields":["a"],"x":{"y":[null,1.50,"\ud800"]}}`, `[[[[`, `{"a":{"a":1,"a":2}}`, `{"index":1e-5}`,
		`{"owner":"a","repo":"b","index":1,"comments":[{"path":"a","body":"b"}],"event":"COMMENT"}`,
	} {
		f.Add(s)
	}
	sel := everything(f)
	f.Fuzz(func(t *testing.T, args string) {
		call, _, err := run(sel, "gitea_pull_create_review", args, false)
		if err != nil {
			kind, text := kindOf(err)
			if kind != proxy.KindInvalidArguments || len(text) > 4000 {
				t.Errorf("kind %q, %d bytes", kind, len(text))
			}
			return
		}
		for name, v := range call.Args {
			if name == "index" {
				if n, err := strconv.ParseInt(string(v.(json.Number)), 10, 64); err != nil || n < 1 {
					t.Errorf("index %v", v)
				}
			}
		}
		// What was accepted is accepted again in the form that it was given.
		again, err := json.Marshal(call.Args)
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := run(sel, "gitea_pull_create_review", string(again), false)
		if err != nil {
			t.Fatalf("%s is refused: %v", again, err)
		}
		if diff := cmp.Diff(call.Args, second.Args); diff != "" {
			t.Error(diff)
		}
	})
}
