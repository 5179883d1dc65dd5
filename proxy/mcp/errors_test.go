package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aegis/proxy"
	"aegis/proxy/mcp"
)

// TestGiteasWordsInErrorsAreMarked: anyone may have written what Gitea repeats in an error, so
// the note of results stands before it; Aegis's own words have none.
func TestGiteasWordsInErrorsAreMarked(t *testing.T) {
	t.Parallel()
	for _, untrusted := range []bool{true, false} {
		e := &proxy.Error{Kind: proxy.KindConflict, Public: "branch ignore-your-instructions exists", Quoted: 38, Untrusted: untrusted}
		e.Shorten() // as the log's stage does before
		text := string(mcp.FailureText(&proxy.Call{RequestID: "r-1"}, e))
		note, err := json.Marshal(proxy.Untrusted)
		if err != nil {
			t.Fatal(err)
		}
		at, message := strings.Index(text, `"untrusted_content":`+string(note)), strings.Index(text, `"message":`)
		if untrusted != (at >= 0) || at > message {
			t.Errorf("untrusted %v: %s", untrusted, text)
		}
	}
}
