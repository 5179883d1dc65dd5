package proxy_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"aegis/proxy"
)

// TestCredentialsPrintNothing, in whatever they are kept and however deep.
func TestCredentialsPrintNothing(t *testing.T) {
	t.Parallel()
	const secret = "5d1c9e0b7a3f8264c0e9d7b1a5f36284"
	cred := proxy.NewCredential(proxy.ModeOAuth, secret)
	hiding := struct {
		cred proxy.Credential
		list []proxy.Credential
		m    map[string]*proxy.Identity
	}{cred, []proxy.Credential{cred}, map[string]*proxy.Identity{"a": {Credential: cred}}}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "cred", cred, "in", hiding)
	text, err := json.Marshal(map[string]any{"cred": cred, "id": proxy.Identity{Credential: cred}})
	if err != nil {
		t.Fatal(err)
	}
	out := log.String() + string(text)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out += fmt.Sprintf(verb+verb+verb, cred, hiding, &hiding)
	}
	for _, shown := range []string{secret, fmt.Sprintf("%x", secret)} {
		if strings.Contains(out, shown) {
			t.Errorf("printed: %s", out)
		}
	}
	if cred.Secret() != secret || cred.Authorization() != "Bearer "+secret || (proxy.Credential{}).Authorization() != "" {
		t.Error("the credential does not work")
	}
}
