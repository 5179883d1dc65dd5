package client_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aegis/proxy/oauth/client"
)

// register sends body and returns status and members of the answer.
func register(t testing.TB, r *client.Resolver, body string) (int, map[string]any) {
	t.Helper()
	status, answer := r.Register(t.Context(), []byte(body))
	var got map[string]any
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatalf("answer %q: %v", answer, err)
	}
	for name, v := range got {
		if v == nil {
			t.Errorf("%s is null", name)
		}
	}
	return status, got
}

// save registers and finds the client that was made.
func save(t testing.TB, r *client.Resolver, body string) (*client.Client, map[string]any) {
	t.Helper()
	status, got := register(t, r, body)
	if status != http.StatusCreated {
		t.Fatalf("status %d: %v", status, got)
	}
	id, _ := got["client_id"].(string)
	c, err := r.Client(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c, got
}

func TestRegisterAnswersEveryField(t *testing.T) {
	t.Parallel()
	r := resolver(t, nil)
	c, got := save(t, r, `{"client_name":"Tool","redirect_uris":["http://localhost/cb"],"token_endpoint_auth_method":"client_secret_post",
		"grant_types":["authorization_code"],"response_types":["code"],"scope":"read:issue offline_access foo issue write:admin read:issue","application_type":"native",
		"client_uri":"https://a.example","logo_uri":null,"contacts":null,"jwks":{},"software_id":"x","unknown":[1,{"a":null}]}`)
	secret, _ := got["client_secret"].(string)
	if !c.Secret(secret) || c.Secret(secret+"x") || c.Secret("") || len(secret) < 40 {
		t.Errorf("the secret %q does not work", secret)
	}
	delete(got, "client_id")
	delete(got, "client_secret")
	want := map[string]any{
		"client_id_issued_at": float64(newClock().Now().Unix()), "client_secret_expires_at": 0.0,
		"redirect_uris": []any{"http://localhost/cb"}, "token_endpoint_auth_method": "client_secret_post",
		"grant_types": []any{"authorization_code", "refresh_token"}, "response_types": []any{"code"},
		"client_name": "Tool", "scope": "read:issue", "application_type": "native",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c.Kind != client.Registered || c.Verified || c.Name != "Tool" || c.AuthMethod != "client_secret_post" || !c.LoopbackOnly || c.Host != "" {
		t.Errorf("%+v", c)
	}
}

func TestRegisterPublicClientHasNoSecret(t *testing.T) {
	t.Parallel()
	c, got := save(t, resolver(t, nil), `{"redirect_uris":["https://app.example/cb"],"token_endpoint_auth_method":"none","scope":""}`)
	for _, name := range []string{"client_secret", "client_secret_expires_at", "application_type"} {
		if v, there := got[name]; there {
			t.Errorf("%s: %v", name, v)
		}
	}
	if c.AuthMethod != client.AuthNone || c.Secret("") || c.Secret("x") || c.Name != "app.example" || c.LoopbackOnly {
		t.Errorf("%+v", c)
	}
	if scope, _ := got["scope"].(string); scope != strings.Join(oauthConfig().Scopes, " ") {
		t.Errorf("scope %q", scope)
	}
}

func TestRegisterNegotiates(t *testing.T) {
	t.Parallel()
	r := resolver(t, nil)
	const uris = `"redirect_uris":["http://localhost/cb"]`
	for _, tt := range []struct{ body, method string }{
		{`{` + uris + `}`, client.AuthBasic}, // RFC 7591's default
		{`{` + uris + `,"token_endpoint_auth_method":null}`, client.AuthBasic},
		{`{` + uris + `,"token_endpoint_auth_method":"none"}`, client.AuthNone},
		{`{` + uris + `,"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["private_key_jwt","none"]}`, client.AuthNone},
		{`{` + uris + `,"token_endpoint_auth_methods_supported":["tls_client_auth","client_secret_post"]}`, client.AuthPost},
		{`{` + uris + `,"token_endpoint_auth_method":"none","grant_types":["authorization_code","urn:ietf:params:oauth:grant-type:device_code"],"response_types":["code","token"]}`, client.AuthNone},
		{`{` + uris + `,"token_endpoint_auth_method":"none","grant_types":[],"response_types":null}`, client.AuthNone},
		{`{` + uris + `,"token_endpoint_auth_method":"none","application_type":"web"}`, client.AuthNone},
		{`{` + uris + `,"token_endpoint_auth_method":"none","application_type":7,"client_name":{},"scope":[]}`, client.AuthNone},
	} {
		c, got := save(t, r, tt.body)
		if c.AuthMethod != tt.method || got["token_endpoint_auth_method"] != tt.method {
			t.Errorf("%s: %s", tt.body, c.AuthMethod)
		}
		if _, secret := got["client_secret"]; secret != (tt.method != client.AuthNone) {
			t.Errorf("%s: has a secret: %v", tt.body, secret)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	r := resolver(t, nil)
	const uris = `"redirect_uris":["http://localhost/cb"]`
	eleven := make([]string, 11)
	for i := range eleven {
		eleven[i] = fmt.Sprintf("http://localhost/cb%d", i)
	}
	many, _ := json.Marshal(eleven) // strings always marshal
	for _, tt := range []struct{ body, code string }{
		{``, "invalid_client_metadata"},
		{`null`, "invalid_client_metadata"},
		{`[]`, "invalid_client_metadata"},
		{`"x"`, "invalid_client_metadata"},
		{`{` + uris, "invalid_client_metadata"},
		{`{` + uris + `} {}`, "invalid_client_metadata"},
		{strings.Repeat("[", 20000), "invalid_client_metadata"},
		{`{` + uris + `,"x":"` + strings.Repeat("x", 16<<10) + `"}`, "invalid_client_metadata"},
		{`{` + uris + `,"token_endpoint_auth_method":"private_key_jwt"}`, "invalid_client_metadata"},
		{`{` + uris + `,"token_endpoint_auth_method":"secret-method"}`, "invalid_client_metadata"},
		{`{` + uris + `,"grant_types":["client_credentials"]}`, "invalid_client_metadata"},
		{`{` + uris + `,"grant_types":"authorization_code"}`, "invalid_client_metadata"},
		{`{` + uris + `,"response_types":["token"]}`, "invalid_client_metadata"},
		{`{}`, "invalid_redirect_uri"},
		{`{"Redirect_URIs":["http://localhost/cb"]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":null}`, "invalid_redirect_uri"},
		{`{"redirect_uris":[]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":"http://localhost/cb"}`, "invalid_redirect_uri"},
		{`{"redirect_uris":[null]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":[7]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":["javascript:alert(1)","data:text/html,x","file:///etc/passwd"]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":["http://evil.example/secret-path"]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":` + string(many) + `}`, "invalid_redirect_uri"},
		{`{"redirect_uris":["https://app.example/` + strings.Repeat("a", 1200) + `","https://app.example/` + strings.Repeat("b", 1200) + `"]}`, "invalid_client_metadata"},
	} {
		status, got := register(t, r, tt.body)
		if code, _ := got["error"].(string); code != tt.code || status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
			t.Errorf("%.80s: %d %v, want %s", tt.body, status, got, tt.code)
		}
		text, _ := got["error_description"].(string)
		checkText(t, text, "secret-method", "secret-path", "evil.example", "/etc/passwd")
		if len(got) != 2 {
			t.Errorf("%.80s: %v", tt.body, got)
		}
	}
}

func TestRegisterKeepsUsableRedirects(t *testing.T) {
	t.Parallel()
	c, got := save(t, resolver(t, nil), `{"token_endpoint_auth_method":"none","redirect_uris":["javascript:alert(1)","`+cursor+`","vscode://x/y","http://localhost:8787/callback","http://localhost:8787/callback","https://a.example/x?a=1&b=<"]}`)
	want := []string{cursor, "http://localhost:8787/callback"}
	if !slices.Equal(c.RedirectURIs, want) {
		t.Errorf("%q", c.RedirectURIs)
	}
	if diff := cmp.Diff([]any{want[0], want[1]}, got["redirect_uris"]); diff != "" {
		t.Error(diff)
	}
}

// TestRegisterAnswersInPlainBytes: not even in the answer's spelling does a URI
// change.
func TestRegisterAnswersInPlainBytes(t *testing.T) {
	t.Parallel()
	const uri = "https://a.example/x?a=1&b='2'"
	_, answer := resolver(t, nil).Register(t.Context(), []byte(`{"redirect_uris":["`+uri+`"]}`))
	if !strings.Contains(string(answer), `"`+uri+`"`) {
		t.Errorf("%s", answer)
	}
}

func TestRegisterOff(t *testing.T) {
	t.Parallel()
	before, _ := save(t, resolver(t, nil), `{"redirect_uris":["http://localhost/cb"],"token_endpoint_auth_method":"none"}`)
	for _, policy := range []string{"off", "", "Open"} {
		r := resolver(t, func(o *client.Options) { o.Config.Registration = policy })
		status, got := register(t, r, `{"redirect_uris":["http://localhost/cb"]}`)
		if status != http.StatusForbidden || got["error"] != "access_denied" {
			t.Errorf("%q: %d %v", policy, status, got)
		}
		if _, err := r.Client(t.Context(), before.ID); err != nil {
			t.Errorf("%q: a client that registered before: %v", policy, err)
		}
	}
}

// TestRegisterHoldsNothing: a flood of registrations leaves neither records nor
// memory behind, and every client gets an id and a secret of its own.
func TestRegisterHoldsNothing(t *testing.T) {
	t.Parallel()
	spy := &spyStore{}
	r := resolver(t, func(o *client.Options) { o.Store = spy })
	seen := map[any]bool{}
	for range 10_000 {
		_, got := register(t, r, `{"redirect_uris":["http://localhost/cb"]}`)
		if seen[got["client_id"]] || seen[got["client_secret"]] {
			t.Fatal("two clients share an id or a secret")
		}
		seen[got["client_id"]], seen[got["client_secret"]] = true, true
	}
	if n := spy.calls.Load(); n != 0 {
		t.Errorf("the store was used %d times", n)
	}
}

func TestRegisteredIDs(t *testing.T) {
	t.Parallel()
	const body = `{"client_name":"Tool ✓","redirect_uris":["http://localhost/cb","https://a.example/x","http://127.0.0.1:1/","` + cursor + `"]}`
	first := resolver(t, nil)
	c, got := save(t, first, body)
	secret, _ := got["client_secret"].(string)
	if strings.Trim(c.ID, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		t.Errorf("%s needs escaping somewhere", c.ID)
	}

	t.Run("another replica", func(t *testing.T) {
		other, err := resolver(t, nil).Client(t.Context(), c.ID)
		if err != nil || !other.Secret(secret) || other.Name != "Tool ✓" || !slices.Equal(other.RedirectURIs, c.RedirectURIs) {
			t.Errorf("%+v %v", other, err)
		}
	})
	t.Run("rotation", func(t *testing.T) {
		rotated := resolver(t, func(o *client.Options) { o.Keys = ring("second", "first") })
		old, err := rotated.Client(t.Context(), c.ID)
		if err != nil || !old.Secret(secret) {
			t.Fatalf("%+v %v", old, err)
		}
		fresh, _ := save(t, rotated, body)
		if _, err := first.Client(t.Context(), fresh.ID); kindOf(err) != client.Unknown {
			t.Errorf("made by the old key: %v", err)
		}
		gone := resolver(t, func(o *client.Options) { o.Keys = ring("second") })
		_, err = gone.Client(t.Context(), c.ID)
		wantError(t, err, client.Unknown, c.ID)
		if _, err := gone.Client(t.Context(), fresh.ID); err != nil {
			t.Error(err)
		}
	})
	t.Run("forged", func(t *testing.T) {
		parts := strings.SplitN(c.ID, ".", 3)
		data, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		for i := range data { // every bit of what is authenticated, and of the code
			for bit := range 8 {
				data[i] ^= 1 << bit
				_, err := first.Client(t.Context(), parts[0]+"."+parts[1]+"."+base64.RawURLEncoding.EncodeToString(data))
				if kindOf(err) != client.Unknown {
					t.Fatalf("byte %d, bit %d: %v", i, bit, err)
				}
				data[i] ^= 1 << bit
			}
		}
		for _, id := range []string{
			"", "x", parts[0], parts[0] + ".", parts[0] + "." + parts[1], parts[0] + "." + parts[1] + ".", c.ID + "A", c.ID[:len(c.ID)-1], c.ID + "=", c.ID + "\n",
			" " + c.ID, c.ID + ".", strings.ToUpper(c.ID), parts[0] + ".AAAAAAAA." + parts[2], parts[0] + ".." + parts[2], "aegis_dc2." + parts[1] + "." + parts[2],
			parts[0] + "." + parts[1] + "." + strings.Repeat("A", 1<<20), c.ID[:40] + "\r\n" + c.ID[40:], c.ID[:len(c.ID)-10] + "\n" + c.ID[len(c.ID)-10:],
		} {
			_, err := first.Client(t.Context(), id)
			wantError(t, err, client.Unknown, id)
		}
	})
	t.Run("one spelling", func(t *testing.T) {
		for _, name := range []string{"a", "ab", "abc"} { // so that each remainder of base64 comes up
			id := made(t, first, name)
			for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
				other := id[:len(id)-1] + string(last)
				if _, err := first.Client(t.Context(), other); (err == nil) != (other == id) {
					t.Errorf("%s beside %s: %v", other, id, err)
				}
			}
		}
	})
	t.Run("policy", func(t *testing.T) {
		strict := resolver(t, func(o *client.Options) { o.Config.PrivateRedirects = nil })
		now, err := strict.Client(t.Context(), c.ID)
		if err != nil || now.Redirect(cursor) || !now.Redirect("http://localhost:5/cb") {
			t.Errorf("%+v %v", now, err)
		}
		alone, _ := save(t, first, `{"redirect_uris":["`+cursor+`"]}`)
		_, err = strict.Client(t.Context(), alone.ID)
		wantError(t, err, client.Refused, cursor)
	})
}

func made(t *testing.T, r *client.Resolver, name string) string {
	t.Helper()
	c, _ := save(t, r, `{"redirect_uris":["http://localhost/cb"],"client_name":"`+name+`"}`)
	return c.ID
}

// TestLongestIDIsRead: what registration accepts, look-up accepts.
func TestLongestIDIsRead(t *testing.T) {
	t.Parallel()
	r := resolver(t, nil)
	longest := 0
	for n := 1800; n < 2100; n++ {
		status, got := register(t, r, `{"client_name":"n","redirect_uris":["https://a.example/`+strings.Repeat("a", n)+`"]}`)
		if status != http.StatusCreated {
			continue
		}
		id, _ := got["client_id"].(string)
		longest = max(longest, len(id))
		if _, err := r.Client(t.Context(), id); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if longest < 2700 || longest > client.MaxID {
		t.Errorf("the longest id has %d characters, the bound is %d", longest, client.MaxID)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	c, got := save(t, resolver(t, nil), `{"redirect_uris":["http://localhost/cb"]}`)
	secret, _ := got["client_secret"].(string)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, c) + fmt.Sprintf(verb, *c); strings.Contains(text, secret) || strings.Contains(text, secret[len(secret)-20:]) {
			t.Errorf("%s prints the secret: %s", verb, text)
		}
	}
	if data, err := json.Marshal(c); err != nil || strings.Contains(string(data), secret) {
		t.Errorf("%s %v", data, err)
	}
}
