package mask_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/mask"
)

const callerToken = "the-callers-gitea-token"

// call returns a call as the catalog stage hands it on: of the tool's own operation,
// with every argument a member of the body, or, with the argument method, of the tool
// for any route.
func call(tool *proxy.Tool, args proxy.Arguments) *proxy.Call {
	c := &proxy.Call{Tool: tool, Args: args,
		Identity: &proxy.Identity{Login: "bob", Credential: proxy.NewCredential(proxy.ModeStatic, callerToken)}}
	if tool == nil { // not found
		return c
	}
	if _, raw := args["method"]; !raw {
		op := *tool
		for name := range args {
			op.Params = append(op.Params, proxy.Param{Name: name, Wire: name, In: proxy.InBody})
		}
		c.Resolve(&op)
		return c
	}
	if tool.OperationID != "" {
		c.Op = tool
	}
	c.Wire.Method, _ = args["method"].(string)
	c.Wire.Path, _ = args["path"].(string)
	if body, ok := args["body"].(map[string]any); ok {
		for name, v := range body {
			c.Wire.Body = append(c.Wire.Body, proxy.Field{Name: name, In: proxy.InBody, Value: v})
		}
		return c
	}
	c.Wire.Body = []proxy.Field{{Name: "body", In: proxy.InWhole, Value: args["body"]}}
	return c
}

// serve runs a call through the stage before a handler that answers with res
// and err, and returns what the handler got as well.
func serve(e *mask.Engine, c *proxy.Call, res *proxy.Result, err error) (*proxy.Result, proxy.Arguments, error) {
	var got proxy.Arguments
	h := proxy.Chain(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		got = sent(c)
		return res, err
	}), e.Stage())
	out, err := h.Handle(context.Background(), c)
	return out, got, err
}

// sent returns what is left of the arguments of such a call.
func sent(c *proxy.Call) proxy.Arguments {
	out := map[string]any{}
	for _, f := range c.Wire.Body {
		out[f.Name] = f.Value
	}
	if _, raw := c.Args["method"]; raw && !(len(c.Wire.Body) == 1 && c.Wire.Body[0].In == proxy.InWhole) {
		out = map[string]any{"method": c.Wire.Method, "path": c.Wire.Path, "body": out}
	}
	return out
}

func jsonResult(body string) *proxy.Result {
	return &proxy.Result{Status: 200, Kind: proxy.BodyJSON, Body: []byte(body)}
}

func TestStageMasksResults(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, "configured-secret")
	gh := github(1)
	in := &proxy.Result{Status: 200, Kind: proxy.BodyJSON, Path: "/x/" + callerToken,
		Body:     []byte(`{"a":"` + gh + `","b":"` + callerToken + ` configured-secret"}`),
		Warnings: []string{"w " + gh}, Text: []byte(`{"t":"` + gh + `"}`), TextBlock: []byte(gh),
		Structured: []byte(`{"s":"` + gh + `"}`)}
	before := *in
	c := call(&proxy.Tool{ReadOnly: true}, nil)
	out, _, err := serve(e, c, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &proxy.Result{Status: 200, Kind: proxy.BodyJSON, Path: "/x/[REDACTED]",
		Body:     []byte(`{"a":"ghp_***","b":"[REDACTED] [REDACTED]"}`),
		Warnings: []string{"w ghp_***"}, Text: []byte(`{"t":"ghp_***"}`), TextBlock: []byte("ghp_***"),
		Structured: []byte(`{"s":"ghp_***"}`)}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&before, in); diff != "" {
		t.Errorf("the handler's result was written to:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"github-token": 5, mask.ExactRule: 3}, c.Stats.MaskHits); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}

func TestStageBodies(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	gh := github(1)
	noise := string(junk(1, 500))
	for _, c := range []struct {
		kind     proxy.BodyKind
		in, want string
	}{
		{proxy.BodyText, "diff\n+" + gh + "\n", "diff\n+ghp_***\n"},
		{proxy.BodyBinary, "latin \xe9 " + gh, "latin \xe9 ghp_***"},
		{proxy.BodyBinary, noise + gh + callerToken, noise + gh + "[REDACTED]"},
		{proxy.BodyEmpty, "", ""},
	} {
		out, _, err := serve(e, call(&proxy.Tool{ReadOnly: true}, nil), &proxy.Result{Kind: c.kind, Body: []byte(c.in)},
			nil)
		if err != nil || string(out.Body) != c.want {
			t.Errorf("%q became %q, %v; want %q", c.in, out.Body, err, c.want)
		}
	}
}

// TestStageCredentialTools: what a tool is called to hand out passes once, to
// the caller; what the caller sent does not come back.
func TestStageCredentialTools(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, "configured-secret")
	token := random(newRand(1), 40, hexChars)
	issuing := &proxy.Tool{OperationID: "userCreateToken", CredentialIssuing: true}
	out, _, err := serve(e, call(issuing, nil),
		jsonResult(`{"sha1":"`+token+`","note":"access_token=`+token+` configured-secret"}`), nil)
	if err != nil || string(out.Body) != `{"sha1":"`+token+`","note":"access_token=`+token+` [REDACTED]"}` {
		t.Errorf("got %s, %v", out.Body, err)
	}
	_, _, err = serve(e, call(issuing, nil), nil, proxy.NewError(proxy.KindValidation, "bad access_token="+token, nil))
	if pe := proxy.AsError(err); strings.Contains(pe.Public, token) || pe.Kind != proxy.KindValidation {
		t.Errorf("the error of a tool that issues credentials: %v", pe)
	}
	hook := &proxy.Tool{OperationID: "repoCreateHook"}
	args := proxy.Arguments{"type": "gitea", "authorization_header": "Custom abc",
		"config": map[string]any{"url": "https://x.example.org", "secret": "s3cr"}}
	out, got, err := serve(e, call(hook, args), jsonResult(`{"authorization_header":"Custom abc","config":{"secret":"s3cr","url":"https://x.example.org"}}`), nil)
	if err != nil || string(out.Body) != `{"authorization_header":"[REDACTED]","config":{"secret":"[REDACTED]","url":"https://x.example.org"}}` {
		t.Errorf("got %s, %v", out.Body, err)
	}
	if !cmp.Equal(got, args) {
		t.Errorf("the handler got %v", got)
	}
}

func TestStageErrors(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *config.Masking) {
		r := rule("internal", `INTERNAL-[0-9]+`)
		r.Action = "block"
		c.Rules = []config.MaskRule{r}
	})
	gh := github(1)
	c := call(&proxy.Tool{}, nil)
	cause := fmt.Errorf("read %s: %w", gh, io.ErrUnexpectedEOF)
	_, _, err := serve(e, c, nil,
		&proxy.Error{Kind: proxy.KindConflict, Status: 409, Public: "exists: " + gh + " " + callerToken, Err: cause})
	pe := proxy.AsError(err)
	if pe.Public != "exists: ghp_*** [REDACTED]" || pe.Kind != proxy.KindConflict || pe.Status != 409 {
		t.Errorf("got %+v", pe)
	}
	if strings.Contains(err.Error(), gh) || !errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(fmt.Sprintf("%v %+v", err, pe), gh) {
		t.Errorf("the cause: %v", err)
	}
	if !cmp.Equal(c.Stats.MaskHits, map[string]int{"github-token": 2, mask.ExactRule: 1}) {
		t.Errorf("hits %v", c.Stats.MaskHits)
	}
	_, _, err = serve(e, c, nil, errors.New("plain "+gh))
	if pe := proxy.AsError(err); pe.Kind != proxy.KindInternal || strings.Contains(err.Error(), gh) {
		t.Errorf("an error of no kind: %v", err)
	}
	for _, res := range []*proxy.Result{nil, jsonResult(`{"a":"INTERNAL-12"}`)} {
		var in error
		if res == nil {
			in = proxy.NewError(proxy.KindNotFound, "no INTERNAL-12", nil)
		}
		out, _, err := serve(e, c, res, in)
		if pe := proxy.AsError(err); out != nil || pe.Kind != proxy.KindSecretBlocked ||
			strings.Contains(err.Error(), "INTERNAL-12") || !strings.Contains(pe.Public, "internal") {
			t.Errorf("blocked: %v, %v", out, err)
		}
	}
}

func TestStageFailsClosed(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	deep := strings.Repeat("[", 600) + `{"encoding":"base64","content":"eA=="}` + strings.Repeat("]", 600)
	out, _, err := serve(e, call(&proxy.Tool{}, nil), jsonResult(deep), nil)
	if pe := proxy.AsError(err); out != nil || pe.Kind != proxy.KindInternal ||
		!strings.Contains(pe.Public, "withheld") {
		t.Errorf("got %v, %v", out, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := proxy.Chain(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		cancel()
		return jsonResult(`{"a":"` + github(1) + `"}`), nil
	}), e.Stage())
	if out, err := h.Handle(ctx, call(&proxy.Tool{}, nil)); out != nil ||
		proxy.AsError(err).Kind != proxy.KindCancelled {
		t.Errorf("cancelled: %v, %v", out, err)
	}
}

// TestSecretAcrossTheCut: masking is whole before anybody cuts, so no half of
// a secret is left for a bound to show.
func TestSecretAcrossTheCut(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	gh := github(1)
	out, _ := text(t, e, strings.Repeat("x ", 50)+gh+strings.Repeat(" y", 50))
	for n := range len(out) {
		if cut := out[:n]; strings.Contains(cut, gh[:12]) {
			t.Fatalf("cut at %d shows %q", n, cut)
		}
	}
}

func TestSubmittedSecrets(t *testing.T) {
	t.Parallel()
	nest := func(n int, v any) any {
		for range n {
			v = map[string]any{"x": v}
		}
		return v
	}
	args := proxy.Arguments{
		"password": "pass1", "token": "abc", "username": "bob-name", "data": "dd",
		"config": map[string]any{"secret": "hooksecret", "list": []any{map[string]any{"private_key": "kkkk"}}},
		"seven":  nest(6, map[string]any{"client_secret": "depth8"}), "eight": nest(7, map[string]any{"client_secret": "depth9"}),
		"access_token": json.Number("12345"), "aws_access_key_id": []any{"one-id", "two-id"}, "body": `{"auth_password":"inraw"}`,
	}
	got := mask.SubmittedSecrets(call(&proxy.Tool{OperationID: "x"}, args))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"12345", "depth8", "hooksecret", "inraw", "kkkk", "one-id", "pass1", "two-id"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, a := range []proxy.Arguments{
		{"data": "x"},
		{"method": "PUT", "path": "/repos/o/r/actions/secrets/NAME", "body": map[string]any{"data": "x"}},
		{"method": "PUT", "path": "/repos/o/r/actions/secrets/NAME", "body": `{"data":"x"}`},
	} {
		tool := &proxy.Tool{OperationID: "updateRepoSecret"}
		if a["path"] != nil {
			tool = &proxy.Tool{}
		}
		if got := mask.SubmittedSecrets(call(tool, a)); !cmp.Equal(got, []string{"x"}) {
			t.Errorf("%v gives %q", a, got)
		}
	}
}

func TestShortSecretOfAnAction(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	c := call(&proxy.Tool{OperationID: "updateUserSecret"}, proxy.Arguments{"secretname": "N", "data": "zq"})
	out, _, err := serve(e, c, jsonResult(`{"message":"value zq is bad","n":1}`), nil)
	if err != nil || string(out.Body) != `{"message":"value [REDACTED] is bad","n":1}` {
		t.Errorf("got %s, %v", out.Body, err)
	}
}

func TestInputMasking(t *testing.T) {
	t.Parallel()
	gh := github(1)
	file := base64.StdEncoding.EncodeToString([]byte("KEY=" + gh + "\n"))
	masked := base64.StdEncoding.EncodeToString([]byte("KEY=ghp_***\n"))
	for _, c := range []struct {
		name     string
		tool     proxy.Tool
		in, want proxy.Arguments
		blocked  string // the argument that block mode names
	}{
		{"issue body", proxy.Tool{}, proxy.Arguments{"title": "t", "body": "see " + gh},
			proxy.Arguments{"title": "t", "body": "see ghp_***"}, "body"},
		{"nested", proxy.Tool{}, proxy.Arguments{"a": []any{"x", map[string]any{"b": gh, "n": json.Number("1")}}},
			proxy.Arguments{"a": []any{"x", map[string]any{"b": "ghp_***", "n": json.Number("1")}}}, "a[1].b"},
		{"action secret", proxy.Tool{OperationID: "updateRepoSecret"}, proxy.Arguments{"data": gh},
			proxy.Arguments{"data": gh}, ""},
		{"secret field", proxy.Tool{}, proxy.Arguments{"auth_token": gh, "config": map[string]any{"secret": gh}},
			proxy.Arguments{"auth_token": gh, "config": map[string]any{"secret": gh}}, ""},
		{"file", proxy.Tool{}, proxy.Arguments{"content": file}, proxy.Arguments{"content": masked}, "content"},
		{"files", proxy.Tool{}, proxy.Arguments{"files": []any{map[string]any{"content": file}}},
			proxy.Arguments{"files": []any{map[string]any{"content": masked}}}, "files[0].content"},
		{"file as text", proxy.Tool{}, proxy.Arguments{"content": "KEY=" + gh},
			proxy.Arguments{"content": "KEY=ghp_***"}, "content"},
		{"data elsewhere", proxy.Tool{}, proxy.Arguments{"data": gh}, proxy.Arguments{"data": "ghp_***"}, "data"},
		{"reading tool", proxy.Tool{ReadOnly: true}, proxy.Arguments{"q": gh}, proxy.Arguments{"q": gh}, ""},
		{"the caller's token", proxy.Tool{}, proxy.Arguments{"body": "x " + callerToken},
			proxy.Arguments{"body": "x [REDACTED]"}, "body"},
		{"clean", proxy.Tool{}, proxy.Arguments{"body": "clean", "content": "Y2xlYW4="},
			proxy.Arguments{"body": "clean", "content": "Y2xlYW4="}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := json.Marshal(c.in)
			e := newEngine(t, func(m *config.Masking) { m.Input, m.Mode = "mask", "off" })
			_, got, err := serve(e, call(&c.tool, c.in), jsonResult(`{}`), nil)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("mask (-want +got):\n%s%v", diff, err)
			}
			if after, _ := json.Marshal(c.in); string(after) != string(before) {
				t.Errorf("the arguments given were changed to %s", after)
			}
			e = newEngine(t, func(m *config.Masking) { m.Input = "block" })
			cl := call(&c.tool, c.in)
			_, got, err = serve(e, cl, jsonResult(`{}`), nil)
			if c.blocked == "" {
				if err != nil || !cmp.Equal(got, c.in) {
					t.Errorf("block: %v, handler got %v", err, got)
				}
				return
			}
			pe := proxy.AsError(err)
			if pe.Kind != proxy.KindSecretBlocked || !strings.Contains(pe.Public, "argument "+c.blocked+" ") ||
				got != nil || strings.Contains(err.Error(), gh) {
				t.Errorf("block: %v, handler got %v", err, got)
			}
			if len(cl.Stats.MaskHits) != 1 {
				t.Errorf("block: hits %v", cl.Stats.MaskHits)
			}
			e = newEngine(t, nil)
			if _, got, err := serve(e, call(&c.tool, c.in), jsonResult(`{}`), nil); err != nil ||
				!cmp.Equal(got, c.in) {
				t.Errorf("off: %v, handler got %v", err, got)
			}
		})
	}
}

// TestStageIsConcurrent gives the race detector something to look at.
func TestStageIsConcurrent(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	gh := github(1)
	done := make(chan error, 8)
	for i := range 8 {
		go func() {
			for range 50 {
				out, _, err := serve(e, call(&proxy.Tool{}, nil),
					jsonResult(fmt.Sprintf(`{"i":%d,"a":"%s","b":"\u0067hp_"}`, i, gh)), nil)
				if err == nil && string(out.Body) != fmt.Sprintf(`{"i":%d,"a":"ghp_***","b":"\u0067hp_"}`, i) {
					err = fmt.Errorf("got %s", out.Body)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestDeepArguments: what is nested deeper than is looked at is not sent, also where nothing
// is in it, and the argument is named as the caller wrote it.
func TestDeepArguments(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(m *config.Masking) { m.Input = "mask" })
	for depth, refused := range map[int]bool{63: false, 64: true, 65: true} {
		for _, inner := range []any{map[string]any{}, []any{}, map[string]any{"password": "x"}} {
			v := inner
			for range depth {
				v = []any{v}
			}
			_, got, err := serve(e, call(&proxy.Tool{}, proxy.Arguments{"deep": v}), jsonResult(`{}`), nil)
			if (err != nil) != refused || (got == nil) != refused {
				t.Errorf("%T below %d lists: %v", inner, depth, err)
			}
		}
	}
	e = newEngine(t, func(m *config.Masking) { m.Input = "block" })
	in := proxy.Arguments{".": map[string]any{".x": []any{github(3)}}}
	_, _, err := serve(e, call(&proxy.Tool{}, in), jsonResult(`{}`), nil)
	if pe := proxy.AsError(err); !strings.Contains(pe.Public, "argument ...x[0] ") {
		t.Errorf("%v", err)
	}
}
