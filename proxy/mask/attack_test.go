package mask_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/mask"
)

// These are the ways around masking that a review found, kept as tests.

// junk returns n random bytes, as an image or an archive has them.
func junk(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// manyContents is a list of files followed by as many secrets outside of files.
func manyContents(n int) []byte {
	aws := "AK" + "IA" + "IOSFODNN7EXAMPLQ"
	return []byte("[" + strings.Repeat(`{"encoding":"base64","content":"YQ=="},`, n) + strings.Repeat(`"`+aws+`",`,
		n) + "1]")
}

// TestManyContents masks five megabytes of files and secrets; how the time grows
// is BenchmarkAdversarial's matter.
func TestManyContents(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	const n = 80_000
	out, hits, err := e.JSON(context.Background(), nil, manyContents(n), nil, mask.Options{})
	if err != nil || hits["aws-access-key-id"] != n || !json.Valid(out) || bytes.Contains(out, []byte("EXAMPLQ")) {
		t.Errorf("hits %v, %v", hits, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if out, _, err := e.JSON(ctx, nil, manyContents(n), nil, mask.Options{}); !errors.Is(err, context.Canceled) ||
		out != nil {
		t.Errorf("cancelled: %d bytes, %v", len(out), err)
	}
}

// TestContentsKeepTheirNeighbours mixes files and secrets before, between, in and
// behind them.
func TestContentsKeepTheirNeighbours(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, "known-secret-value")
	gh := github(1)
	in := `["` + gh + `",{"encoding":"base64","x":"` + gh + `","content":"` + encode(gh) + `","y":{"encoding":"base64","content":"` + encode("known-secret-value") + `"},"z":"known-secret-value"},"` + gh + `"]`
	want := `["ghp_***",{"encoding":"base64","x":"ghp_***","content":"` + encode("ghp_***") + `","y":{"encoding":"base64","content":"` + encode("[REDACTED]") + `"},"z":"[REDACTED]"},"ghp_***"]`
	if out, _ := doc(t, e, in); out != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

// TestContentThatIsASecret: a string that is called base64 and may be decoded is
// still looked at as it is.
func TestContentThatIsASecret(t *testing.T) {
	t.Parallel()
	hexToken := random(newRand(8), 40, hexChars) // valid base64 by chance
	e := newEngine(t, nil, hexToken)
	aws := "AK" + "IA" + random(newRand(2), 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	for _, name := range []string{`"encoding":"base64","content"`, `"sidebar"`, `"footer"`, `"content_base64"`} {
		for _, secret := range []string{hexToken, aws} {
			out, hits := doc(t, e, `{`+name+`:"`+secret+`"}`)
			if strings.Contains(out, secret) || len(hits) != 1 {
				t.Errorf("%s of %s: %s, %v", name, secret, out, hits)
			}
		}
	}
}

func TestWikiPages(t *testing.T) {
	t.Parallel()
	gh := github(1)
	page := "# Setup\n\nexport TOKEN=" + gh + "\n" + callerToken + "\n"
	masked := encode("# Setup\n\nexport TOKEN=ghp_***\n[REDACTED]\n")
	for _, name := range []string{"content_base64", "sidebar", "footer"} {
		e := newEngine(t, nil)
		body := func(v string) string { return `{"title":"Home","` + name + `":"` + v + `","commit_count":1}` }
		out, _, err := serve(e, call(&proxy.Tool{ReadOnly: true}, nil), jsonResult(body(encode(page))), nil)
		if err != nil || string(out.Body) != body(masked) {
			t.Errorf("%s: %s, %v", name, out.Body, err)
		}
		e = newEngine(t, func(c *config.Masking) { c.Mode = "block" })
		if out, _, err := serve(e, call(&proxy.Tool{ReadOnly: true}, nil), jsonResult(body(encode(page))), nil); out != nil || proxy.AsError(err).Kind != proxy.KindSecretBlocked {
			t.Errorf("%s: block mode gives %v, %v", name, out, err)
		}
		e = newEngine(t, func(c *config.Masking) { c.Mode = "report" })
		c := call(&proxy.Tool{ReadOnly: true}, nil)
		if _, _, err := serve(e, c, jsonResult(body(encode("export TOKEN="+gh))), nil); err != nil ||
			c.Stats.MaskHits["github-token"] != 1 {
			t.Errorf("%s: report mode counts %v, %v", name, c.Stats.MaskHits, err)
		}
		// A known secret that only the decoded form shows, with patterns off.
		e = newEngine(t, offPatterns, `a"b/known-secret`)
		if out, _ := doc(t, e, body(encode(`{"k":"a\"b\/known-secret"}`))); out != body(encode(`{"k":"[REDACTED]"}`)) {
			t.Errorf("%s: patterns off: %s", name, out)
		}
		for _, clean := range []string{encode("# Setup\n"), encode(string(junk(4, 3000))), "", "plain words", "AAAA"} {
			if out, hits := doc(t, newEngine(t, nil), body(clean)); out != body(clean) || hits != nil {
				t.Errorf("%s: clean content became %s, %v", name, out, hits)
			}
		}
	}
}

// TestBase64Anywhere: the commonest secrets are found in base64 whatever the
// member is called, at each alignment, and images stay what they are.
func TestBase64Anywhere(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, "known-secret-value")
	aws := "AK" + "IA" + random(newRand(2), 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	head, body, foot := keyParts("")
	for in, want := range map[string]string{github(1): "ghp_***", aws: "AKIA***",
		head + body + foot: head + "***\n" + foot} {
		for before := range 4 {
			plain, masked := strings.Repeat("x", before)+" "+in+" known-secret-value\n",
				strings.Repeat("x", before)+" "+want+" [REDACTED]\n"
			for _, frame := range []string{`{"any":"%s"}`, `["known-secret-value","%s"]`, `"%s"`,
				`[["%s"],{"footer":"%s"}]`, `{"encoding":"base64","x":"%s","content":"%s"}`} {
				all := strings.ReplaceAll(frame, "known-secret-value", "[REDACTED]")
				got, _ := doc(t, e, strings.ReplaceAll(frame, "%s", encode(plain)))
				if got != strings.ReplaceAll(all, "%s", encode(masked)) {
					t.Errorf("%s of %q became %s", frame, plain, got)
				}
			}
			for _, frame := range []string{`{"%s":1}`, `"see %s"`} { // a key, and a part of a string
				if got, hits := doc(t, e, strings.ReplaceAll(frame, "%s", encode(plain))); hits[mask.ExactRule] != 1 ||
					len(hits) != 1 {
					t.Errorf("%s became %s", frame, got)
				}
			}
		}
	}
	for seed := range uint64(40) {
		image := junk(seed, 20_000)
		copy(image[9_000:], " "+github(seed)+" ")
		in := `{"image":"` + base64.StdEncoding.EncodeToString(image) + `"}`
		if out, hits := doc(t, e, in); out != in || hits != nil {
			t.Fatalf("an image was changed, %v", hits)
		}
	}
}

// TestNULDoesNotSwitchPatternsOff: one odd byte does not make a text binary.
func TestNULDoesNotSwitchPatternsOff(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	gh := github(1)
	text := strings.Repeat("some words\n", 20) + "TOKEN=" + gh + "\n"
	for _, odd := range []string{"\x00", "\x00\x00\x00\x00\x00\x00", "\xff\xfe", "\xfe\xff\x00", "\xef\xbb\xbf", "\x01",
		"\xe9"} {
		for _, in := range []string{odd + text, text[:40] + odd + text[40:], text + odd} {
			for _, kind := range []proxy.BodyKind{proxy.BodyText, proxy.BodyBinary} {
				out, _, err := serve(e, call(&proxy.Tool{ReadOnly: true}, nil),
					&proxy.Result{Kind: kind, Body: []byte(in)}, nil)
				if err != nil || string(out.Body) != strings.Replace(in, gh, "ghp_***", 1) {
					t.Errorf("kind %d with %q: %q, %v", kind, odd, out.Body, err)
				}
			}
			file := `{"encoding":"base64","content":"` + encode(in) + `"}`
			if out, _ := doc(t, e, file); out != `{"encoding":"base64","content":"`+encode(strings.Replace(in, gh, "ghp_***", 1))+`"}` {
				t.Errorf("content with %q became %s", odd, out)
			}
		}
	}
	// Random bytes in a text body do not matter either.
	in := string(junk(2, 300)) + " " + gh + "\n"
	out, _, err := serve(e, call(&proxy.Tool{ReadOnly: true}, nil),
		&proxy.Result{Kind: proxy.BodyText, Body: []byte(in)}, nil)
	if err != nil || strings.Contains(string(out.Body), gh) {
		t.Errorf("text body with noise: %v", err)
	}
}

func utf16Text(s string, big bool) string {
	var b bytes.Buffer
	for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
		pair := []byte{byte(u), byte(u >> 8)}
		if big {
			pair[0], pair[1] = pair[1], pair[0]
		}
		b.Write(pair)
	}
	return b.String()
}

func TestUTF16(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, "known-secret-value")
	gh := github(1)
	for _, big := range []bool{false, true} {
		in := utf16Text("日本 TOKEN="+gh+"\r\nknown-secret-value \U0001F511\r\n", big)
		want := utf16Text("日本 TOKEN=ghp_***\r\n[REDACTED] \U0001F511\r\n", big)
		out, _, err := serve(e, call(&proxy.Tool{ReadOnly: true}, nil),
			&proxy.Result{Kind: proxy.BodyBinary, Body: []byte(in)}, nil)
		if err != nil || string(out.Body) != want {
			t.Errorf("big %v: %q, %v", big, out.Body, err)
		}
		file := func(s string) string { return `{"content":"` + encode(s) + `","encoding":"base64"}` }
		if out, hits := doc(t, e, file(in)); out != file(want) || hits["github-token"] != 1 ||
			hits[mask.ExactRule] != 1 {
			t.Errorf("big %v: content became %s, %v", big, out, hits)
		}
		clean := utf16Text("nothing 日本", big) + "x" // an odd byte at the end
		if out, hits := text(t, e, clean); out != clean || hits != nil {
			t.Errorf("big %v: clean text became %q, %v", big, out, hits)
		}
		// A byte order mark does not hide a text that is none.
		if out, _ := text(t, e, utf16Text("", big)+" "+gh+" known-secret-value"); strings.Contains(out, gh) ||
			strings.Contains(out, "known") {
			t.Errorf("big %v: behind a mark: %q", big, out)
		}
	}
}

// rawSecret is the raw tool's call that writes an Actions secret, as the catalog
// stage hands it on.
func rawSecret(op string, body any) *proxy.Call {
	return call(&proxy.Tool{OperationID: op},
		proxy.Arguments{"method": "PUT", "path": "/repos/o/r/actions/secrets/NAME", "body": body})
}

// TestRawSecretsElsewhere: the exemption for the value of a secret is for the body alone,
// and a secret is found that a path spreads over several of its parts.
func TestRawSecretsElsewhere(t *testing.T) {
	t.Parallel()
	masking := func(c *config.Masking) { c.Input = "mask" }
	e := newEngine(t, masking, "known-secret-value")
	c := rawSecret("updateRepoSecret", map[string]any{"data": "x"})
	c.Wire.Query = []proxy.Field{{Name: "data", In: proxy.InQuery, Value: "known-secret-value"}}
	sent := ""
	_, err := e.Stage()(proxy.HandlerFunc(func(_ context.Context, c *proxy.Call) (*proxy.Result, error) {
		sent, _ = c.Wire.Query[0].Value.(string)
		return jsonResult(`{}`), nil
	})).Handle(t.Context(), c)
	if err != nil || sent != "[REDACTED]" {
		t.Errorf("query: %q was sent, %v", sent, err)
	}

	spread := newEngine(t, masking, "known/secret-abcdef123456")
	c = call(&proxy.Tool{OperationID: "issueCreateIssue", Path: "/repos/{owner}/{repo}/issues"},
		proxy.Arguments{"method": "POST", "path": "/repos/known/secret-abcdef123456/issues",
			"body": map[string]any{"title": "x"}})
	c.Wire.Values = []proxy.Field{{Name: "owner", In: proxy.InPath, Value: "known"},
		{Name: "repo", In: proxy.InPath, Value: "secret-abcdef123456"}}
	_, err = spread.Stage()(proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) {
		t.Error("the call went on")
		return jsonResult(`{}`), nil
	})).Handle(t.Context(), c)
	if err == nil {
		t.Error("no error")
	}
}

func TestRawSecretWrites(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	for _, key := range []string{"data", "Data", "DATA", "dAtA"} {
		for _, op := range []string{"updateRepoSecret", "updateOrgSecret", "updateUserSecret", ""} {
			for _, body := range []any{map[string]any{key: "zq9"}, map[string]any{"data": "", key: "zq9"},
				`{"` + key + `":"zq9"} rest`} {
				out, _, err := serve(e, rawSecret(op, body), jsonResult(`{"message":"zq9 is bad"}`), nil)
				if err != nil || string(out.Body) != `{"message":"[REDACTED] is bad"}` {
					t.Errorf("%s %v: %s, %v", op, body, out.Body, err)
				}
			}
		}
		c := call(&proxy.Tool{OperationID: "updateUserSecret", Path: "/user/actions/secrets/{secretname}"},
			proxy.Arguments{key: "zq9"})
		if out, _, err := serve(e, c, jsonResult(`["zq9"]`), nil); err != nil || string(out.Body) != `["[REDACTED]"]` {
			t.Errorf("%s: %s, %v", key, out.Body, err)
		}
	}
	// Names of secrets in any case, Go's odd ones too.
	for _, key := range []string{"Password", "PASSWORD", "pa\u017f\u017fword", "to\u212aen", "Client_Secret"} {
		c := call(&proxy.Tool{}, proxy.Arguments{"body": map[string]any{"config": map[string]any{key: "hunter22"}}})
		if out, _, err := serve(e, c, jsonResult(`["hunter22"]`), nil); err != nil ||
			string(out.Body) != `["[REDACTED]"]` {
			t.Errorf("%s: %s, %v", key, out.Body, err)
		}
	}
}

// TestRawSecretIsExempt: what is written as a secret must reach Gitea as it is;
// other arguments of the same call must not.
func TestRawSecretIsExempt(t *testing.T) {
	t.Parallel()
	gh := github(1)
	for _, mode := range []string{"mask", "block"} {
		e := newEngine(t, func(c *config.Masking) { c.Input = mode })
		for _, key := range []string{"data", "Data"} {
			c := rawSecret("updateRepoSecret", map[string]any{key: gh, "description": "x"})
			if _, got, err := serve(e, c, jsonResult(`{}`), nil); err != nil ||
				!cmp.Equal(got["body"], map[string]any{key: gh, "description": "x"}) {
				t.Errorf("%s: the handler got %v, %v", mode, got, err)
			}
		}
		for _, body := range []map[string]any{{"description": gh}, {"x": map[string]any{"data": gh}},
			{"content": []any{map[string]any{"data": gh}}}} {
			_, got, err := serve(e, rawSecret("updateRepoSecret", body), jsonResult(`{}`), nil)
			if sent, _ := json.Marshal(got); strings.Contains(string(sent), gh) || mode == "block" && err == nil {
				t.Errorf("%s %v: the handler got %s, %v", mode, body, sent, err)
			}
		}
	}
}

// TestInputFilesNeedNotBeUTF8: a byte that is no UTF-8 does not hide the rest of
// a file, nor does the case of the argument's name.
func TestInputFilesNeedNotBeUTF8(t *testing.T) {
	t.Parallel()
	gh := github(1)
	block := newEngine(t, func(c *config.Masking) { c.Input = "block" })
	masking := newEngine(t, func(c *config.Masking) { c.Input = "mask" })
	for _, odd := range []string{"\xff", "\x00", string(junk(5, 64)), ""} {
		for _, name := range []string{"content", "Content", "CONTENT_BASE64", "attachment", "anything"} {
			plain := strings.Repeat("words and words ", 30) + "TOKEN=" + gh + "\n" + odd
			args := proxy.Arguments{"body": map[string]any{name: encode(plain)}}
			if _, got, err := serve(block, call(&proxy.Tool{}, args), jsonResult(`{}`), nil); got != nil ||
				proxy.AsError(err).Kind != proxy.KindSecretBlocked {
				t.Errorf("%s with %q: block: %v, %v", name, odd, got, err)
			}
			_, got, err := serve(masking, call(&proxy.Tool{}, args), jsonResult(`{}`), nil)
			want := map[string]any{name: encode(strings.Replace(plain, gh, "ghp_***", 1))}
			if diff := cmp.Diff(want, got["body"]); err != nil || diff != "" {
				t.Errorf("%s with %q: mask: %v (-want +got):\n%s", name, odd, err, diff)
			}
		}
	}
	image := proxy.Arguments{"content": base64.StdEncoding.EncodeToString(junk(6, 50_000)),
		"image": base64.StdEncoding.EncodeToString(junk(7, 50_000))}
	if _, got, err := serve(block, call(&proxy.Tool{}, image), jsonResult(`{}`), nil); err != nil ||
		!cmp.Equal(got, image) {
		t.Errorf("images: %v", err)
	}
	// What is called a file and may be decoded is still looked at as it is.
	aws := "AK" + "IA" + random(newRand(2), 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	if _, got, err := serve(block, call(&proxy.Tool{}, proxy.Arguments{"content": aws}), jsonResult(`{}`), nil); got != nil || err == nil {
		t.Errorf("a secret that is base64 by chance: %v, %v", got, err)
	}
}

// TestExactBetweenPercents: a percent sign is one, and nothing else is.
func TestExactBetweenPercents(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef0123456789abcdef01234567"
	e := newEngine(t, offPatterns, token)
	for i := range len(token) {
		one := token[:i] + fmt.Sprintf("%%%02x", token[i]) + token[i+1:]
		for _, in := range []string{one, "x=" + one + "&y", token[:i] + percentAll(token[i:]),
			percentAll(token[:i]) + token[i:]} {
			if out, hits := text(t, e, in); hits[mask.ExactRule] != 1 || strings.Contains(out, token[i+1:]) && i < 30 {
				t.Errorf("%s became %s", in, out)
			}
			if out, hits := doc(t, e, quoted(in)); hits[mask.ExactRule] != 1 {
				t.Errorf("JSON %s became %s", in, out)
			}
		}
	}
}

// TestNestedEncodings: JSON in a string of JSON, and percent-encoding twice.
func TestNestedEncodings(t *testing.T) {
	t.Parallel()
	for _, secret := range awkward {
		e := newEngine(t, offPatterns, secret)
		html, _ := json.Marshal(map[string]string{"v": secret})
		var plain bytes.Buffer
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]string{"v": secret}); err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{string(html), plain.String(), url.QueryEscape(url.QueryEscape(secret)), url.QueryEscape(url.PathEscape(secret)), url.PathEscape(url.QueryEscape(secret)), "x" + url.PathEscape(url.PathEscape(secret)) + "y"} {
			for _, d := range []string{`{"body":` + quoted(in) + `}`, `["` + quoted(in)[1:]} {
				if out, hits := doc(t, e, strings.TrimSuffix(d, "\n")); hits[mask.ExactRule] != 1 ||
					strings.Contains(decodeAll(t, out), in) {
					t.Errorf("%q as %s became %s, %v", secret, d, out, hits)
				}
			}
			if out, hits := text(t, e, in); hits[mask.ExactRule] != 1 {
				t.Errorf("%q as %s became %s", secret, in, out)
			}
		}
	}
}

func TestStageMasksEveryField(t *testing.T) {
	t.Parallel()
	const known = "configured-secret"
	e := newEngine(t, nil, known)
	in := &proxy.Result{Kind: proxy.BodyJSON, Body: []byte(`"` + known + `"`), Method: known, Path: "/" + known,
		ContentType: "text/" + known, Source: known,
		Warnings: []string{known}, Text: []byte(`"` + known + `"`), TextBlock: []byte(known),
		Structured: []byte(`"` + known + `"`),
		Truncation: &proxy.Truncation{At: known, Omitted: []string{"a", known}, UnknownFields: []string{known},
			Cursor: "c"}, Page: &proxy.Pagination{Page: 1}}
	before := fmt.Sprintf("%+v %+v", *in, *in.Truncation)
	for _, tool := range []*proxy.Tool{{ReadOnly: true}, {CredentialIssuing: true}} {
		out, _, err := serve(e, call(tool, nil), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if all := fmt.Sprintf("%s %q %s %s %s", out.Body, []string{out.Method, out.Path, out.ContentType, out.Source}, out.Text, out.TextBlock, out.Structured) + fmt.Sprintf("%+v %+v", out.Warnings, *out.Truncation); strings.Contains(all, known) || strings.Count(all, "[REDACTED]") != 12 {
			t.Errorf("got %s", all)
		}
	}
	if after := fmt.Sprintf("%+v %+v", *in, *in.Truncation); after != before {
		t.Errorf("the handler's result was written to: %s", after)
	}
}
