package mask_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/mask"
)

func newEngine(t testing.TB, change func(*config.Masking), secrets ...string) *mask.Engine {
	t.Helper()
	cfg := mask.Default()
	if change != nil {
		change(&cfg)
	}
	e, err := mask.New(cfg, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func text(t testing.TB, e *mask.Engine, s string) (string, mask.Hits) {
	t.Helper()
	out, hits, err := e.Text(context.Background(), nil, []byte(s), nil, mask.Options{})
	if err != nil {
		t.Fatalf("Text: %v", err)
	}
	return string(out), hits
}

func doc(t testing.TB, e *mask.Engine, s string) (string, mask.Hits) {
	t.Helper()
	out, hits, err := e.JSON(context.Background(), nil, []byte(s), nil, mask.Options{})
	if err != nil {
		t.Fatalf("JSON: %v", err)
	}
	return string(out), hits
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// example makes a text that the rule must find, and the secret in it.
func example(t testing.TB, r *rand.Rand, s mask.RuleSpec) (in, secret string) {
	t.Helper()
	switch {
	case s.Own:
		return ownExample(r, s.Name)
	case len(s.Keywords) > 0:
		secret = generate(t, r, s.Values[r.IntN(len(s.Values))])
		key := s.Keywords[r.IntN(len(s.Keywords))]
		if s.Tail > 0 && r.IntN(2) == 0 {
			key += "_api_key"
		}
		if r.IntN(2) == 0 {
			key = strings.ToUpper(key)
		}
		op := []string{"=", ": ", " := ", " = ", "\": \"", "=>", "': '"}[r.IntN(7)]
		return key + op + secret, secret
	}
	secret = generate(t, r, s.Patterns[r.IntN(len(s.Patterns))])
	if s.Must != "" && !strings.Contains(secret, s.Must) {
		at := len(secret) - len(s.Must) - 8
		secret = secret[:at] + s.Must + secret[at+len(s.Must):]
	}
	return secret, secret
}

func ownExample(r *rand.Rand, name string) (in, secret string) {
	key := func() string {
		var b strings.Builder
		for range 5 {
			b.WriteString(random(r, 64, alnum+"+/") + "\n")
		}
		return b.String() + random(r, 30, alnum) + "==\n"
	}
	switch name {
	case "private-key":
		kind := []string{"", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "}[r.IntN(5)]
		secret = key()
		return "-----BEGIN " + kind + "PRIVATE KEY-----\n" + secret + "-----END " + kind + "PRIVATE KEY-----\n",
			strings.TrimSpace(secret)
	case "putty-key":
		secret = key()
		return "Private-Lines: 6\n" + secret + "Private-MAC: " + random(r, 40, hexChars), strings.TrimSpace(secret)
	case "url-password":
		secret = random(r, 1, alnum) + random(r, 12, alnum+"-._~!$")
		return []string{"https", "postgres", "redis", "git+ssh"}[r.IntN(4)] + "://bob:" + secret + "@db.example.org/x",
			secret
	case "authorization-header":
		secret = random(r, 32, alnum) + "7x9"
		return "Authorization: " + []string{"Bearer ", "token ", "ApiKey ", ""}[r.IntN(4)] + secret, secret
	case "gitea-token":
		secret = random(r, 40, hexChars)
		return []string{"Authorization: token ", "token ", "GITEA_TOKEN=", "access_token: ", "forgejo: ", "gitea-pat=",
			"the token is "}[r.IntN(7)] + secret, secret
	case "bearer-token":
		secret = random(r, 32, alnum) + "7x9"
		return "with a bearer " + secret, secret
	case "docker-auth":
		secret = base64.StdEncoding.EncodeToString([]byte("bob:" + random(r, 12, alnum)))
		return `{"auths": {"registry.example.org": {"auth": "` + secret + `"}}}`, secret
	case "netrc-password":
		secret = random(r, 10, alnum)
		return "machine git.example.org login bob password " + secret, secret
	}
	secret = random(r, 24, alnum) + "1a2B"
	return []string{"api_key = '", "secret: '", "auth_token='", "my_password => '"}[r.IntN(4)] + secret + "'", secret
}

// trueExamples and nearMisses are how many of each a rule is tried with; more
// than are asked for, as they cost nothing.
const trueExamples, nearMisses = 12, 20

func TestRulesFindTheirSecrets(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	specs := mask.RuleSpecs()
	if len(specs) < 100 {
		t.Errorf("%d built-in rules, want 100 or more", len(specs))
	}
	found := 0
	for i, s := range specs {
		r := newRand(uint64(i))
		for range trueExamples {
			in, secret := example(t, r, s)
			for _, frame := range []string{"%s", "x = \"%s\"\n", "see %s, please", "(%s)", "+\t%s\r\n",
				"line\n%s\nline", "<b>%s</b>", "a=1&b=%s&c=2", "\x1b[32m%s\x1b[0m"} {
				whole := strings.Replace(frame, "%s", in, 1)
				out, hits := text(t, e, whole)
				if hits[s.Name] == 0 && !betterName(s.Name, hits) || strings.Contains(out, secret) {
					t.Fatalf("%s: text %q became %q, hits %v", s.Name, whole, out, hits)
				}
				jout, jhits := doc(t, e, `{"a":[1,`+quoted(whole)+`]}`)
				if jhits[s.Name] != hits[s.Name] || strings.Contains(jout, secret) || !json.Valid([]byte(jout)) {
					t.Fatalf("%s: JSON of %q became %s, hits %v and %v", s.Name, whole, jout, hits, jhits)
				}
				found++
			}
		}
	}
	t.Logf("%d rules, %d examples each in 9 surroundings, text and JSON: %d found", len(specs), trueExamples, 2*found)
}

// betterName reports whether another rule than the general one took the match.
func betterName(name string, hits mask.Hits) bool {
	switch name {
	case "generic-assignment", "authorization-header", "bearer-token", "gitea-token", "gitea-runner-token",
		"azure-openai-key", "gitea-app-secret", "aws-session-token":
		return len(hits) > 0
	}
	return false
}

// TestRulesLeaveNearMisses breaks true examples in ways that make them
// something else.
func TestRulesLeaveNearMisses(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	tried := 0
	for i, s := range mask.RuleSpecs() {
		r := newRand(uint64(1000 + i))
		s.Patterns = s.Patterns[:min(len(s.Patterns), 1)] // the others may be inside each other
		for k := 0; k < nearMisses; k++ {
			in, secret := example(t, r, s)
			miss := breakSecret(r, s, in, secret, k)
			if miss == in {
				t.Fatalf("%s: the near miss %d is the example itself", s.Name, k)
			}
			if out, hits := text(t, e, miss); hits[s.Name] != 0 {
				t.Errorf("%s: near miss %d %q of %q became %q", s.Name, k, miss, in, out)
			}
			tried++
		}
	}
	t.Logf("%d near misses", tried)
}
