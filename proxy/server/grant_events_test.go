package server_test

import (
	"testing"

	"aegis/proxy/audit"
	"aegis/proxy/oauth/grant"
	"aegis/proxy/server"
)

// TestEveryGrantEventHasItsName in the audit log: a person who is no longer allowed
// is no stolen token.
func TestEveryGrantEventHasItsName(t *testing.T) {
	for kind, want := range map[grant.Kind]audit.Event{
		grant.Issued: audit.TokenIssued, grant.Refreshed: audit.TokenRefreshed, grant.Revoked: audit.TokenRevoked, grant.Denied: audit.TokenRevoked,
		grant.CodeRefused: audit.CodeRefused, grant.CodeReplayed: audit.CodeRefused, grant.Reused: audit.RefreshReused,
	} {
		if got := server.GrantEvents()[kind]; got != want {
			t.Errorf("%s is recorded as %q, want %q", kind, got, want)
		}
	}
}
