package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var writeCorpora = flag.String("write-corpora", "",
	"write the texts of the benchmarks into this folder, for scanners in modules of their own")

// TestWriteCorpora writes what "make bench-gitleaks" reads: a file for each text.
func TestWriteCorpora(t *testing.T) {
	if *writeCorpora == "" {
		t.Skip("only with -write-corpora")
	}
	corpora, err := Corpora(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range corpora {
		if err := os.WriteFile(filepath.Join(*writeCorpora, c.Name+".json"), c.JSON, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Corpus is a JSON document as Gitea writes them.
type Corpus struct {
	Name string
	JSON []byte
}

// Corpora returns the texts, each of about size bytes: issue lists, code as
// files and diffs, CI logs, base64 contents, non-ASCII text, and code with a
// secret in every 4 kB. Code is the Go toolchain's own source. The same size
// gives the same texts with the same toolchain.
func Corpora(size int) ([]Corpus, error) {
	src, err := newSource()
	if err != nil {
		return nil, err
	}
	all := []Corpus{
		{"issues", src.issues(size)},
		{"code", src.code(size, 0)},
		{"logs", src.logs(size)},
		{"base64", src.contents(size)},
		{"cjk", src.cjk(size)},
		{"dirty", src.code(size, 4096)},
	}
	for _, c := range all {
		if !json.Valid(c.JSON) {
			return nil, fmt.Errorf("corpus %s is not JSON", c.Name)
		}
	}
	return all, nil
}

type source struct {
	r     *rand.Rand
	files [][]byte
	prose []string
}

func newSource() (*source, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask the go command for its source: %w", err)
	}
	s := &source{r: rand.New(rand.NewPCG(1, 2))}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	total := 0
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || total > 24<<20 {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s.files = append(s.files, b)
		total += len(b)
		for line := range strings.Lines(string(b)) {
			if t, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok && len(t) > 20 && len(s.prose) < 100000 {
				s.prose = append(s.prose, t)
			}
		}
		return nil
	})
	s.r.Shuffle(len(s.files), func(i, j int) { s.files[i], s.files[j] = s.files[j], s.files[i] })
	return s, err
}

// Alphabets of random texts.
const (
	hexDigits = "0123456789abcdef"
	alnum     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

func (s *source) random(n int, from string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[s.r.IntN(len(from))]
	}
	return string(b)
}

func (s *source) hex(n int) string   { return s.random(n, hexDigits) }
func (s *source) alnum(n int) string { return s.random(n, alnum) }

func (s *source) paragraph(lines int) string {
	var b strings.Builder
	for i := range lines {
		b.WriteString(s.prose[s.r.IntN(len(s.prose))] + "\r\n")
		if i%3 == 2 {
			b.WriteString("\r\n")
		}
	}
	return b.String()
}

func (s *source) time() string {
	return time.Unix(1_700_000_000+s.r.Int64N(90_000_000), 0).UTC().Format(time.RFC3339)
}

func (s *source) user() map[string]any {
	login := fmt.Sprintf("user%d", s.r.IntN(5000))
	return map[string]any{"id": s.r.IntN(5000), "login": login, "full_name": "",
		"email":      login + "@noreply.git.example.org",
		"avatar_url": "https://git.example.org/avatars/" + s.hex(32), "html_url": "https://git.example.org/" + login,
		"is_admin": false,
		"created":  s.time(), "restricted": false, "active": true, "language": "en-US"}
}

func (s *source) issues(size int) []byte {
	return list(size, func(i int) any {
		return map[string]any{"id": 100000 + i,
			"url":      fmt.Sprintf("https://git.example.org/api/v1/repos/acme/site/issues/%d", i),
			"html_url": fmt.Sprintf("https://git.example.org/acme/site/issues/%d", i), "number": i, "user": s.user(),
			"original_author": "",
			"title":           s.prose[s.r.IntN(len(s.prose))], "body": s.paragraph(4 + s.r.IntN(10)), "ref": "",
			"assets": []any{},
			"labels": []any{map[string]any{"id": 3, "name": "kind/bug", "color": "ee0701", "exclusive": false}},
			"state":  "open", "is_locked": false, "comments": s.r.IntN(40), "created_at": s.time(),
			"updated_at": s.time(), "closed_at": nil,
			"assignee": nil, "milestone": nil, "repository": map[string]any{"id": 1, "name": "site", "owner": "acme",
				"full_name": "acme/site"}}
	})
}

// code is files and diffs; with every > 0 a secret is planted in each so many
// bytes.
func (s *source) code(size, every int) []byte {
	n := 0
	return list(size, func(i int) any {
		text := string(s.files[i%len(s.files)])
		if every > 0 {
			text = s.plant(text, every)
		}
		n++
		if n%2 == 0 {
			return map[string]any{"path": fmt.Sprintf("pkg/file%d.go", i), "content": text}
		}
		var d strings.Builder
		fmt.Fprintf(&d, "diff --git a/file%d.go b/file%d.go\nindex %s..%s 100644\n@@ -1,7 +1,9 @@\n",
			i, i, s.hex(7), s.hex(7))
		for line := range strings.Lines(text) {
			d.WriteByte(" +-"[s.r.IntN(3)])
			d.WriteString(line)
		}
		return map[string]any{"filename": fmt.Sprintf("file%d.go", i), "patch": d.String()}
	})
}

func (s *source) logs(size int) []byte {
	return list(size, func(i int) any {
		var b strings.Builder
		for b.Len() < 30000 {
			fmt.Fprintf(&b, "%s.%07dZ ", s.time()[:19], s.r.IntN(1e7))
			switch s.r.IntN(6) {
			case 0:
				fmt.Fprintf(&b, "github.com/acme/mod%d v1.%d.0 h1:%s=\n", s.r.IntN(900), s.r.IntN(30),
					s.random(43, alnum+"+/"))
			case 1:
				fmt.Fprintf(&b, "Pulling sha256:%s: %d kB / 2048 kB\n", s.hex(64), s.r.IntN(2048))
			case 2:
				fmt.Fprintf(&b, "HEAD is now at %s %s\n", s.hex(40), s.prose[s.r.IntN(len(s.prose))])
			case 3:
				fmt.Fprintf(&b, "ok  \tacme/pkg%d\t%d.%03ds\tcoverage: %d.%d%% of statements\n", s.r.IntN(99),
					s.r.IntN(9), s.r.IntN(999), s.r.IntN(99), s.r.IntN(9))
			case 4:
				fmt.Fprintf(&b, "\x1b[32m  INFO\x1b[0m Building %d/%d objects in 00:%02d:%02d\n", s.r.IntN(500), 1280,
					s.r.IntN(60), s.r.IntN(60))
			default:
				b.WriteString("##[group]" + s.prose[s.r.IntN(len(s.prose))] + "\n")
			}
		}
		return map[string]any{"id": i, "name": "build", "log": b.String()}
	})
}

func (s *source) contents(size int) []byte {
	return list(size, func(i int) any {
		b := s.files[i%len(s.files)]
		if i%2 == 0 {
			b = make([]byte, len(b))
			for j := range b {
				b[j] = byte(s.r.Uint32())
			}
		}
		return map[string]any{"name": fmt.Sprintf("f%d", i), "sha": s.hex(40), "size": len(b),
			"data": base64.StdEncoding.EncodeToString(b), "type": "file"}
	})
}

func (s *source) cjk(size int) []byte {
	return list(size, func(i int) any {
		var b strings.Builder
		for range 100 + s.r.IntN(400) {
			switch s.r.IntN(12) {
			case 0:
				b.WriteString("，")
			case 1:
				b.WriteString(" API ")
			case 2:
				b.WriteRune(rune(0x1F600 + s.r.IntN(64)))
			default:
				b.WriteRune(rune(0x4E00 + s.r.IntN(3000)))
			}
		}
		return map[string]any{"id": i, "title": b.String()[:60/3*3], "body": b.String(), "created_at": s.time()}
	})
}

// list marshals items until they make size bytes.
func list(size int, item func(i int) any) []byte {
	b := bytes.NewBuffer(make([]byte, 0, size+size/8))
	enc := json.NewEncoder(b)
	b.WriteByte('[')
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.Truncate(b.Len() - 1) // the encoder's line end
			b.WriteByte(',')
		}
		if err := enc.Encode(item(i)); err != nil {
			return nil // only maps, strings and numbers are given
		}
	}
	b.WriteByte(']')
	return b.Bytes()
}

// plant puts secrets of many kinds at line ends.
func (s *source) plant(text string, every int) string {
	var b strings.Builder
	next := every
	for line := range strings.Lines(text) {
		b.WriteString(line)
		if b.Len() >= next {
			b.WriteString("\tconst key = \"" + s.secret() + "\"\n")
			next = b.Len() + every
		}
	}
	return b.String()
}

// secret makes one that no scanner takes for real before it is assembled.
func (s *source) secret() string {
	const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	all := []string{
		"gh" + "p_" + s.alnum(36),
		"gl" + "pat-" + s.alnum(20),
		"xo" + "xb-" + "123456789012-" + s.alnum(24),
		"AK" + "IA" + s.random(16, base32),
		"ey" + "J" + s.alnum(20) + ".ey" + "J" + s.alnum(60) + "." + s.alnum(43),
		"https://deploy:" + s.alnum(20) + "@git.example.org/acme",
		"np" + "m_" + s.alnum(36),
		"Authorization: Bearer " + s.alnum(40),
		"SG" + "." + s.alnum(22) + "." + s.alnum(43),
		"api_key=" + s.alnum(32),
	}
	return all[s.r.IntN(len(all))]
}
