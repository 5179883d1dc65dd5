package mask_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/mask"
)

// offPatterns leaves the exact layer alone.
func offPatterns(c *config.Masking) { c.Mode = "off" }

var awkward = []string{
	"plain-secret-value", "hunter2", "pass word", `quo"te\back/slash`, "<html>&amp;", "tab\tnew\nline", "übergeheim-日本",
	"100%25sure", "a+b=c/d==",
	"0123456789abcdef0123456789abcdef01234567", "k8s/Secret.Value~1", "\U0001F511key",
}

// TestExactEncodings hides every secret in every encoding and every place.
func TestExactEncodings(t *testing.T) {
	t.Parallel()
	for _, secret := range awkward {
		e := newEngine(t, offPatterns, secret)
		forms := map[string]string{
			"raw": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "lower percent": strings.ToLower(url.QueryEscape(secret)),
			"all percent": percentAll(secret), "basic auth": base64.StdEncoding.EncodeToString([]byte("bob:" + secret)),
		}
		if strings.ToLower(secret) != secret {
			delete(forms, "lower percent")
		}
		for before := range 3 {
			for after := range 3 {
				whole := strings.Repeat("x", before) + secret + strings.Repeat("y", after)
				forms[fmt.Sprintf("base64 %d %d", before, after)] = base64.StdEncoding.EncodeToString([]byte(whole))
				forms[fmt.Sprintf("base64url %d %d", before, after)] = base64.RawURLEncoding.EncodeToString([]byte(whole))
			}
		}
		for name, form := range forms {
			for _, frame := range []string{"%s", "a %s b", "%s%s", "x=%s&y", "日本%s\n", strings.Repeat("z", 37) + "%s"} {
				in := strings.ReplaceAll(frame, "%s", form)
				out, hits := text(t, e, in)
				if hits[mask.ExactRule] == 0 || strings.Contains(out, form) || !strings.Contains(out, "[REDACTED]") {
					t.Errorf("%q as %s: text %q became %q", secret, name, in, out)
				}
				if i := strings.Index(frame, "%s"); !strings.HasPrefix(out, frame[:i]) {
					t.Errorf("%q as %s: %q lost its beginning: %q", secret, name, in, out)
				}
				checkExactJSON(t, e, in, form)
			}
		}
	}
}

func checkExactJSON(t *testing.T, e *mask.Engine, in, form string) {
	t.Helper()
	r := newRand(3)
	for _, q := range []string{quoted(in), escaping(r, in, 0), escaping(r, in, 1), escaping(r, in, 4)} {
		for _, d := range []string{`{"v":` + q + `}`, `[` + q + `]`, q, `{` + q + `:1}`} {
			out, hits := doc(t, e, d)
			if hits[mask.ExactRule] == 0 || !json.Valid([]byte(out)) || strings.Contains(decodeAll(t, out), form) {
				t.Fatalf("%q in JSON %s became %s", form, d, out)
			}
		}
	}
}

func percentAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// TestExactLeavesOthers holds the exact layer against what only looks like a
// secret.
func TestExactLeavesOthers(t *testing.T) {
	t.Parallel()
	e := newEngine(t, offPatterns, "12345", "true", "0041", "nabc", "abcd", "hunter2hunter2hunter2")
	for _, in := range []string{
		`{"n":12345,"m":[112345,1.12345e12345],"b":true}`,
		`"\u00411"`, `"x\nabc"`, `"hunter2hunter2hunter3"`, `"\u12345"`,
		`"` + base64.StdEncoding.EncodeToString([]byte("hunter2hunter2hunter3")) + `"`,
	} {
		if out, hits := doc(t, e, in); out != in || hits != nil {
			t.Errorf("%s became %s, hits %v", in, out, hits)
		}
	}
	for in, want := range map[string]string{
		`{"n":"12345"}`:      `{"n":"[REDACTED]"}`,
		`{"true":"x"}`:       `{"[REDACTED]":"x"}`,
		`"\\nabc"`:           `"\\[REDACTED]"`,
		`"\u0061bcd"`:        `"[REDACTED]"`,
		`"1abcdabcd2"`:       `"1[REDACTED]2"`,
		`"\u00e9abcd\u00e9"`: `"\u00e9[REDACTED]\u00e9"`,
	} {
		if out, _ := doc(t, e, in); out != want {
			t.Errorf("%s became %s, want %s", in, out, want)
		}
	}
}

func TestExactIgnoresShortSecrets(t *testing.T) {
	t.Parallel()
	e := newEngine(t, offPatterns, "abc", "", "a")
	if out, hits := text(t, e, "abc a b c"); hits != nil || out != "abc a b c" {
		t.Errorf("got %q, %v", out, hits)
	}
}

// TestExactManySecrets looks for thousands at once.
func TestExactManySecrets(t *testing.T) {
	t.Parallel()
	r := newRand(11)
	var secrets []string
	for range 3000 {
		secrets = append(secrets, random(r, 4+r.IntN(60), alnum+"/+ &"))
	}
	e := newEngine(t, offPatterns, secrets...)
	for _, s := range secrets {
		in := "before " + s + " after " + url.QueryEscape(s) + " " + base64.StdEncoding.EncodeToString([]byte(s))
		out, _ := text(t, e, in)
		if strings.Contains(out, s) || strings.Count(out, "[REDACTED]") < 3 {
			t.Fatalf("%q became %q", in, out)
		}
	}
}

func TestCallSecrets(t *testing.T) {
	t.Parallel()
	e := newEngine(t, offPatterns, "configured-secret")
	r := e.Call("the-callers-token", "configured-secret", "abc")
	out, hits, err := e.Text(context.Background(), nil, []byte("the-callers-token configured-secret abc"), r,
		mask.Options{})
	if want := "[REDACTED] [REDACTED] abc"; err != nil || string(out) != want || hits[mask.ExactRule] != 2 {
		t.Errorf("got %q, %v, %v; want %q", out, hits, err, want)
	}
	if out, _ := text(t, e, "the-callers-token"); out != "the-callers-token" {
		t.Errorf("a call's secret outlived the call: %q", out)
	}
}

// TestExactBase64Edges checks that neighbours which change the digits around a
// secret do not hide it, and that other bytes do not pass for it.
func TestExactBase64Edges(t *testing.T) {
	t.Parallel()
	e := newEngine(t, offPatterns, "s3cr3t-value")
	r := newRand(8)
	for range 3000 {
		before, after := random(r, r.IntN(9), alnum), random(r, r.IntN(9), alnum)
		in := base64.StdEncoding.EncodeToString([]byte(before + "s3cr3t-value" + after))
		if out, _ := text(t, e, in); !strings.Contains(out, "[REDACTED]") {
			t.Fatalf("%q in base64 %q became %q", before+"s3cr3t-value"+after, in, out)
		}
		other := base64.StdEncoding.EncodeToString([]byte(before + "s3cr3t-valuf" + after))
		if out, hits := text(t, e, other); hits != nil {
			t.Fatalf("%q became %q", other, out)
		}
	}
}
