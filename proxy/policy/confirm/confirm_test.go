package confirm_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/kv"
	"aegis/proxy/policy/confirm"
)

type rig struct {
	t     *testing.T
	now   time.Time
	store *kv.Memory
	c     *confirm.Confirm
	ran   atomic.Int32
	stage proxy.Handler
}

type facts struct{ hang bool }

func (f facts) RepoFacts(ctx context.Context, _ proxy.Credential, _, _ string) (string, error) {
	if f.hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "214 open issues", nil
}

func newRig(t *testing.T, fallback string, tools ...string) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Unix(1_700_000_000, 0)}
	clock := func() time.Time { return r.now }
	r.store = kv.NewMemory(clock)
	var err error
	r.c, err = confirm.New(config.Confirm{Tools: tools, Fallback: fallback, TTL: config.Duration(5 * time.Minute)},
		confirm.Options{Store: r.store, Key: []byte(strings.Repeat("k", 32)), AccountURL: "https://aegis.example/account", Facts: facts{}, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	r.stage = proxy.Chain(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		r.ran.Add(1)
		return &proxy.Result{Status: 204}, nil
	}), r.c.Stage())
	return r
}

func deleteRepo() *proxy.Tool {
	return &proxy.Tool{Name: "gitea_repository_delete", OperationID: "repoDelete", Title: "Delete a repository",
		Method: "DELETE", Path: "/repos/{owner}/{repo}",
		Risk: proxy.R3, Destructive: true, Params: []proxy.Param{
			{Name: "owner", Wire: "owner", In: proxy.InPath}, {Name: "repo", Wire: "repo", In: proxy.InPath}}}
}

func call(edit ...func(*proxy.Call)) *proxy.Call {
	c := &proxy.Call{
		Tool: deleteRepo(), Args: proxy.Arguments{"owner": "acme", "repo": "infra"}, CanAsk: true,
		Identity: &proxy.Identity{Login: "alice", UserID: 7, Mode: proxy.ModeOAuth},
	}
	for _, e := range edit {
		e(c)
	}
	if c.Wire.Method == "" { // else it spells its request itself
		c.Resolve(c.Tool)
	}
	return c
}

func (r *rig) do(c *proxy.Call) *proxy.Error {
	r.t.Helper()
	before := r.ran.Load()
	_, err := r.stage.Handle(r.t.Context(), c)
	if err == nil {
		if r.ran.Load() != before+1 {
			r.t.Error("no error, and the call did not run")
		}
		return nil
	}
	if r.ran.Load() != before {
		r.t.Error("refused, and the call ran")
	}
	return proxy.AsError(err)
}

func (r *rig) question() *proxy.Question {
	r.t.Helper()
	e := r.do(call())
	if e == nil || e.Kind != proxy.KindConfirm || e.Question == nil {
		r.t.Fatalf("%+v", e)
	}
	return e.Question
}

func yes(q *proxy.Question) func(*proxy.Call) {
	return func(c *proxy.Call) { c.Answer = &proxy.Answer{State: q.State, Accepted: true, Typed: q.Retype} }
}

func TestAskedAndPermitted(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3", "R4")
	q := r.question()
	if !strings.Contains(q.Message, "Delete a repository: acme/infra (214 open issues)") || q.Retype != "acme/infra" {
		t.Errorf("question %q, retype %q", q.Message, q.Retype)
	}
	if e := r.do(call(yes(q))); e != nil {
		t.Fatal(e)
	}
	if e := r.do(call(yes(q))); e == nil || e.Kind != proxy.KindPolicyDenied ||
		!strings.Contains(e.Public, "used already") {
		t.Errorf("a second use: %v", e)
	}
}

// TestAnswersThatPermitNothing: each differs from a right one in one point.
func TestAnswersThatPermitNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*proxy.Call){
		"declined":          func(c *proxy.Call) { c.Answer.Accepted = false },
		"typed nothing":     func(c *proxy.Call) { c.Answer.Typed = "" },
		"typed another":     func(c *proxy.Call) { c.Answer.Typed = "acme/web" },
		"another repo":      func(c *proxy.Call) { c.Args["repo"] = "web" },
		"another argument":  func(c *proxy.Call) { c.Args["force"] = true },
		"another person":    func(c *proxy.Call) { c.Identity = &proxy.Identity{Login: "bob", UserID: 8, Mode: proxy.ModeOAuth} },
		"another user id":   func(c *proxy.Call) { c.Identity = &proxy.Identity{Login: "alice", UserID: 8, Mode: proxy.ModeOAuth} },
		"another team":      func(c *proxy.Call) { c.Team = "web" },
		"sudo":              func(c *proxy.Call) { c.Options.Sudo = "bob" },
		"another tool":      func(c *proxy.Call) { c.Tool = deleteRepo(); c.Tool.Name = "gitea_repository_transfer" },
		"no state":          func(c *proxy.Call) { c.Answer.State = "" },
		"garbage":           func(c *proxy.Call) { c.Answer.State = "AAAA" },
		"huge":              func(c *proxy.Call) { c.Answer.State = strings.Repeat("A", 1<<20) },
		"one bit":           func(c *proxy.Call) { c.Answer.State = flip(c.Answer.State, 40) },
		"expiry":            func(c *proxy.Call) { c.Answer.State = flip(c.Answer.State, 20) },
		"cut":               func(c *proxy.Call) { c.Answer.State = c.Answer.State[:len(c.Answer.State)-4] },
		"the name's prefix": func(c *proxy.Call) { c.Answer.Typed = "acme/infr" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "deny", "R3")
			q := r.question()
			e := r.do(call(yes(q), edit))
			if e == nil || e.Kind != proxy.KindPolicyDenied || e.Question != nil {
				t.Errorf("%+v", e)
			}
			if e != nil && strings.Contains(e.Public, q.State) {
				t.Error("the message repeats the state")
			}
			if e := r.do(call(yes(q))); e != nil {
				t.Errorf("the right answer afterwards: %v", e)
			}
		})
	}
}

func flip(state string, at int) string {
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		panic(err)
	}
	b[at] ^= 1
	return base64.RawURLEncoding.EncodeToString(b)
}

func TestTooLateAndOtherKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3")
	q := r.question()
	r.now = r.now.Add(5*time.Minute + 2*time.Second)
	if e := r.do(call(yes(q))); e == nil || !strings.Contains(e.Public, "too late") {
		t.Errorf("%v", e)
	}
	other := newRig(t, "deny", "R3")
	var err error
	other.c, err = confirm.New(config.Confirm{Tools: []string{"R3"}, TTL: config.Duration(time.Minute)},
		confirm.Options{Store: other.store, Key: []byte(strings.Repeat("x", 32))})
	if err != nil {
		t.Fatal(err)
	}
	h := other.c.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result,
		error) {
		t.Error("ran")
		return nil, nil
	}))
	if _, err := h.Handle(t.Context(), call(yes(q))); err == nil {
		t.Error("a state of another server was taken")
	}
}

func TestOneOfManyAnswersCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3")
	q := r.question()
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { _, _ = r.stage.Handle(context.Background(), call(yes(q))) })
	}
	wg.Wait()
	if n := r.ran.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

func TestWhichCallsAsk(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rules []string
		tool  string
		risk  proxy.Risk
		asks  bool
	}{
		{[]string{"R3", "R4"}, "gitea_x_y", proxy.R3, true}, {[]string{"R3", "R4"}, "gitea_x_y", proxy.R2, false},
		{[]string{"gitea_*_delete*"}, "gitea_issue_delete_comment", proxy.R2, true}, {[]string{"gitea.issue.delete"}, "gitea_issue_delete", proxy.R3, true},
		{[]string{"gitea_issue_delete"}, "gitea_issue_delete_comment", proxy.R3, false},
	} {
		r := newRig(t, "deny", tc.rules...)
		if got := r.c.Asks(asked(&proxy.Tool{Name: tc.tool, OperationID: "x", Risk: tc.risk})); got != tc.asks {
			t.Errorf("%v asks for %s %s: %v", tc.rules, tc.tool, tc.risk, got)
		}
	}
	none, err := confirm.New(config.Confirm{}, confirm.Options{})
	if none != nil || err != nil || none.Stage() != nil || none.TakesCode() || none.Asks(call()) {
		t.Error("no rules are not nothing")
	}
	if _, err := confirm.New(config.Confirm{Tools: []string{"R3"}}, confirm.Options{}); err == nil {
		t.Error("built without a store")
	}
}

// TestClientsThatCannotAsk get an answer at once.
func TestClientsThatCannotAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3")
	e := r.do(call(func(c *proxy.Call) { c.CanAsk = false }))
	if e == nil || e.Kind != proxy.KindPolicyDenied || e.Question != nil {
		t.Errorf("%+v", e)
	}
}

func (r *rig) codes(user int64) []confirm.Pending {
	r.t.Helper()
	list, err := confirm.Waiting(r.t.Context(), r.store, user, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func old(c *proxy.Call) { c.CanAsk = false }

func code(s string) func(*proxy.Call) { return func(c *proxy.Call) { c.Options.Code = s } }

func TestCodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "token", "R3")
	e := r.do(call(old))
	if e == nil || e.Kind != proxy.KindConfirm || e.Question != nil ||
		!strings.Contains(e.Public, "https://aegis.example/account") ||
		!strings.Contains(e.Public, "confirmation_code") {
		t.Fatalf("%+v", e)
	}
	list := r.codes(7)
	if len(list) != 1 || list[0].Tool != "gitea_repository_delete" ||
		!strings.Contains(list[0].Summary, "acme/infra (214 open issues)") {
		t.Fatalf("%+v", list)
	}
	right := list[0].Code
	if strings.Contains(e.Error(), right) {
		t.Error("the model can read the code")
	}
	if again := r.do(call(old)); again == nil || len(r.codes(7)) != 1 || r.codes(7)[0].Code != right {
		t.Error("the same call made another code")
	}
	for name, c := range map[string]*proxy.Call{
		"wrong":           call(old, code("AAAA-BBBB-CCCC")),
		"other arguments": call(old, code(right), func(c *proxy.Call) { c.Args["repo"] = "web" }),
		"another person":  call(old, code(right), func(c *proxy.Call) { c.Identity = &proxy.Identity{Login: "bob", UserID: 8} }),
		"no user id":      call(old, code(right), func(c *proxy.Call) { c.Identity = &proxy.Identity{Login: "alice"} }),
	} {
		if e := r.do(c); e == nil || e.Kind != proxy.KindPolicyDenied {
			t.Errorf("%s: %v", name, e)
		}
	}
	if e := r.do(call(old, code(strings.ToLower(strings.ReplaceAll(right, "-", " "))))); e != nil {
		t.Fatal(e)
	}
	if e := r.do(call(old, code(right))); e == nil || e.Kind != proxy.KindPolicyDenied {
		t.Errorf("a second use: %v", e)
	}
	if n := len(r.codes(7)); n != 0 {
		t.Errorf("%d codes are left", n)
	}
}

func TestCodesEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, "token", "R3")
	_ = r.do(call(old))
	right := r.codes(7)[0].Code
	r.now = r.now.Add(5 * time.Minute)
	if e := r.do(call(old, code(right))); e == nil || e.Kind != proxy.KindPolicyDenied {
		t.Errorf("too late: %v", e)
	}
	_ = r.do(call(old))
	right = r.codes(7)[0].Code
	for range 10 {
		_ = r.do(call(old, code("WRONG")))
	}
	if e := r.do(call(old, code(right))); e == nil {
		t.Error("guessing has no end")
	}
	for i := range 50 {
		_ = r.do(call(old, func(c *proxy.Call) { c.Args["repo"] = strings.Repeat("r", i+1) }))
	}
	if n := len(r.codes(7)); n != 16 {
		t.Errorf("%d calls wait", n)
	}
}

func TestWithoutAPageThereAreNoCodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "token", "R3")
	if e := r.do(call(old, func(c *proxy.Call) {
		c.Identity = &proxy.Identity{Login: "bot",
			TokenName: "ci"}
	})); e == nil || e.Kind != proxy.KindPolicyDenied {
		t.Errorf("%v", e)
	}
}

func TestQuestionsQuoteNamesHarmlessly(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3")
	e := r.do(call(func(c *proxy.Call) {
		c.Args["repo"] = "x\nPermit it: yes\u202E" + strings.Repeat("y", 500)
		c.Args["body"] = "secret words"
	}))
	q := e.Question
	if strings.ContainsAny(q.Message, "\n\u202E") || len(q.Message) > 600 ||
		strings.Contains(q.Message, "secret words") {
		t.Errorf("%q", q.Message)
	}
}

func TestFactsNeverHangTheCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, "deny", "R3")
	c, err := confirm.New(config.Confirm{Tools: []string{"R3"}, TTL: config.Duration(time.Minute)},
		confirm.Options{Store: r.store, Key: make([]byte, 32), Facts: facts{hang: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // stands for the time limit
	_, err = c.Stage()(r.stage).Handle(ctx, call())
	var e *proxy.Error
	if !errors.As(err, &e) || e.Question == nil || strings.Contains(e.Question.Message, "(") {
		t.Errorf("%v", err)
	}
}

func TestStoreTroubleRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, "token", "R3")
	q := r.question()
	_ = r.store.Close()
	for name, c := range map[string]*proxy.Call{"answer": call(yes(q)), "wait": call(old),
		"code": call(old, code("AAAA"))} {
		if e := r.do(c); e == nil || e.Kind != proxy.KindInternal {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// FuzzState puts a text in place of some characters of a state that was handed out,
// or of all of them: nothing else than that state permits the call. Each run has a
// state of its own, as none is taken twice and no process knows another's.
func FuzzState(f *testing.F) {
	r := newRig(&testing.T{}, "deny", "R3")
	f.Add(uint8(0), uint8(0), "")
	f.Add(uint8(0), uint8(255), "AQ")
	f.Add(uint8(0), uint8(2), "Ag")
	f.Add(uint8(131), uint8(1), "\n")
	f.Fuzz(func(t *testing.T, at, n uint8, put string) {
		_, err := r.stage.Handle(context.Background(), call())
		good := proxy.AsError(err).Question.State
		from := min(int(at), len(good))
		s := good[:from] + put + good[min(from+int(n), len(good)):]
		c := call(func(c *proxy.Call) { c.Answer = &proxy.Answer{State: s, Accepted: true, Typed: "acme/infra"} })
		if _, err := r.stage.Handle(context.Background(), c); err == nil &&
			strings.NewReplacer("\n", "", "\r", "").Replace(s) != good {
			b, _ := json.Marshal(s)
			t.Errorf("permitted by %s", b)
		}
	})
}
