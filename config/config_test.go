package config_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"aegis/config"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// mustParse parses a configuration that must be right.
func mustParse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("aegis.yaml", []byte(text), testEnv("/etc/aegis"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values compares configurations without their places in files.
var values = cmp.Options{
	cmpopts.IgnoreUnexported(config.Config{}),
	cmp.Comparer(func(a, b *config.URL) bool { return a == b || a != nil && b != nil && a.String() == b.String() }),
	cmp.Comparer(func(a, b *config.Regexp) bool { return a == b || a != nil && b != nil && a.String() == b.String() }),
}

func TestParseEveryKind(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
listen: "[::1]:9000"
public_url: HTTPS://Aegis.Example.org:8443/sub/
gitea:
  url: http://gitea:3000/git/
  timeout: 1m30s
  ca_file: ca.pem
  catalog: /srv/catalog.json
  max_response_bytes: 1048576
auth:
  tokens:
    - {name: alice, token: "${AEGIS_TOKEN}", gitea_token: "${GITEA_TOKEN}", allow_sudo: true}
tools: {mode: search, read_only: TRUE, enable: &globs [gitea_issue_*, "gitea_pull_?et"], disable: *globs, list_ttl: 0s}
results:
  max_items: 7
  fields_default: {gitea.issue.list: [number, "labels[].name"]}
masking:
  rules:
    - {name: a, regex: 'k=([0-9]+)', replacement: "", keywords: ["${X}"], entropy: 3, allow: ["${Y}"]}
    - {name: b, regex: b, replacement: "${1}", entropy: 2.5}
server:
  allowed_hosts: [AEGIS.internal., "[::1]", "::0001", 10.0.0.1]
  allowed_origins: [HTTPS://Inspector.example:443, "vscode-file://vscode-app"]
`)
	want := config.Default()
	want.Listen = "[::1]:9000"
	want.DataDir = "/etc/aegis/data"
	want.PublicURL, want.Gitea.URL = parseURL(t, "https://aegis.example.org:8443/sub"), parseURL(t, "http://gitea:3000/git")
	want.Gitea.MaxResponseBytes = 1 << 20
	want.Gitea.Timeout = config.Duration(90 * time.Second)
	want.Gitea.CAFile, want.Gitea.Catalog = "/etc/aegis/ca.pem", "/srv/catalog.json"
	want.Tools.Mode, want.Tools.ReadOnly, want.Tools.ListTTL = "search", true, 0
	want.Tools.Enable = []string{"gitea_issue_*", "gitea_pull_?et"}
	want.Tools.Disable = want.Tools.Enable
	want.Results.MaxItems = 7
	want.Results.FieldsDefault = map[string][]string{"gitea.issue.list": {"number", "labels[].name"}}
	empty, dollar := "", "${1}"
	want.Masking.Rules = []config.MaskRule{
		{Name: "a", Regex: parseRegexp(t, "k=([0-9]+)"), Replacement: &empty, Keywords: []string{"${X}"}, Entropy: 3, Allow: []string{"${Y}"}},
		{Name: "b", Regex: parseRegexp(t, "b"), Replacement: &dollar, Entropy: 2.5},
	}
	want.Auth.Tokens = []config.Token{{
		Name: "alice", Token: config.NewSecret(secrets["AEGIS_TOKEN"]), GiteaToken: config.NewSecret(secrets["GITEA_TOKEN"]), AllowSudo: true,
	}}
	want.Server.AllowedHosts = []string{"aegis.internal", "::1", "::1", "10.0.0.1"}
	want.Server.AllowedOrigins = []string{"https://inspector.example:443", "vscode-file://vscode-app"}
	if diff := cmp.Diff(want, c, values, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("configuration differs (-want +got):\n%s", diff)
	}
}

func parseURL(t *testing.T, s string) *config.URL {
	t.Helper()
	u := new(config.URL)
	if err := u.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return u
}

func parseRegexp(t *testing.T, s string) *config.Regexp {
	t.Helper()
	r := new(config.Regexp)
	if err := r.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEmptySections: a section whose keys are all commented out is no error.
func TestEmptySections(t *testing.T) {
	t.Parallel()
	c := mustParse(t, minimal+"tools:\nresults: ~\nmasking:\n  rules:\n  extra_secrets: null\nlog: {}\n")
	want := mustParse(t, minimal)
	if diff := cmp.Diff(want, c, values); diff != "" {
		t.Errorf("empty sections changed something (-want +got):\n%s", diff)
	}
}

// TestEffectiveLoadsAgain: what is printed is the configuration, secrets apart.
func TestEffectiveLoadsAgain(t *testing.T) {
	t.Parallel()
	c := mustParse(t, minimal+"public_url: https://aegis.example.org\nmasking:\n  rules:\n    - {name: a, regex: '\\d+', replacement: ''}\n"+
		"results:\n  fields_default: {b: [x], a: [y]}\n")
	b, err := config.Effective(c)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), "<secret>", "${AEGIS_TOKEN}", 1)
	text = strings.Replace(text, "<secret>", "${GITEA_TOKEN}", 1)
	again := mustParse(t, text)
	if diff := cmp.Diff(c, again, values, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the effective configuration differs (-want +got):\n%s", diff)
	}
	b2, err := config.Effective(again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(b2)); diff != "" {
		t.Errorf("printing twice differs:\n%s", diff)
	}
}

func TestProblemPlaces(t *testing.T) {
	t.Parallel()
	c := mustParse(t, minimal+"tools:\n  enable:\n    - gitea_issue_*\n    - gitea_wiki_*\nresults: {fields_default: {gitea_x: [a, b]}}\n")
	for key, want := range map[string]string{
		"tools.enable[1]":                   "aegis.yaml:11:7: tools.enable[1]: bad; mend it",
		"tools.enable[7]":                   "aegis.yaml:9:3: tools.enable[7]: bad; mend it",
		"tools.max_risk":                    "aegis.yaml:8:1: tools.max_risk: bad; mend it",
		"auth.tokens[0].token":              "aegis.yaml:6:14: auth.tokens[0].token: bad; mend it",
		"results.fields_default.gitea_x[1]": "aegis.yaml:12:41: results.fields_default.gitea_x[1]: bad; mend it",
		"log.level":                         "aegis.yaml:1:1: log.level: bad; mend it",
		"":                                  "aegis.yaml:1:1: bad; mend it",
	} {
		if got := c.Problem(key, "bad", "mend it").String(); got != want {
			t.Errorf("problem is %q, want %q", got, want)
		}
	}
	if got, want := config.Default().Problem("log.level", "bad", "mend it").String(), "log.level: bad; mend it"; got != want {
		t.Errorf("without a file the problem is %q, want %q", got, want)
	}
	if !c.IsSet("tools") || !c.IsSet("tools.enable[1]") || c.IsSet("tools.mode") || config.Default().IsSet("tools") {
		t.Error("IsSet does not say what the file sets")
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	base := config.Default()
	base.Gitea.URL = parseURL(t, "http://127.0.0.1:3000")
	base.Auth.Tokens = []config.Token{{Name: "demo", Token: config.NewSecret(hush), GiteaToken: config.NewSecret(hush)}}
	base.Server.AllowedHosts = []string{"KEPT.example"}
	base.Log.Level = "debug"
	env := testEnv("")
	env.Base = base
	c, err := config.Parse("aegis.yaml", []byte("tools:\n  mode: search\n"), env)
	if err != nil {
		t.Fatal(err)
	}
	if c.Log.Level != "debug" || c.Tools.Mode != "search" || len(c.Auth.Tokens) != 1 || c.Gitea.URL == nil {
		t.Errorf("base and file are not joined: %+v", c)
	}
	if base.Tools.Mode != "full" || base.Server.AllowedHosts[0] != "KEPT.example" {
		t.Error("the base was changed")
	}
}

func TestValidateWithoutFile(t *testing.T) {
	t.Parallel()
	want := []string{
		"gitea.url: is required; set it, for example to https://git.example.org",
		`auth.tokens: lists no token, and Aegis serves nobody without one, not even on loopback; make one with "openssl rand -hex 32" and list it under auth.tokens with a name and a gitea_token, or set up auth.oauth`,
	}
	if diff := cmp.Diff(want, strings.Split(config.Default().Validate().Error(), "\n")); diff != "" {
		t.Errorf("problems of the default differ (-want +got):\n%s", diff)
	}
}

func TestLoad(t *testing.T) {
	t.Setenv("AEGIS_TOKEN", secrets["AEGIS_TOKEN"])
	dir := t.TempDir()
	file := filepath.Join(dir, "aegis.yaml")
	if _, err := config.Load(file); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), file) {
		t.Errorf("a missing file gives %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gitea.token"), []byte(hush+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "\uFEFF" + strings.Replace(strings.ReplaceAll(minimal, "\n", "\r\n"), "${GITEA_TOKEN}", "file:gitea.token", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Auth.Tokens[0].GiteaToken.Reveal() != hush {
		t.Error("file: does not start at the configuration's folder")
	}
	if ws := c.Warnings(); len(ws) != 0 {
		t.Errorf("a readable file without secrets in it warns: %v", ws)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "file:gitea.token", hush, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err = config.Load(file); err != nil {
		t.Fatal(err)
	}
	if ws := c.Warnings(); len(ws) != 1 || ws[0].Key != "auth.tokens[0].gitea_token" || strings.Contains(ws.Error(), hush) {
		t.Errorf("a readable file with a secret in it warns: %v", ws)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = config.Load(file); err != nil || len(c.Warnings()) != 0 {
		t.Errorf("a closed file with a secret in it: %v %v", err, c.Warnings())
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"none":        {minimal, ""},
		"short token": {strings.Replace(minimal, "${AEGIS_TOKEN}", "sixteen-letters-", 1), "auth.tokens[0].token"},
		"same token":  {strings.Replace(minimal, "${AEGIS_TOKEN}", "${GITEA_TOKEN}", 1), "auth.tokens[0].token"},
		"sudo":        {strings.TrimSpace(minimal) + "\n      allow_sudo: true\n", "auth.tokens[0].allow_sudo"},
		"open http":   {minimal + "listen: :8080\n", "listen"},
		"behind TLS":  {minimal + "listen: :8080\npublic_url: https://aegis.example.org\n", ""},
		"far http":    {strings.Replace(minimal, "https:", "http:", 1), "gitea.url"},
		"near http":   {strings.Replace(minimal, "https://git.example.org", "http://gitea:3000", 1), ""},
		"private":     {strings.Replace(minimal, "https://git.example.org", "http://10.1.2.3:3000", 1), ""},
		"useless CA":  {strings.Replace(minimal, "https://git.example.org", "http://gitea:3000\n  ca_file: ca.pem", 1), "gitea.ca_file"},
		"mask off":    {minimal + "masking: {mode: off}\n", "masking.mode"},
		"rules off":   {minimal + "masking: {builtin: false, disable_rules: [jwt]}\n", "masking.disable_rules"},
		"big files":   {minimal + "results: {max_binary_bytes: 7MiB}\n", "results.max_binary_bytes"},
		"big answers": {minimal + "results: {max_binary_bytes: 33MiB}\nserver: {max_body_bytes: 100MiB}\n", "results.max_binary_bytes"},
		"pages":       {minimal + "tools: {page_size: 50}\n", "tools.page_size"},
	} {
		t.Run(name, func(t *testing.T) {
			var keys []string
			for _, w := range mustParse(t, tc.text).Warnings() {
				keys = append(keys, w.Key)
				if w.Line == 0 || w.Do == "" {
					t.Errorf("warning without place or advice: %v", w)
				}
			}
			if got := strings.Join(keys, " "); got != tc.want {
				t.Errorf("warnings are for %q, want %q", got, tc.want)
			}
		})
	}
}

// TestRanges sets every number with a range to its ends and past them.
func TestRanges(t *testing.T) {
	t.Parallel()
	tested := 0
	eachField(reflect.ValueOf(ranged(t)).Elem(), func(v reflect.Value, f reflect.StructField) {
		span := f.Tag.Get("range")
		if span == "" {
			return
		}
		tested++
		least, greatest, ok := strings.Cut(span, " ")
		lo, hi := parseNumber(t, v.Type(), least), parseNumber(t, v.Type(), greatest)
		if !ok || !(lo < hi) {
			t.Fatalf("%s: range %q is not least and greatest", f.Name, span)
		}
		old := reflect.ValueOf(v.Interface())
		for _, tc := range []struct {
			n  float64
			ok bool
		}{{lo, true}, {hi, true}, {(lo + hi) / 2, true}, {math.Nextafter(min(lo, lo-1), math.Inf(-1)), false}, {math.Nextafter(max(hi, hi+1), math.Inf(1)), false}} {
			c := ranged(t)
			eachField(reflect.ValueOf(c).Elem(), func(v reflect.Value, g reflect.StructField) {
				if g.Name == f.Name && g.Type == f.Type && g.Tag == f.Tag {
					setNumber(v, tc.n)
				}
			})
			if got := c.Validate() == nil; got != tc.ok {
				t.Errorf("%s = %v: valid is %v, want %v", f.Name, tc.n, got, tc.ok)
			}
		}
		v.Set(old)
	})
	if tested < 12 {
		t.Errorf("only %d fields have a range", tested)
	}
}

func ranged(t *testing.T) *config.Config {
	return mustParse(t, minimal+"masking:\n  rules:\n    - {name: a, regex: a}\n")
}

// eachField visits the keys of a struct, those in sections and list items too.
func eachField(v reflect.Value, visit func(v reflect.Value, f reflect.StructField)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("yaml") == "" {
			continue
		}
		visit(v.Field(i), f)
		switch {
		case f.Type == reflect.TypeFor[config.Secret]():
		case f.Type.Kind() == reflect.Struct:
			eachField(v.Field(i), visit)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct && f.Type.Elem() != reflect.TypeFor[config.Secret]():
			for j := range v.Field(i).Len() {
				eachField(v.Field(i).Index(j), visit)
			}
		}
	}
}

func parseNumber(t *testing.T, typ reflect.Type, s string) float64 {
	t.Helper()
	switch typ {
	case reflect.TypeFor[config.Duration]():
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return float64(d)
	case reflect.TypeFor[config.ByteSize]():
		var b config.ByteSize
		if err := b.UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
		return float64(b)
	}
	var n float64
	for _, r := range s {
		if r < '0' || r > '9' {
			t.Fatalf("range end %q is no number", s)
		}
		n = n*10 + float64(r-'0')
	}
	return n
}

func setNumber(v reflect.Value, n float64) {
	if v.CanInt() {
		v.SetInt(int64(n))
		return
	}
	v.SetFloat(n)
}

func TestTeamsTakeWhatTheyDoNotSet(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `teams:
  web:
    members: {logins: [alice]}
    tools: {read_only: true}
    limits: {write: {rate: 5/m}}
    policy: {repos: {allow: ["acme/web-*"]}}
`+minimal+`tools: {toolsets: [reader], max_risk: R2}
members: {everyone: true}
masking: {mode: block}
limits: {read: {rate: 7/s}}
policy: {repos: {deny: ["acme/x"]}, bind: {owner: acme}}
`)
	web := c.Teams["web"]
	switch {
	case !web.Tools.ReadOnly || web.Tools.MaxRisk != "R2" || len(web.Tools.Toolsets) != 1 || !web.Tools.Raw:
		t.Errorf("tools: %+v", web.Tools)
	case web.Masking.Mode != "block" || web.Limits.Read.Rate.Count != 7 || web.Limits.Write.Rate.Count != 5:
		t.Errorf("masking %+v, limits %+v", web.Masking, web.Limits)
	case web.Policy.Bind.Owner != "acme" || len(web.Policy.Repos.Deny) != 1 || len(web.Policy.Repos.Allow) != 1:
		t.Errorf("policy: %+v", web.Policy)
	case web.Members.Everyone || len(web.Members.Logins) != 1:
		t.Errorf("members must not be inherited: %+v", web.Members)
	case c.Tools.ReadOnly || len(c.Policy.Repos.Allow) != 0:
		t.Error("a team changed the top of the file")
	}
}

// TestProblemsOfTheTopAreSaidOnce, not again for each team that inherits them.
func TestProblemsOfTheTopAreSaidOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("a.yaml", []byte(minimal+"tools: {mode: ful}\nmembers: {everyone: true}\nteams: {a: {members: {everyone: true}}, b: {members: {everyone: true}}}\n"), testEnv("."))
	if err == nil || strings.Count(err.Error(), `"ful"`) != 1 || strings.Contains(err.Error(), "teams.") {
		t.Errorf("%v", err)
	}
}
