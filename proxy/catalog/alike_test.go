package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/audit"
	"aegis/proxy/catalog"
	"aegis/proxy/gitea"
	"aegis/proxy/kv"
	"aegis/proxy/mask"
	"aegis/proxy/mask/match"
	"aegis/proxy/policy"
	"aegis/proxy/policy/confirm"
)

// known is a secret of the configuration; submitted is one by the name of its field.
const (
	known     = "a-known-secret-value"
	submitted = "a-submitted-one"
)

// TestBothFormsAreTreatedAlike sends every operation by its own tool and through the
// raw tool, with all arguments that both can spell, past everything that decides about
// a call or records it, and to a server: verdicts, questions, records, masking and the
// request that arrives are the same.
func TestBothFormsAreTreatedAlike(t *testing.T) {
	t.Parallel()
	r := newAlike(t)
	sel := everything(t)
	same, masked, asked, allowed := 0, 0, 0, make([]int, len(r.policies))
	for _, tool := range builtin(t).Tools() {
		if oneForm(tool) != "" {
			continue
		}
		for _, optional := range []bool{false, true} {
			given := sampled(tool, optional)
			for _, name := range []string{"description", "body", "title", "message"} { // what is masked on the way down
				if v, ok := given[name].(string); ok && v == samples[0] {
					given[name] = "text with " + known
				}
			}
			for _, name := range []string{"password", "auth_token", "client_secret", "data"} {
				if v, ok := given[name].(string); ok && v == samples[0] {
					given[name] = submitted
				}
			}
			typed := r.follow(sel, tool.OperationID, tool.Name, given)
			raw := r.follow(sel, tool.OperationID, "gitea_api_request", rawForm(tool, given))
			if diff := gocmp.Diff(typed, raw); diff != "" {
				t.Errorf("%s %v (-typed +raw):\n%s", tool.OperationID, given, diff)
			}
			if len(typed.Sent) == 0 {
				t.Errorf("%s %v: nothing arrives: %v", tool.OperationID, given, typed.Failure)
			}
			if strings.Contains(typed.Answer, known) || strings.Contains(typed.Answer, submitted) {
				t.Errorf("%s %v: the answer shows a secret: %s", tool.OperationID, given, typed.Answer)
			}
			same++
			masked += len(typed.Hits)
			for i, v := range typed.Verdicts {
				if v == "allow" {
					allowed[i]++
				}
			}
			if !strings.HasSuffix(typed.Question, "\n") {
				asked++
			}
		}
	}
	records := r.records()
	for id, typed := range records {
		form, of, _ := strings.Cut(id, " ")
		if raw, ok := records["gitea_api_request "+of]; form != "gitea_api_request" && (!ok || typed != raw) {
			t.Errorf("%s is recorded as %s and as %s", of, typed, raw)
		}
	}
	if same < 1000 || len(records) < 2*same || masked < 80 || asked < 100 {
		t.Errorf("%d calls in both forms, %d records, %d masked, %d questions about a body: the test sees too little",
			same, len(records), masked, asked)
	}
	for i, n := range allowed {
		if n < 50 || n > same-30 {
			t.Errorf("policy %d allows %d of %d calls: the test sees too little", i, n, same)
		}
	}
}

// treated is all that becomes of a call but its record.
type treated struct {
	Verdicts []string
	Question string // what is typed to permit it, and what of the body is shown
	Sent     []string
	Answer   string
	Hits     map[string]int
	Failure  string
}

// alike is what both forms pass.
type alike struct {
	*testing.T
	server   *httptest.Server
	mu       sync.Mutex
	sent     []string // guarded by mu
	client   *gitea.Client
	policies []*policy.Policy
	confirm  *confirm.Confirm
	mask     *mask.Engine
	log      *audit.Log
	file     string
	n        map[string]int
}

func newAlike(t *testing.T) *alike {
	t.Helper()
	r := &alike{T: t, n: map[string]int{}, file: filepath.Join(t.TempDir(), "audit.jsonl")}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if strings.HasSuffix(req.URL.Path, "/settings/api") && len(r.sent) > 0 { // the client's own question
			_, _ = io.WriteString(w, `{}`)
			return
		}
		query, _ := url.ParseQuery(req.URL.RawQuery)
		r.sent = append(r.sent,
			req.Method+" "+req.URL.EscapedPath(), query.Encode(), string(body), req.Header.Get("Content-Type"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":7,"number":3,"html_url":"https://git.example/acme/web/issues/3","echo":%q}`, body)
	}))
	t.Cleanup(r.server.Close)
	base, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if r.client, err = gitea.New(config.Gitea{URL: &config.URL{URL: *base}}, gitea.Limits{Scrub: match.Credentials},
		zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	for _, cfg := range []config.Policy{
		{Repos: config.Patterns{Allow: []string{"x1/*"}}}, {Repos: config.Patterns{Deny: []string{"x1/*"}}},
		{Branches: config.BranchRules{Allow: []string{"ai/**"}}}, {Branches: config.BranchRules{Deny: []string{"main"}}},
		{Paths: config.Patterns{Allow: []string{"docs/**"}}}, {Paths: config.Patterns{Deny: []string{"docs/**"}}},
		{Budgets: config.Budgets{MaxBatch: 1, MaxBodyBytes: 10, MaxFileBytes: 1}},
	} {
		p, err := policy.New(cfg, policy.Options{Operations: builtin(t).Tools()})
		if err != nil {
			t.Fatal(err)
		}
		r.policies = append(r.policies, p)
	}
	r.confirm, err = confirm.New(config.Confirm{Tools: []string{"R0", "R1", "R2", "R3", "R4"}},
		confirm.Options{Store: kv.NewMemory(nil), Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	masking := config.Default().Masking
	masking.Input = "mask"
	if r.mask, err = mask.New(masking, []string{known}); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default().Audit
	cfg.Sync = "none"
	r.log = audit.New(audit.Options{
		Path: r.file, KeyFile: r.file + ".key", Config: cfg, Log: zerolog.Nop(), Clean: func(s string) string { return s },
	})
	if err := r.log.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.log.Close)
	return r
}

// follow sends one call.
func (r *alike) follow(sel *catalog.Selection, operation, tool string, args map[string]any) (out treated) {
	r.Helper()
	r.n[tool+operation]++
	cred := proxy.NewCredential(proxy.ModeStatic, "0123456789abcdef")
	c := &proxy.Call{
		RequestID: fmt.Sprintf("%s %s %d", tool, operation, r.n[tool+operation]),
		Name:      tool, RawArgs: json.RawMessage(text(r, args)), CanAsk: true,
		Identity: &proxy.Identity{Login: "alice", Mode: proxy.ModeStatic, Credential: cred},
	}
	if tool != "gitea_api_request" {
		c.RequestID = "typed" + strings.TrimPrefix(c.RequestID, tool)
	}
	decide := func(next proxy.Handler) proxy.Handler {
		return proxy.HandlerFunc(func(ctx context.Context, c *proxy.Call) (*proxy.Result, error) {
			for _, p := range r.policies {
				out.Verdicts = append(out.Verdicts, p.Explain(ctx, c).String())
			}
			_, err := r.confirm.Stage()(next).Handle(ctx, c)
			q := proxy.AsError(err).Question
			_, with, _ := strings.Cut(q.Message, ", with ")
			out.Question = q.Retype + "\n" + with
			return next.Handle(ctx, c)
		})
	}
	r.arrived()
	chain := proxy.Chain(r.client, r.log.Stage(), sel.Stage(), r.log.RecordStart(), decide, r.mask.Stage())
	res, err := chain.Handle(r.Context(), c)
	out.Sent, out.Hits = r.arrived(), c.Stats.MaskHits
	if err != nil {
		out.Failure = err.Error()
		return out
	}
	out.Answer = string(res.Body)
	return out
}

// arrived returns what has arrived since it was last asked.
func (r *alike) arrived() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

// records returns what the log holds of each call's target and object.
func (r *alike) records() map[string]string {
	r.Helper()
	r.log.Close()
	data, err := os.ReadFile(r.file)
	if err != nil {
		r.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		var rec audit.Record
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			r.Fatal(err)
		}
		if rec.Event == audit.ToolInvocation {
			out[rec.RequestID] = rec.Call.Operation + " " + text(r, rec.Call.Target) + " " + text(r, rec.Result.Object)
		}
	}
	return out
}
