package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const confirming = "policy: {confirm: {tools: [R3, R4]}}\n"

// asked connects a client whose user answers questions by answer.
func (r *rig) asked(token, version string, answer func(*sdk.ElicitParams) *sdk.ElicitResult) *sdk.ClientSession {
	r.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return answer(req.Params), nil
		},
	})
	s, err := client.Connect(r.t.Context(),
		&sdk.StreamableClientTransport{Endpoint: r.endpoint, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: bearer{token}}},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (r *rig) exists(repo string) bool {
	a := r.call(r.connect(aliceToken, "2025-11-25"), "gitea_repository_get", map[string]any{"owner": "alice", "repo": repo})
	return a.Status == 200
}

// TestAPersonConfirms: the SDK's client asks its user and repeats the call.
func TestAPersonConfirms(t *testing.T) {
	r := newRig(t, confirming)
	maker := r.connect(aliceToken, "2025-11-25")
	if a := r.call(maker, "gitea_repository_create", map[string]any{"name": "doomed"}); a.Status != 201 {
		t.Fatalf("%+v", a)
	}
	args := map[string]any{"owner": "alice", "repo": "doomed"}
	var questions []string
	typed, action := "alice/other", "accept"
	s := r.asked(aliceToken, "2026-07-28", func(p *sdk.ElicitParams) *sdk.ElicitResult {
		questions = append(questions, p.Message)
		return &sdk.ElicitResult{Action: action, Content: map[string]any{"confirm": typed}}
	})
	if a := r.call(s, "gitea_repository_delete", args); a.Error.Kind != "policy_denied" || !r.exists("doomed") {
		t.Errorf("the wrong name: %+v", a)
	}
	action = "decline"
	if a := r.call(s, "gitea_repository_delete", args); a.Error.Kind != "policy_denied" || !strings.Contains(a.Error.Message, "declined") || !r.exists("doomed") {
		t.Errorf("declined: %+v", a)
	}
	action, typed = "accept", "alice/doomed"
	if a := r.call(s, "gitea_repository_delete", args); a.Status != 204 || r.exists("doomed") {
		t.Errorf("confirmed: %+v", a)
	}
	if len(questions) != 3 || !strings.Contains(questions[0], "alice/doomed") {
		t.Errorf("asked %q", questions)
	}
	// What needs no person asks none.
	if a := r.call(s, "gitea_user_get_me", nil); a.Status != 200 || len(questions) != 3 {
		t.Errorf("%+v", a)
	}
}

// TestClientsThatCannotAskAreAnsweredAtOnce, also those that say they can in
// protocols whose transport has no way back.
func TestClientsThatCannotAskAreAnsweredAtOnce(t *testing.T) {
	r := newRig(t, confirming)
	args := map[string]any{"owner": "acme", "repo": "issues-lab"}
	for _, v := range generations {
		if a := r.call(r.connect(aliceToken, v), "gitea_repository_delete", args); a.Error.Kind != "policy_denied" {
			t.Errorf("%s: %+v", v, a)
		}
		if v == "2026-07-28" {
			continue
		}
		s := r.asked(aliceToken, v, func(*sdk.ElicitParams) *sdk.ElicitResult {
			t.Errorf("%s: asked", v)
			return nil
		})
		if a := r.call(s, "gitea_repository_delete", args); a.Error.Kind != "policy_denied" {
			t.Errorf("%s with elicitation: %+v", v, a)
		}
	}
	for _, req := range r.double.Requests() {
		if req.Method == http.MethodDelete {
			t.Error("Gitea was asked to delete")
		}
	}
}

// TestForgedConfirmations by raw HTTP: answers that no question led to.
func TestForgedConfirmations(t *testing.T) {
	r := newRig(t, confirming)
	for name, extra := range map[string]string{
		"no state":   `,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":"acme/issues-lab"}}}`,
		"made up":    `,"requestState":"AQEB","inputResponses":{"confirm":{"action":"accept","content":{"confirm":"acme/issues-lab"}}}`,
		"state only": `,"requestState":"AQEB"`,
		"empty":      `,"inputResponses":{}`,
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gitea_repository_delete","arguments":{"owner":"acme","repo":"issues-lab"}` + extra +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		req, err := http.NewRequest(http.MethodPost, r.endpoint, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Authorization": "Bearer " + aliceToken, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "gitea_repository_delete",
		} {
			req.Header.Set(k, v)
		}
		res, err := direct.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if !strings.Contains(string(text), "policy_denied") {
			t.Errorf("%s: %s %s", name, res.Status, text)
		}
	}
	for _, req := range r.double.Requests() {
		if req.Method == http.MethodDelete {
			t.Error("Gitea was asked to delete")
		}
	}
}
