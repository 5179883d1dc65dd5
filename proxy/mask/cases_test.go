package mask_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"aegis/config"
	"aegis/proxy/mask"
)

func github(seed uint64) string { return "gh" + "p_" + random(newRand(seed), 36, alnum) }

func keyParts(kind string) (header, body, footer string) {
	r := newRand(77)
	var b strings.Builder
	for range 6 {
		b.WriteString(random(r, 64, alnum+"+/") + "\n")
	}
	return "-----BEGIN " + kind + "PRIVATE KEY-----\n", b.String() + random(r, 22, alnum) + "==\n",
		"-----END " + kind + "PRIVATE KEY-----\n"
}

// TestPrivateKeys covers the ways in which keys are quoted, indented and cut.
func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	head, body, foot := keyParts("RSA ")
	indent := func(s, by string) string { return strings.ReplaceAll("\n"+strings.TrimSpace(s), "\n", "\n"+by) }
	lines := strings.Fields(body)
	for name, in := range map[string]string{
		"plain":         head + body + foot,
		"windows":       strings.ReplaceAll(head+body+foot, "\n", "\r\n"),
		"escaped":       `key = "` + strings.ReplaceAll(head+body+foot, "\n", `\n`) + `"`,
		"in yaml":       "key: |" + indent(head+body+foot, "    ") + "\nnext: value\n",
		"cut":           head + strings.Join(lines[:4], "\n"),
		"cut in a line": head + strings.Join(lines[:2], "\n") + "\n" + lines[2][:40],
		"in a diff":     indent(head+body+foot, "+"),
		"quoted":        indent(head+body+foot, "> "),
		"concatenated":  `"` + strings.ReplaceAll(strings.TrimSpace(head+body+foot), "\n", "\\n\" +\n  \"") + `"`,
		"encrypted":     head + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n" + body + foot,
		"one line":      strings.ReplaceAll(head+body+foot, "\n", " "),
		"json in text":  `{"private_key":"` + strings.ReplaceAll(head+body+foot, "\n", `\n`) + `","client_email":"x@y"}`,
		"pgp":           "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n" + body + "=abCd\n-----END PGP PRIVATE KEY BLOCK-----\n",
		"openssh":       strings.ReplaceAll(head+body+foot, "RSA", "OPENSSH"),
	} {
		out, hits := text(t, e, in)
		jout, _ := doc(t, e, quoted(in))
		for _, l := range lines[:2] {
			if strings.Contains(out, l) || strings.Contains(jout, l) {
				t.Errorf("%s: a line of the key is left in %q", name, out)
			}
		}
		if hits["private-key"] != 1 || !strings.Contains(out, "PRIVATE KEY") {
			t.Errorf("%s: hits %v, output %q", name, hits, out)
		}
		if strings.Contains(in, "-----END") && !strings.Contains(out, "-----END") {
			t.Errorf("%s: the END line is gone: %q", name, out)
		}
	}
	in := "key: |\n" + indent(head+body+foot, "    ") + "\nnext: value\n"
	if out, _ := text(t, e, in); !strings.HasSuffix(out, "\nnext: value\n") {
		t.Errorf("what follows the key was masked: %q", out)
	}
}

func TestFormsKeepTheKindVisible(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	gh := github(1)
	aws := "AK" + "IA" + random(newRand(2), 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	secret := random(newRand(3), 38, alnum+"+/") + "a1"
	for in, want := range map[string]string{
		gh:                      "ghp_***",
		"a " + gh + "\n" + gh:   "a ghp_***\nghp_***",
		gh + github(4):          "ghp_***ghp_***",
		aws:                     "AKIA***",
		"x-" + gh + "-y":        "x-ghp_***-y",
		"\x1b[31m" + gh + "m":   "\x1b[31mghp_***",
		"token%3D" + gh:         "token%3Dghp_***",
		`{\"t\":\"` + gh + `\"`: `{\"t\":\"ghp_***\"`,
		`{"t":"x\n` + gh + `"`:  `{"t":"x\nghp_***"`,
		"aws_access_key_id=" + aws + "\naws_secret_access_key=" + secret:                     "aws_access_key_id=AKIA***\naws_secret_access_key=***",
		"curl -H 'Authorization: Bearer " + random(newRand(5), 30, alnum) + "9z1' https://x": "curl -H 'Authorization: Bearer ***' https://x",
		"https://bob:" + "Tr0ub4dor" + "@git.example.org/a.git":                              "https://bob:***@git.example.org/a.git",
		"https://bob:" + "p@ss@w0rd" + "@git.example.org/a.git":                              "https://bob:***@git.example.org/a.git",
		"https://" + "0123456789abcdef0a1b2c3d4e5f60718293a4b5" + "@git.example.org/":        "https://0123456789abcdef0a1b2c3d4e5f60718293a4b5@git.example.org/",
		"+  api_key: \"" + "a8Fk29xLq0Zt71MwPv3Yc" + "\",":                                   "+  api_key: \"***\",",
		"time=1 msg=\"jwt ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0In0." + random(newRand(6), 43,
			alnum): "time=1 msg=\"jwt eyJ***",
		"GITEA_TOKEN=" + "9b7c1f0e4a6d23857c90be12fa345d67893bc1ef": "GITEA_TOKEN=***",
		"token: 9b7c1f0e4a6d23857c90be12fa345d67893bc1ef":           "token: ***",
	} {
		if strings.Contains(in, "0123456789abcdef0a1b") {
			in = strings.Replace(in, "0123456789abcdef0a1b", "9b7c1f0e4a6d2385f7c9", 1)
			want = "https://***@git.example.org/"
		}
		if out, _ := text(t, e, in); out != want {
			t.Errorf("%q\nbecame %q\nwant   %q", in, out, want)
		}
	}
}

// TestJSONEscapes hides a token behind escapes of JSON, in keys, in the last
// byte and where a Markdown line break splits it.
func TestJSONEscapes(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	aws := "AK" + "IA" + random(newRand(2), 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	for in, want := range map[string]string{
		`"\u0041` + aws[1:] + `"`:              `"\u0041KIA***"`,
		`"x\/` + aws + `\/y"`:                  `"x\/AKIA***\/y"`,
		`"\u002f` + aws + `"`:                  `"\u002fAKIA***"`,
		`{"` + aws + `":"` + aws + `"}`:        `{"` + aws + `":"AKIA***"}`,
		`{"` + aws + `" : 1}`:                  `{"` + aws + `" : 1}`,
		`"` + aws[:10] + `\n` + aws[10:] + `"`: `"` + aws[:10] + `\n` + aws[10:] + `"`,
		// split: documented as not found
		`"a\\` + aws + `"`:                           `"a\\AKIA***"`,
		`"a\t` + aws + `"`:                           `"a\tAKIA***"`,
		`"\u003c` + aws + `\u003e"`:                  `"\u003cAKIA***\u003e"`,
		`"\ud83d\ude00` + aws + `"`:                  `"\ud83d\ude00AKIA***"`,
		`"\ud83d` + aws + `"`:                        `"\ud83dAKIA***"`, // a lone surrogate
		`"\u0000` + aws + `\u0000"`:                  `"\u0000AKIA***\u0000"`,
		"\"\xff" + aws + "\xfe\"":                    "\"\xffAKIA***\xfe\"", // not UTF-8
		`[1e3,-0,1.0,"` + aws + `"]`:                 `[1e3,-0,1.0,"AKIA***"]`,
		`{"a":1,"a":"` + aws + `", "b" :"\u00e9\/"}`: `{"a":1,"a":"AKIA***", "b" :"\u00e9\/"}`,
		`{"text":"` + aws + `","clean":"x"}`:         `{"text":"AKIA***","clean":"x"}`,
		`"` + aws:                                    `"AKIA***`, // cut off
		aws:                                          `AKIA***`,  // no JSON at all, and no reason to let it pass
	} {
		if out, _ := doc(t, e, in); out != want {
			t.Errorf("%q\nbecame %q\nwant   %q", in, out, want)
		}
	}
}

func TestEncodedContent(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, "known-secret-value")
	enc := base64.StdEncoding.EncodeToString
	gh := github(1)
	file := "TOKEN=" + gh + "\n# known-secret-value\n"
	want := "TOKEN=ghp_***\n# [REDACTED]\n"
	noise := string(junk(3, 400))
	binary := noise + "known-secret-value\x00" + gh
	for in, out := range map[string]string{
		`{"encoding":"base64","content":"` + enc([]byte(file)) + `","size":9}`:                               `{"encoding":"base64","content":"` + enc([]byte(want)) + `","size":9}`,
		`{"content":"` + enc([]byte(file)) + `","x":{"y":[1]},"encoding":"base64"}`:                          `{"content":"` + enc([]byte(want)) + `","x":{"y":[1]},"encoding":"base64"}`,
		`[{"encoding":"base64","content":"` + enc([]byte(file)) + `"},{"encoding":null,"content":null}]`:     `[{"encoding":"base64","content":"` + enc([]byte(want)) + `"},{"encoding":null,"content":null}]`,
		`{"encoding":"base64","content":"` + enc([]byte(file))[:20] + `\n` + enc([]byte(file))[20:] + `\n"}`: `{"encoding":"base64","content":"` + enc([]byte(want)) + `"}`,
		`{"encoding":"base64","content":"` + enc([]byte(binary)) + `"}`:                                      `{"encoding":"base64","content":"` + enc([]byte(noise+"[REDACTED]\x00"+gh)) + `"}`,
		`{"encoding":"base64","content":"` + enc([]byte("clean")) + `","note":"` + gh + `"}`:                 `{"encoding":"base64","content":"` + enc([]byte("clean")) + `","note":"ghp_***"}`,
		`{"encoding":"base64","content":"not base64! ` + gh + `"}`:                                           `{"encoding":"base64","content":"not base64! ghp_***"}`,
		`{"encoding":"base64","other":"` + enc([]byte(file)) + `"}`:                                          `{"encoding":"base64","other":"` + enc([]byte(want)) + `"}`,
		`{"encoding" : "base64", "content" :"` + strings.ReplaceAll(enc([]byte(file)), "/",
			`\/`) + `"}`: `{"encoding" : "base64", "content" :"` + enc([]byte(want)) + `"}`,
		`{"a":{"encoding":"base64","content":"` + enc([]byte(file)) + `"},"content":"` + enc([]byte("x")) + `"}`: `{"a":{"encoding":"base64","content":"` + enc([]byte(want)) + `"},"content":"` + enc([]byte("x")) + `"}`,
	} {
		got, _ := doc(t, e, in)
		if got != out {
			t.Errorf("%s\nbecame %s\nwant   %s", in, got, out)
		}
		if again, more := doc(t, e, got); again != got || more != nil {
			t.Errorf("masking twice changed %s to %s", got, again)
		}
	}
}

func TestDeepNesting(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	gh := github(1)
	deep := strings.Repeat("[", 100_000)
	if out, _ := doc(t, e, deep+`"`+gh+`"`); strings.Contains(out, gh) {
		t.Error("a token below 100 000 brackets is left")
	}
	_, _, err := e.JSON(context.Background(), nil, []byte(deep+`{"encoding":"base64","content":"eA=="}`), nil,
		mask.Options{})
	if !errors.Is(err, mask.ErrDepth) {
		t.Errorf("content too deep to be found: %v, want ErrDepth", err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	gh := github(1)
	in := []byte(`{"a":"` + gh + ` known-secret-value"}`)
	for mode, want := range map[string]string{
		"off":    `{"a":"` + gh + ` [REDACTED]"}`,
		"mask":   `{"a":"ghp_*** [REDACTED]"}`,
		"report": `{"a":"` + gh + ` [REDACTED]"}`,
		"block":  "",
	} {
		e := newEngine(t, func(c *config.Masking) { c.Mode = mode }, "known-secret-value")
		out, hits, err := e.JSON(context.Background(), nil, in, nil, mask.Options{})
		var blocked *mask.BlockedError
		if mode == "block" {
			if !errors.As(err, &blocked) || blocked.Rule != "github-token" || out != nil || hits["github-token"] != 1 {
				t.Errorf("block: %q, %v, %v", out, hits, err)
			}
			continue
		}
		if err != nil || string(out) != want || (hits["github-token"] == 1) != (mode != "off") {
			t.Errorf("%s: %s, %v, %v", mode, out, hits, err)
		}
	}
}

func TestCleanInputIsReturnedAsItIs(t *testing.T) {
	e := newEngine(t, nil, "known-secret-value-of-some-length")
	in := []byte(`{"a":"clean \u003c text","b":[1,2,{"c":"\n"}],"mail":"bob@example.org"}`)
	r := e.Call("the-token-of-the-caller-0123456789")
	ctx := context.Background()
	run := func() {
		out, hits, err := e.JSON(ctx, nil, in, r, mask.Options{})
		if err != nil || hits != nil || &out[0] != &in[0] {
			t.Fatalf("%s, %v, %v", out, hits, err)
		}
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations on a clean document, want 0", n)
	}
}

func TestDestinationIsUsed(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	dst := make([]byte, 5, 4096)
	out, _, err := e.Text(context.Background(), dst, []byte("x "+github(1)), nil, mask.Options{})
	if err != nil || &out[0] != &dst[0] || !bytes.Equal(out, []byte("x ghp_***")) {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if out, _, err := e.Text(ctx, nil, []byte("x"), nil, mask.Options{}); !errors.Is(err, context.Canceled) ||
		out != nil {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *config.Masking) { c.Mode = "block" })
	gh := github(1)
	for in, want := range map[string]string{
		`{"` + gh + `":"\u0067` + gh[1:] + `"}`: `{"` + gh + `":"\u0067hp_***"}`,
		`{"` + gh + `": and no JSON`:            `{"ghp_***": and no JSON`,
		gh:                                      "ghp_***",
		`{"a":"` + gh + `"}` + "\n" + `{"b":"` + gh + `"}` + "\n": `{"a":"ghp_***"}` + "\n" + `{"b":"ghp_***"}` + "\n",
	} {
		out, hits := e.Bytes([]byte(in))
		if string(out) != want || hits["github-token"] == 0 {
			t.Errorf("%s became %s, hits %v; want %s", in, out, hits, want)
		}
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, "known-secret-value")
	var b bytes.Buffer
	w := e.Writer(&b)
	gh := github(1)
	for _, line := range []string{`{"level":"info","token":"` + gh + `","x":"known\u002dsecret-value"}` + "\n",
		"plain " + gh + "\n"} {
		if n, err := fmt.Fprint(w, line); err != nil || n != len(line) {
			t.Errorf("Write: %d, %v", n, err)
		}
	}
	if want := `{"level":"info","token":"ghp_***","x":"[REDACTED]"}` + "\nplain ghp_***\n"; b.String() != want {
		t.Errorf("got %s\nwant %s", b.String(), want)
	}
}

func TestStructureSurvives(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	in := "{ \"z\" : 1e3 , \"a\" :\t-0,\"n\":1.0,\"d\":\"\\/\\u00e9\",\"d\":\"" + github(1) + "\",\r\n\"e\":[ ] }"
	out, _ := doc(t, e, in)
	if want := strings.Replace(in, github(1), "ghp_***", 1); out != want {
		t.Errorf("got %s\nwant %s", out, want)
	}
	if !json.Valid([]byte(out)) {
		t.Error("not JSON")
	}
}
