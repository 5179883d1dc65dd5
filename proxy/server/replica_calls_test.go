package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"aegis/proxy/audit"
	"aegis/proxy/gitea/fakegitea"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestCursorsAcrossReplicas: an answer that was cut at one replica goes on at the
// others.
func TestCursorsAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{top: "results: {max_items: 3}\n", double: fakegitea.Options{Seed: fakegitea.SeedLab}})
	args, seen := map[string]any{"owner": "acme", "repo": "issues-lab", "limit": 9}, map[string]bool{}
	pages := 0
	for cursor := "first"; cursor != ""; pages++ {
		text, _ := json.Marshal(args)
		r, a := f.tool(botToken, "gitea_issue_list", string(text))
		if a.Status != http.StatusOK {
			t.Fatalf("page %d: %d %s", pages, r.status, r.body)
		}
		var rows []struct{ Number int }
		if err := json.Unmarshal(a.Data, &rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			seen[fmt.Sprint(row.Number)] = true
		}
		cursor = a.Truncation.Cursor
		args["cursor"] = cursor
	}
	if pages < 3 || len(seen) < 7 {
		t.Errorf("%d answers with %d issues", pages, len(seen))
	}
	args["cursor"] = "AAAA"
	text, _ := json.Marshal(args)
	if _, a := f.tool(botToken, "gitea_issue_list", string(text)); a.Error.Kind != "invalid_arguments" {
		t.Errorf("a made-up cursor: %+v", a)
	}
}

var confirmationCode = regexp.MustCompile(`[A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4}`)

// TestConfirmationsAcrossReplicas: a question that one replica asks is answered at
// another, once; a code that one replica makes is shown by the second and taken by
// the third, once.
func TestConfirmationsAcrossReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{
		oauth: "scopes: [write:repository, write:user]\n",
		top:   "policy: {confirm: {tools: [R3, R4], fallback: token}}\n",
	})
	token := f.newApp().connect("alice").field("access_token")
	for i := range 3 {
		name := fmt.Sprintf("doomed-%d", i)
		if _, a := f.tool(token, "gitea_repository_create", fmt.Sprintf(`{"name":%q}`, name)); a.Status != http.StatusCreated {
			t.Fatalf("%+v", a)
		}
		f.through(i)
		args := fmt.Sprintf(`{"owner":"alice","repo":%q}`, name)
		if _, a := f.tool(token, "gitea_repository_delete", args); a.Error.Kind != "confirmation_required" {
			t.Fatalf("%+v", a)
		}
		f.through((i + 1) % 3)
		p := f.person("alice")
		p.open(f.url + "/account")
		if p.goOn(p.press("/account", "do", "sign_in")) != nil {
			t.Fatalf("the account page led to a client: %s", p.at)
		}
		code := confirmationCode.FindString(p.page)
		if code == "" {
			t.Fatalf("no code at %s: %s", p.at, p.page)
		}
		f.through((i + 2) % 3)
		with := strings.Replace(args, "}", fmt.Sprintf(`,"confirmation_code":%q}`, code), 1)
		if _, a := f.tool(token, "gitea_repository_delete", with); a.Status != http.StatusNoContent {
			t.Errorf("%+v", a)
		}
		f.through(i)
		if _, a := f.tool(token, "gitea_repository_delete", with); a.Status == http.StatusNoContent || a.Error.Kind == "not_found" {
			t.Errorf("the code worked twice: %+v", a)
		}
		f.through(-1)
	}
	f.asksAcross(token)
}

// asksAcross lets the SDK's client ask its user through the balancer.
func (f *fleet) asksAcross(token string) {
	f.t.Helper()
	if _, a := f.tool(token, "gitea_repository_create", `{"name":"asked"}`); a.Status != http.StatusCreated {
		f.t.Fatalf("%+v", a)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"confirm": "alice/asked"}}, nil
		},
	})
	s, err := client.Connect(f.t.Context(),
		&sdk.StreamableClientTransport{Endpoint: f.endpoint, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: bearer{token}}},
		&sdk.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(f.t.Context(), &sdk.CallToolParams{Name: "gitea_repository_delete", Arguments: map[string]any{"owner": "alice", "repo": "asked"}})
	if err != nil || res.IsError {
		f.t.Errorf("%+v, %v", res, err)
	}
}

// TestAuditOfReplicas: each replica has a log of its own with its own name; all
// verify, and together they tell of every call once, in order.
func TestAuditOfReplicas(t *testing.T) {
	f := newFleet(t, fleetOptions{})
	for range 12 {
		if r, _ := f.whoami(botToken); r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	var dirs []string
	for _, x := range f.replicas {
		x.signal(syscall.SIGTERM)
		<-x.done
		dirs = append(dirs, filepath.Join(x.dir, "audit"))
	}
	chains := audit.Logs(dirs)
	if len(chains) != 3 {
		t.Fatalf("%d logs: %q", len(chains), chains)
	}
	for _, c := range chains {
		if r, _, err := audit.VerifyFiles(c, audit.FilesOptions{}); err != nil || r.Problem != nil {
			t.Errorf("%q: %v, %v", c, err, r.Problem)
		}
	}
	var out bytes.Buffer
	if skipped, err := audit.MergeFiles(dirs, audit.Filter{Event: "tool_invocation"}, &audit.Printer{W: &out, JSON: true}); err != nil || skipped != 0 {
		t.Fatal(skipped, err)
	}
	var last time.Time
	by := map[string]int{}
	for dec := json.NewDecoder(&out); dec.More(); {
		var r struct {
			Replica string
			Time    time.Time
		}
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Time.Before(last) {
			t.Errorf("%v after %v", r.Time, last)
		}
		last = r.Time
		by[r.Replica]++
	}
	if by["aegis-1"] != 4 || by["aegis-2"] != 4 || by["aegis-3"] != 4 {
		t.Errorf("calls by replica: %v", by)
	}
}
