package mask_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aegis/proxy/mask"
)

// TestNoFalsePositives runs the built-in rules over what must pass untouched.
func TestNoFalsePositives(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	r := newRand(99)
	for name, make := range map[string]func(*rand.Rand) string{
		"commits": commitLog, "go.sum": goSum, "package-lock": packageLock, "digests": digests, "uuids": uuids,
		"certificates": certificates, "public keys": publicKeys, "images": images, "minified script": minified, "CI log": ciLog,
		"patches": patches, "prose": prose, "workflow": workflow,
	} {
		t.Run(name, func(t *testing.T) {
			total := 0
			for range 20 {
				s := make(r)
				total += len(s)
				if out, hits := text(t, e, s); hits != nil || out != s {
					t.Fatalf("text was changed, hits %v:\n%s", hits, difference(s, out))
				}
				q := `{"body":` + quoted(s) + `}`
				if out, hits := doc(t, e, q); hits != nil || out != q {
					t.Fatalf("JSON was changed, hits %v:\n%s", hits, difference(q, out))
				}
			}
			t.Logf("%d bytes, 0 hits", total)
		})
	}
}

// TestNoFalsePositivesInGoSource runs them over the Go toolchain's source, as
// a contents listing would carry it.
func TestNoFalsePositivesInGoSource(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	e := newEngine(t, nil)
	total, hits := 0, mask.Hits(nil)
	limit := 40 << 20
	if testing.Short() {
		limit = 4 << 20
	}
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "src"),
		func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || total > limit || !strings.HasSuffix(p, ".go") || strings.Contains(p, "testdata") {
				return err
			}
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			total += len(b)
			in, err := json.Marshal(map[string]string{"path": p, "content": string(b)})
			if err != nil {
				return err
			}
			got, h, err := e.JSON(context.Background(), nil, in, nil, mask.Options{})
			if err != nil {
				return err
			}
			if strings.HasSuffix(p, "cmd/go/internal/auth/userauth_test.go") {
				// It is full of Authorization headers with made-up credentials:
				// here a miss would be the mistake.
				if h["authorization-header"] == 0 {
					t.Errorf("%s: no hits", p)
				}
				return nil
			}
			if h != nil {
				t.Errorf("%s: hits %v\n%s", p, h, difference(string(in), string(got)))
				hits = hits.Add(h)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of Go source, hits %v", total, hits)
}

// difference shows the surroundings of the first place where a and b differ.
func difference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("- %q\n+ %q", a[max(i-60, 0):min(i+60, len(a))], b[max(i-60, 0):min(i+60, len(b))])
}

func commitLog(r *rand.Rand) string {
	var b strings.Builder
	for range 20 {
		sha := random(r, 40, hexChars)
		fmt.Fprintf(&b, "commit %s\ntree %s\nparent %s\nAuthor: Bob <bob@example.org>\n\n    Merge %s into main (token refresh)\n", sha, random(r, 40, hexChars), random(r, 40, hexChars), sha[:7])
		fmt.Fprintf(&b, `{"sha":"%s","sha1":"%s","ETag":"W/\"%s\"","avatar":"https://secure.gravatar.com/avatar/%s?d=identicon"}`+"\n", sha, sha, random(r, 32, hexChars), random(r, 32, hexChars))
	}
	return b.String()
}

func goSum(r *rand.Rand) string {
	var b strings.Builder
	for range 50 {
		h := base64.StdEncoding.EncodeToString([]byte(random(r, 32, alnum)))
		fmt.Fprintf(&b, "cloud.google.com/go/auth v1.%d.0 h1:%s\ngithub.com/acme/secret-token v0.%d.%d/go.mod h1:%s\n",
			r.IntN(30), h, r.IntN(9), r.IntN(9), h)
	}
	return b.String()
}

func packageLock(r *rand.Rand) string {
	var b strings.Builder
	for range 30 {
		var raw [64]byte
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		h := base64.StdEncoding.EncodeToString(raw[:])
		fmt.Fprintf(&b, `"node_modules/js-tokens": {"version": "4.%d.0", "resolved": "https://registry.example.org/js-tokens/-/js-tokens-4.0.%d.tgz", "integrity": "sha512-%s"},`+"\n", r.IntN(9), r.IntN(9), h)
		fmt.Fprintf(&b, `<script src="x.js" integrity="sha384-%s" crossorigin="anonymous"></script>`+"\n", h[:64])
	}
	return b.String()
}

func digests(r *rand.Rand) string {
	var b strings.Builder
	for range 40 {
		fmt.Fprintf(&b, "FROM docker.io/library/golang@sha256:%s\n%x  token.tar.gz\nsha512: %x\nmd5 %s\n", random(r, 64, hexChars), sha256.Sum256([]byte{byte(r.Uint32())}), sha512.Sum512([]byte{byte(r.Uint32())}), random(r, 32, hexChars))
	}
	return b.String()
}

func uuids(r *rand.Rand) string {
	var b strings.Builder
	for range 60 {
		fmt.Fprintf(&b, `{"uuid":"%s-%s-4%s-a%s-%s"}`+"\n", random(r, 8, hexChars), random(r, 4, hexChars),
			random(r, 3, hexChars), random(r, 3, hexChars), random(r, 12, hexChars))
	}
	return b.String()
}

// seeded gives crypto's generators bytes that are the same each run.
type seeded struct{ r *rand.Rand }

func (s seeded) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

func certificates(r *rand.Rand) string {
	var b bytes.Buffer
	for range 5 {
		der := make([]byte, 900)
		_, _ = seeded{r}.Read(der)
		for _, kind := range []string{"CERTIFICATE", "CERTIFICATE REQUEST", "X509 CRL", "PGP SIGNATURE"} {
			_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der})
		}
	}
	return b.String()
}

func publicKeys(r *rand.Rand) string {
	var b bytes.Buffer
	seed := make([]byte, ed25519.SeedSize)
	_, _ = seeded{r}.Read(seed)
	pub := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		panic(err)
	}
	_ = pem.Encode(&b, &pem.Block{Type: "PUBLIC KEY", Bytes: der})
	_ = pem.Encode(&b, &pem.Block{Type: "PGP PUBLIC KEY BLOCK", Bytes: seed})
	wire := binary.BigEndian.AppendUint32(nil, 11)
	wire = append(wire, "ssh-ed25519"...)
	wire = append(binary.BigEndian.AppendUint32(wire, 32), pub...)
	fmt.Fprintf(&b, "ssh-ed25519 %s bob@laptop\nage1%s\npk_live_%s\n", base64.StdEncoding.EncodeToString(wire),
		random(r, 58, "qpzry9x8gf2tvdw0s3jn54khce6mua7l"), random(r, 24, alnum))
	return b.String()
}

func images(r *rand.Rand) string {
	raw := make([]byte, 60000)
	_, _ = seeded{r}.Read(raw)
	return "![logo](data:image/png;base64," + base64.StdEncoding.EncodeToString(raw) + ")\n" + base64.URLEncoding.EncodeToString(raw)
}

func minified(r *rand.Rand) string {
	var b strings.Builder
	for b.Len() < 20000 {
		v := random(r, 1, "abcdefgh")
		fmt.Fprintf(&b, `function %s(e,t){var n=e.token||t.accessToken;if(!n)throw new Error("token is missing");return e.password===t.password?n:(%s.secret=r(%d),"%s")}`, v, v, r.IntN(999), random(r, 12, "abcdefghijklm"))
		fmt.Fprintf(&b, `const t={tokenType:"Bearer",passwordHash:void 0,apiKeyHeader:"x-api-key",credentials:"same-origin",authKey:null};`)
	}
	return b.String()
}

func ciLog(r *rand.Rand) string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "2026-11-30T08:%02d:41.%07dZ \x1b[36;1mPulling fs layer %s\x1b[0m\n", i, r.IntN(1e7),
			random(r, 12, hexChars))
		fmt.Fprintf(&b, "##[debug]token: ***\nAdded secret mask, GITHUB_TOKEN: ***\nHEAD is now at %s add token rotation\n", random(r, 40, hexChars))
		fmt.Fprintf(&b, "Cache restored from key: Linux-go-%s\nsha256:%s done\n", random(r, 64, hexChars),
			random(r, 64, hexChars))
		fmt.Fprintf(&b, "error: password authentication failed for user \"bob\" (attempt %d)\nAuthorization: Bearer ***\n", r.IntN(99))
		fmt.Fprintf(&b, "Cloning https://git.example.org/acme/site.git with token from $GITEA_TOKEN\nremote: https://x-access-token:***@git.example.org\n")
	}
	return b.String()
}

func patches(r *rand.Rand) string {
	var b strings.Builder
	for range 30 {
		fmt.Fprintf(&b, "diff --git a/auth/token.go b/auth/token.go\nindex %s..%s 100644\n@@ -1,3 +1,4 @@\n-\ttoken := r.Header.Get(\"X-Token\")\n+\tpassword := cfg.Database.Password2\n+\tsecret = tls13.NewEarlySecret(hash, psk1)\n", random(r, 40, hexChars), random(r, 40, hexChars))
		fmt.Fprintf(&b, "+  api_key: ${{ secrets.API_KEY_%d }}\n+  client_secret: \"<your-client-secret>\"\n+  token: \"{{ .Values.token }}\"\n", r.IntN(9))
	}
	return b.String()
}

func prose(r *rand.Rand) string {
	return strings.Repeat("Create a token under Settings > Applications, then pass it as `Authorization: token <your token>` or put user:password@ before the host. "+
		"The password must have 12 characters or more; the secret is shown once. Use `https://user:password@git.example.org` only in scripts. "+
		"A bearer token expires after 3600 seconds, access tokens of version 2 after 30 days. api_key=YOUR_API_KEY, password: \"changeme123456\", see RFC6750 section 2.1.\n", 1+r.IntN(20))
}

func workflow(r *rand.Rand) string {
	return fmt.Sprintf("env:\n  TOKEN: ${{ secrets.GITHUB_TOKEN }}\n  DATABASE_URL: postgres://postgres:postgres@localhost:5432/test%d\n  AWS_SECRET_ACCESS_KEY: ${{ secrets.AWS }}\n"+
		"jobs:\n  build:\n    uses: acme/deploy@%s # v2\n    with:\n      password: ${{ secrets.PASSWORD }}\n      token-file: /run/secrets/token2\n", r.IntN(9), random(r, 40, hexChars))
}
