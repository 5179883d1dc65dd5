package server_test

import (
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestConfirmByNameHoldsForTheRawTool: a rule that names a tool holds for its
// operation, whichever tool reaches it.
func TestConfirmByNameHoldsForTheRawTool(t *testing.T) {
	for _, rule := range []string{"gitea_repository_delete", "gitea.repository.delete", "gitea_*_delete"} {
		r := newRig(t, "policy: {confirm: {tools: ['"+rule+"']}}\n")
		args := map[string]any{"method": "DELETE", "path": "/repos/acme/issues-lab"}
		if a := r.call(r.connect(aliceToken, "2025-11-25"), "gitea_api_request", args); a.Error.Kind != "policy_denied" {
			t.Errorf("%s: %+v", rule, a)
		}
		for _, req := range r.double.Requests() {
			if req.Method == http.MethodDelete {
				t.Errorf("%s: Gitea was asked to delete", rule)
			}
		}
	}
}

// TestQuestionsSayWhatTheRawToolDoes: a person must see that it deletes.
func TestQuestionsSayWhatTheRawToolDoes(t *testing.T) {
	r := newRig(t, confirming)
	var question string
	s := r.asked(aliceToken, "2026-07-28", func(p *sdk.ElicitParams) *sdk.ElicitResult {
		question = p.Message
		return &sdk.ElicitResult{Action: "decline"}
	})
	r.call(s, "gitea_api_request", map[string]any{"method": "DELETE", "path": "/repos/acme/issues-lab"})
	if !strings.Contains(question, "DELETE") {
		t.Errorf("asked %q", question)
	}
}
