package confirm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/policy/confirm"
)

// rawDelete is the raw tool as it stands for an operation; id "" for a route that
// the catalog lacks.
func rawDelete(id string, risk proxy.Risk) *proxy.Tool {
	return &proxy.Tool{Name: "gitea_api_request", Title: "Call any API route", OperationID: id, Method: "DELETE",
		Risk: risk, Destructive: true}
}

// asked is a call of a tool, which for the raw tool reaches the operation that it
// stands for.
func asked(tool *proxy.Tool) *proxy.Call {
	c := &proxy.Call{Tool: tool, Op: tool, Wire: proxy.Wire{Method: tool.Method}}
	switch {
	case tool.OperationID == "":
		c.Op = nil
	case tool.OperationID == "repoDelete":
		c.Op = deleteRepo()
	}
	return c
}

// spells makes a call one that spells its request itself.
func spells(c *proxy.Call, tool, op *proxy.Tool, path string, body map[string]any) {
	c.Tool, c.Op, c.Wire = tool, op, proxy.Wire{Method: tool.Method, Path: path}
	c.Args = proxy.Arguments{"method": tool.Method, "path": path, "body": body}
	if op != nil {
		for i, name := range []string{"owner", "repo"} {
			c.Wire.Values = append(c.Wire.Values,
				proxy.Field{Name: name, In: proxy.InPath, Value: strings.Split(path, "/")[2+i]})
		}
	}
	for name, v := range body {
		c.Wire.Body = append(c.Wire.Body, proxy.Field{Name: name, In: proxy.InBody, Value: v})
	}
}

func rules(t *testing.T, tools ...string) (*confirm.Confirm, *rig) {
	t.Helper()
	r := newRig(t, "deny", "R3")
	c, err := confirm.New(config.Confirm{Tools: tools, TTL: config.Duration(time.Minute)},
		confirm.Options{Store: r.store, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func TestRulesHoldForTheRawTool(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"gitea_repository_delete", "gitea.repository.delete", "gitea_*_delete"} {
		c, _ := rules(t, rule)
		if !c.Asks(asked(rawDelete("repoDelete", proxy.R3))) || c.Asks(asked(rawDelete("orgDelete", proxy.R3))) {
			t.Errorf("%s does not decide about the operation", rule)
		}
		if !c.Asks(asked(rawDelete("", proxy.R4))) {
			t.Errorf("%s: a route that nobody knows asks nobody", rule)
		}
	}
	if c, _ := rules(t, "R3"); !c.Asks(asked(rawDelete("", proxy.R4))) {
		t.Error("R3: a route that nobody knows asks nobody")
	}
}

func TestRawQuestionsSayWhatIsDone(t *testing.T) {
	t.Parallel()
	c, r := rules(t, "R3")
	call := call(func(c *proxy.Call) {
		spells(c, rawDelete("repoDelete", proxy.R3), deleteRepo(), "/repos/acme/infra", nil)
	})
	_, err := c.Stage()(r.stage).Handle(t.Context(), call)
	q := proxy.AsError(err).Question
	if q == nil || !strings.Contains(q.Message, "DELETE /repos/acme/infra (gitea_repository_delete)") ||
		q.Retype != "acme/infra" {
		t.Errorf("%+v", q)
	}
}

// TestAnAnswerWorksOnceWhateverTheTTLBecomes: a reload may shorten it while an
// answer to an older question is about.
func TestAnAnswerWorksOnceWhateverTheTTLBecomes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3")
	of := func(ttl time.Duration) proxy.Handler {
		c, err := confirm.New(config.Confirm{Tools: []string{"R3"}, TTL: config.Duration(ttl)},
			confirm.Options{Store: r.store, Key: make([]byte, 32), Now: func() time.Time { return r.now }})
		if err != nil {
			t.Fatal(err)
		}
		return c.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result,
			error) {
			return &proxy.Result{}, nil
		}))
	}
	_, err := of(time.Hour).Handle(t.Context(), call())
	q := proxy.AsError(err).Question
	short := of(30 * time.Second)
	if _, err := short.Handle(t.Context(), call(yes(q))); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(10 * time.Minute)
	if _, err := short.Handle(t.Context(), call(yes(q))); err == nil {
		t.Error("the same answer worked twice")
	}
}

// TestQuestionsSayWhereThingsGo: what a person permits is more than a name in a path.
func TestQuestionsSayWhereThingsGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3")
	transfer := &proxy.Tool{Name: "gitea_repository_transfer", OperationID: "repoTransfer",
		Title: "Transfer a repository", Method: "POST",
		Path: "/repos/{owner}/{repo}/transfer", Risk: proxy.R3, Destructive: true,
		Params: []proxy.Param{{Name: "owner", Wire: "owner", In: proxy.InPath}, {Name: "repo", Wire: "repo", In: proxy.InPath}, {Name: "new_owner", Wire: "new_owner", In: proxy.InBody}}}
	raw := rawDelete("repoTransfer", proxy.R3)
	raw.Method = "POST"
	for name, edit := range map[string]func(*proxy.Call){
		"tool": func(c *proxy.Call) { c.Tool, c.Args["new_owner"] = transfer, "mallory\u202e" },
		"raw": func(c *proxy.Call) {
			spells(c, raw, transfer, "/repos/acme/infra/transfer",
				map[string]any{"new_owner": "mallory", "text": "secret words"})
		},
		"sudo": func(c *proxy.Call) { c.Options.Sudo = "mallory" },
		"mirror": func(c *proxy.Call) {
			spells(c, raw, nil, "/repos/acme/infra/push_mirrors",
				map[string]any{"remote_address": "https://x:secret@mallory.example/y?secret=1"})
		},
	} {
		q := r.do(call(edit)).Question
		if q == nil || !strings.Contains(q.Message, "mallory") || strings.Contains(q.Message, "secret") ||
			strings.Contains(q.Message, "\u202e") {
			t.Errorf("%s: %+v", name, q)
		}
	}
}
