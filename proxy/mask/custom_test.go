package mask_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy/mask"
)

func rule(name, expr string) config.MaskRule {
	return config.MaskRule{Name: name, Regex: &config.Regexp{Regexp: regexp.MustCompile(expr)}}
}

func ptr[T any](v T) *T { return &v }

func withRules(rules ...config.MaskRule) func(*config.Masking) {
	return func(c *config.Masking) { c.Builtin, c.Rules = false, rules }
}

func TestCustomRules(t *testing.T) {
	t.Parallel()
	change := func(r config.MaskRule, f func(*config.MaskRule)) config.MaskRule { f(&r); return r }
	for _, c := range []struct {
		name     string
		rule     config.MaskRule
		in, want string
	}{
		{"whole match", rule("acme-key", `ACME-[0-9]{4}`), "x ACME-1234 y ACME-99999",
			"x [MASKED:acme-key] y [MASKED:acme-key]9"},
		{"group one only", change(rule("ver", `("version":\s*")([^"]+)(")`), func(r *config.MaskRule) { r.Replacement = ptr("V") }), `{"version": "1.2"}`, `{V1.2"}`},
		{"a group in the middle", rule("ver", `"version":\s*"([^"]+)"`), `{"version": "1.2"}`,
			`{"version": "[MASKED:ver]"}`},
		{"group without part", rule("opt", `id=[0-9]+(x)?`), "id=12 id=34x", "[MASKED:opt] id=34[MASKED:opt]"},
		{"empty replacement", change(rule("del", `-secret-[a-z]+`), func(r *config.MaskRule) { r.Replacement = ptr("") }), "a-secret-word b", "a b"},
		{"literal dollar", change(rule("dol", `(k[0-9]+)`), func(r *config.MaskRule) { r.Replacement = ptr(`$1"\`) }), "k12", `$1"\`},
		{"keyword before", change(rule("num", `[0-9]{6}`), func(r *config.MaskRule) { r.Keywords = []string{"PIN code"} }), "pin code: 123456 and far away" + strings.Repeat(".", 70) + "654321", "pin code: [MASKED:num] and far away" + strings.Repeat(".", 70) + "654321"},
		{"keyword inside", change(rule("kw", `[a-z]+-[0-9]+`), func(r *config.MaskRule) { r.Keywords = []string{"Acme"} }), "acme-12 other-12", "[MASKED:kw] [MASKED:kw]"},
		{"luhn", change(rule("card", `\b[0-9]{16}\b`), func(r *config.MaskRule) { r.Validator = "luhn" }), "4111111111111111 4111111111111112", "[MASKED:card] 4111111111111112"},
		{"iban", change(rule("iban", `\b[A-Z]{2}[0-9]{20}\b`), func(r *config.MaskRule) { r.Validator = "iso7064" }), "DE89370400440532013000 DE89370400440532013001", "[MASKED:iban] DE89370400440532013001"},
		{"entropy", change(rule("ent", `[a-z0-9]{16}`), func(r *config.MaskRule) { r.Entropy = 3 }), "aaaaaaaaaaaaaaaa a8f0k2m4q6s8u1w3", "aaaaaaaaaaaaaaaa [MASKED:ent]"},
		{"allow", change(rule("al", `ACME-[0-9]{4}`), func(r *config.MaskRule) { r.Allow = []string{"ACME-0000"} }), "ACME-0000 ACME-0001", "ACME-0000 [MASKED:al]"},
		{"no literal", rule("nolit", `\b\d{3}-\d{2}-\d{4}\b`), "ssn 123-45-6789", "ssn [MASKED:nolit]"},
		{"any case", rule("ci", `(?i)internal[-_ ]key\s*[:=]\s*"?([A-Z0-9]{12,})`), "INTERNAL-KEY = ABCDEFGHIJKL12",
			"INTERNAL-KEY = [MASKED:ci]"},
		{"folded kelvin", rule("kel", `(?i)task-key-[0-9]+`), "tas\u212a-key-77", "[MASKED:kel]"},
		{"anchors", rule("anc", `^secret:.*$`), "secret: x y", "[MASKED:anc]"},
		{"lines", rule("ml", `(?m)^pw=(.*)$`), "a\npw=x\npw=y", "a\npw=[MASKED:ml]\npw=[MASKED:ml]"},
		{"alternatives", rule("alt", `(?:alpha|bravo|charlie)-[0-9]+`), "bravo-1 charlie-2 delta-3",
			"[MASKED:alt] [MASKED:alt] delta-3"},
		{"across lines", rule("ac", `(?s)<<begin.*?end>>`), "x <<begin\nfoo\nend>> y", "x [MASKED:ac] y"},
		{"unicode", rule("uni", `пароль=\S+`), "мой пароль=тайна!", "мой [MASKED:uni]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t, withRules(c.rule))
			if got, _ := text(t, e, c.in); got != c.want {
				t.Errorf("text: got  %q\nwant %q", got, c.want)
			}
			r := newRand(4)
			for _, q := range []string{quoted(c.in), escaping(r, c.in, 0), escaping(r, c.in, 2)} {
				got, _ := doc(t, e, `{"k":`+q+`,"n":4111111111111111,"`+strings.Trim(quoted(c.in), `"`)+`":0}`)
				if s := inside.FindAllString(got, -1); mask.Unescape(strings.Trim(s[1], `"`)) != c.want && !strings.HasSuffix(c.want, `\`) && !strings.HasPrefix(c.want, `"`) && !strings.HasSuffix(c.want, `"`) {
					t.Errorf("JSON %s: got  %s\nwant %q", q, got, c.want)
				}
				if !strings.Contains(got, "4111111111111111") {
					t.Errorf("a number was masked: %s", got)
				}
			}
		})
	}
}

func TestCustomActions(t *testing.T) {
	t.Parallel()
	blocking, reporting, masking := rule("b", `BLOCK-[0-9]+`), rule("r", `REPORT-[0-9]+`), rule("m", `MASKIT-[0-9]+`)
	blocking.Action, reporting.Action, masking.Action = "block", "report", "mask"
	for _, mode := range []string{"off", "mask", "report", "block"} {
		e := newEngine(t, func(c *config.Masking) {
			withRules(blocking, reporting, masking)(c)
			c.Mode = mode
		})
		out, hits := text(t, e, "REPORT-1 MASKIT-2 REPORT-3")
		if out != "REPORT-1 [MASKED:m] REPORT-3" || !cmp.Equal(hits, mask.Hits{"r": 2, "m": 1}) {
			t.Errorf("%s: %q, %v", mode, out, hits)
		}
		_, _, err := e.Text(context.Background(), nil, []byte("BLOCK-1"), nil, mask.Options{})
		var blocked *mask.BlockedError
		if !errors.As(err, &blocked) || blocked.Rule != "b" || strings.Contains(err.Error(), "BLOCK-1") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestCustomWinsOverBuiltin: a custom rule and a built-in one on the same place.
func TestCustomWinsOverBuiltin(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *config.Masking) {
		r := rule("mine", `ghp_[A-Za-z0-9]+`)
		r.Replacement = ptr("<gone>")
		c.Rules = []config.MaskRule{r}
	})
	out, hits := text(t, e, "token="+github(1)+" x")
	if out != "token=<gone> x" || !cmp.Equal(hits, mask.Hits{"mine": 1}) {
		t.Errorf("%q, %v", out, hits)
	}
}

func TestRuleErrors(t *testing.T) {
	t.Parallel()
	many := make([]string, 10_000)
	for i := range many {
		many[i] = random(newRand(uint64(i)), 12, alnum)
	}
	for _, c := range []struct {
		name   string
		change func(*config.Masking)
		want   []string
	}{
		{"empty match", withRules(rule("e", `a*`)), []string{"masking.rules[0].regex"}},
		{"boundary only", withRules(rule("e", `\b`)), []string{"masking.rules[0].regex"}},
		{"huge", withRules(rule("e", strings.Join(many, "|"))), []string{"masking.rules[0].regex"}},
		{"no regex", withRules(config.MaskRule{Name: "e"}), []string{"masking.rules[0].regex"}},
		{"bad name", withRules(rule("Bad Name", `abcd`)), []string{"masking.rules[0].name"}},
		{"same name", withRules(rule("a", `abcd`), rule("a", `abcd`)), []string{"masking.rules[1].name"}},
		{"built-in name", withRules(rule("jwt", `abcd`)), []string{"masking.rules[0].name"}},
		{"replacement and block", withRules(func() config.MaskRule {
			r := rule("a", `abcd`)
			r.Action, r.Replacement = "block", ptr("x")
			return r
		}()), []string{"masking.rules[0].replacement"}},
		{"replacement under report", func(c *config.Masking) {
			r := rule("a", `abcd`)
			r.Replacement = ptr("x")
			c.Mode, c.Rules = "report", []config.MaskRule{r}
		}, []string{"masking.rules[0].replacement"}},
		{"validator, entropy and keyword", withRules(func() config.MaskRule {
			r := rule("a", `abcd`)
			r.Validator, r.Entropy, r.Action, r.Keywords = "sha1", 9, "drop", []string{" "}
			return r
		}()), []string{"masking.rules[0].action", "masking.rules[0].entropy", "masking.rules[0].validator",
			"masking.rules[0].keywords"}},
		{"disabled rule", func(c *config.Masking) { c.DisableRules = []string{"jwt", "github"} }, []string{"masking.disable_rules[1]"}},
		{"mode", func(c *config.Masking) { c.Mode = "on" }, []string{"masking.mode"}},
		{"input", func(c *config.Masking) { c.Input = "report" }, []string{"masking.input"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := mask.Default()
			c.change(&cfg)
			_, err := mask.New(cfg, nil)
			if err == nil {
				t.Fatal("accepted")
			}
			var got []string
			for _, e := range mask.RuleErrors(err) {
				got = append(got, e.Key)
				if e.What == "" || e.Do == "" {
					t.Errorf("%s says %q and %q", e.Key, e.What, e.Do)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestDisabledRules(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *config.Masking) { c.DisableRules = []string{"github-token", "generic-assignment"} })
	if out, hits := text(t, e, "x "+github(1)); hits != nil || out != "x "+github(1) {
		t.Errorf("%q, %v", out, hits)
	}
	if e := newEngine(t, func(c *config.Masking) { c.Builtin = false }); len(e.Rules()) != 1 {
		t.Errorf("without built-in rules there are %v", e.Rules())
	}
}

// TestHostileExpressions gives expressions that backtrack or search again and
// again the texts that hurt them most. They must be linear, or stop when the
// call's time is up.
func TestHostileExpressions(t *testing.T) {
	t.Parallel()
	a := strings.Repeat("a", 1<<20)
	for expr, in := range map[string]string{`(a+)+$`: a + "b", `(a|aa)+b`: a, `(x+x+)+y`: strings.Repeat("x", 1<<20),
		`[a-z]+@corp`: a} {
		e := newEngine(t, withRules(rule("h", expr)))
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		if _, _, err := e.Text(ctx, nil, []byte(in), nil, mask.Options{}); err != nil {
			t.Errorf("%s: %v", expr, err)
		}
		cancel()
	}
	// Quadratic in the standard library: golang/go#11181.
	e := newEngine(t, withRules(rule("q", `b[ab]*c|a`)))
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := e.Text(ctx, nil, []byte(strings.Repeat("ab", 1<<19)), nil, mask.Options{}); !errors.Is(err, context.DeadlineExceeded) && err != nil {
		t.Errorf("got %v", err)
	}
}

// TestWindows holds matches of an unbounded expression in a long text against
// those in short ones, around the borders of the windows.
func TestWindows(t *testing.T) {
	t.Parallel()
	e := newEngine(t, withRules(rule("w", `\bkey=[a-z]+\b`)))
	for at := 4000; at < 4200; at++ {
		in := strings.Repeat(".", at) + "key=abcdefgh key=xyz" + strings.Repeat("-", 20000)
		want := strings.Repeat(".", at) + "[MASKED:w] [MASKED:w]" + strings.Repeat("-", 20000)
		if got, hits := text(t, e, in); got != want || hits["w"] != 2 {
			t.Fatalf("at %d: hits %v", at, hits)
		}
	}
	for at := 8000; at < 8200; at += 3 {
		in := strings.Repeat("x", at) + "key=abc " + strings.Repeat("y", 9000)
		if got, hits := text(t, e, in); got != in || hits != nil {
			t.Fatalf("at %d: a match inside a word, hits %v", at, hits)
		}
	}
}
