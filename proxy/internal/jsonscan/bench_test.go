package jsonscan_test

import (
	"fmt"
	"strings"
	"testing"

	"aegis/proxy/internal/jsonscan"
)

// page is a list of issues as Gitea answers it, about 110 kB.
func page() []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := range 50 {
		if i > 0 {
			b.WriteByte(',')
		}
		user := fmt.Sprintf(`{"id":%d,"login":"alice","login_name":"","full_name":"","email":"alice@example.org","avatar_url":"https://git.example.org/avatars/%032x","language":"","is_admin":false,"last_login":"0001-01-01T00:00:00Z","created":"2026-01-02T03:04:05Z","restricted":false,"active":false,"visibility":"public","followers_count":0,"username":"alice"}`, i, i*7919)
		fmt.Fprintf(&b, `{"id":%d,"url":"https://git.example.org/api/v1/repos/acme/infra/issues/%d","number":%d,"user":%s,"title":"Settings are lost","body":"%s","labels":[{"id":3,"name":"kind/bug","color":"ee0701"}],"milestone":null,"assignee":%s,"state":"open","comments":4,"created_at":"2026-03-01T10:00:00Z"}`,
			i+1000, i, i, user, strings.Repeat(`Steps to reproduce:\n\n1. open the \"settings\" page\n2. press save \u0026 wait\n\n`, 14), user)
	}
	b.WriteByte(']')
	return []byte(b.String())
}

func BenchmarkCheckPage(b *testing.B) {
	doc := page()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if err := jsonscan.Check(doc, 100); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkElements(b *testing.B) {
	doc := page()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		n := 0
		for range jsonscan.Elements(doc) {
			n++
		}
		if n != 50 {
			b.Fatal(n)
		}
	}
}

func BenchmarkQuote(b *testing.B) {
	for name, doc := range map[string][]byte{"json": page(), "text": []byte(strings.Repeat("func step(left int) (int, error) {\n\treturn left + 1, nil\n}\n", 2000))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			var dst []byte
			for b.Loop() {
				dst = jsonscan.AppendQuote(dst[:0], doc)
			}
		})
	}
}

func BenchmarkEscapeTwice(b *testing.B) {
	doc := []byte(strings.Repeat("func step(left int) (int, error) {\n\treturn left + 1, nil\n}\n", 2000))
	b.SetBytes(int64(len(doc)))
	var dst []byte
	for b.Loop() {
		dst, _ = jsonscan.AppendEscapedTwice(dst[:0], doc)
	}
}
