package config_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aegis/config"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"gopkg.in/yaml.v3"
)

const hush = "Wq8Lr5Tz1NcVb6Xk3Jm9Pd7Gf2Hs4Ye0"

// keeper has a secret where fmt cannot call its methods.
type keeper struct {
	secret config.Secret
	token  config.Token
	all    *config.Config
}

func hushed() *config.Config {
	c := config.Default()
	c.Auth.Tokens = []config.Token{{Name: "alice", Token: config.NewSecret(hush), GiteaToken: config.NewSecret(hush)}}
	c.Masking.ExtraSecrets = []config.Secret{config.NewSecret(hush)}
	c.Server.CursorKey = config.NewSecret(hush)
	return c
}

// TestSecretNeverPrints sends secrets, and what holds them, through everything
// that turns values into text.
func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	s, c := config.NewSecret(hush), hushed()
	values := map[string]any{
		"Secret": s, "*Secret": &s, "Config": *c, "*Config": c, "Token": c.Auth.Tokens[0], "*Token": &c.Auth.Tokens[0],
		"Auth": c.Auth, "Masking": c.Masking, "Server": c.Server, "slice": []config.Secret{s}, "map": map[string]config.Secret{"k": s},
		"any": []any{s, &s}, "keeper": keeper{s, c.Auth.Tokens[0], c}, "*keeper": &keeper{s, c.Auth.Tokens[0], c},
	}
	for name, v := range values {
		for way, text := range renderings(t, v) {
			if leaks(text) {
				t.Errorf("%s of %s shows the secret: %s", way, name, text)
			}
		}
	}
}

// leaks looks for the value, its hex and its bytes as numbers.
func leaks(text string) bool {
	numbers := strings.Trim(fmt.Sprint([]byte(hush[:8])), "[]")
	return strings.Contains(text, hush) || strings.Contains(text, hush[:8]) || strings.Contains(text, numbers) ||
		strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", hush[:8]))
}

func renderings(t *testing.T, v any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%+q", "%x", "% X", "%d", "%t", "%c", "%U", "%e", "%T", "%p", "%w", "%10.3s"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	out["Sprint"] = fmt.Sprint(v)
	out["Errorf"] = fmt.Errorf("it is %v", v).Error()
	if b, err := json.Marshal(v); err == nil {
		out["json"] = string(b)
	}
	if b, err := yaml.Marshal(v); err == nil {
		out["yaml"] = string(b)
	}
	if b, err := xml.Marshal(v); err == nil {
		out["xml"] = string(b)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	z := zerolog.New(&log)
	z.Info().Interface("v", v).Any("w", v).Fields(map[string]any{"f": v}).Msg("x")
	console := zerolog.New(zerolog.ConsoleWriter{Out: &log, NoColor: true})
	console.Info().Interface("v", v).Msgf("%v", v)
	out["logs"] = log.String()
	out["cmp"] = cmp.Diff(v, "", cmp.AllowUnexported(keeper{}), cmp.Exporter(nil))
	return out
}

// TestSecretMethods calls what printers other than fmt call.
func TestSecretMethods(t *testing.T) {
	t.Parallel()
	s := config.NewSecret(hush)
	text, err := s.MarshalText()
	for _, got := range []string{s.String(), s.GoString(), s.LogValue().String(), string(text)} {
		if got != "<secret>" || err != nil {
			t.Errorf("the secret prints as %q, %v", got, err)
		}
	}
}

func TestEffectiveHidesSecrets(t *testing.T) {
	t.Parallel()
	b, err := config.Effective(hushed())
	if err != nil {
		t.Fatal(err)
	}
	if leaks(string(b)) {
		t.Errorf("the effective configuration shows a secret:\n%s", b)
	}
	if n := strings.Count(string(b), "<secret>"); n != 4 {
		t.Errorf("%d secrets are marked as set, want 4:\n%s", n, b)
	}
}

func TestSecretEqual(t *testing.T) {
	t.Parallel()
	a, b, c := config.NewSecret("one"), config.NewSecret("one"), config.NewSecret("other")
	if !a.Equal(b) || a.Equal(c) || a.Equal(config.Secret{}) || !(config.Secret{}).Equal(config.NewSecret("")) {
		t.Error("Equal does not compare values")
	}
	if !(config.Secret{}).IsZero() || a.IsZero() || a.Reveal() != "one" || (config.Secret{}).Reveal() != "" {
		t.Error("IsZero or Reveal is wrong")
	}
}

// TestSecretSources reads a secret from each of its three places.
func TestSecretSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("closed", hush+"\n", 0o600)
	write("crlf", hush+"\r\n", 0o600)
	write("two", hush+"\n\n", 0o600)
	write("open", hush, 0o644)
	for _, tc := range []struct {
		name, text, want string
		warnings         int
	}{
		{"literal", "literal-0123456789-literal-0123456789", "literal-0123456789-literal-0123456789", 0},
		{"quoted dollar", `"pa$$word-0123456789-0123456789-0123"`, "pa$$word-0123456789-0123456789-0123", 0},
		{"variable", "${AEGIS_TOKEN}", secrets["AEGIS_TOKEN"], 0},
		{"absolute file", "file:" + filepath.Join(dir, "closed"), hush, 0},
		{"relative file", "file:closed", hush, 0},
		{"crlf", "file:crlf", hush, 0},
		{"one newline of two", "file:two", hush + "\n", 0},
		{"open file", "file:open", hush, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := config.Parse("aegis.yaml", []byte(minimal+"masking:\n  extra_secrets:\n    - "+tc.text+"\n"), testEnv(dir))
			if err != nil {
				t.Fatal(err)
			}
			if !c.Masking.ExtraSecrets[0].Equal(config.NewSecret(tc.want)) {
				t.Error("the secret has another value")
			}
			if got := c.Warnings(); len(got) != tc.warnings {
				t.Errorf("warnings are %v, want %d", got, tc.warnings)
			}
		})
	}
}

// TestSecretFileIsRegular: a named pipe or a device must not stop the start.
func TestSecretFileIsRegular(t *testing.T) {
	t.Parallel()
	for _, path := range []string{os.DevNull, t.TempDir()} {
		ps := mustFail(t, []byte(minimal+"server:\n  cursor_key: file:"+path+"\n"), testEnv(""))
		if len(ps) != 1 || !strings.Contains(ps[0].What, "not a regular file") {
			t.Errorf("%s: problems are %v", path, ps)
		}
	}
}

// TestZeroEnv: without an environment there are no variables and no files.
func TestZeroEnv(t *testing.T) {
	t.Parallel()
	text := strings.Replace(minimal, "${GITEA_TOKEN}", "file:/etc/hostname", 1)
	ps := mustFail(t, []byte(text), config.Env{})
	if len(ps) != 2 {
		t.Errorf("problems are %v, want one for each secret", ps)
	}
}
